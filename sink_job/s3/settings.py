"""Connection settings of the bucket. The driver sends them to its tasks.

The settings are small, hashable (each process keeps one client per settings) and picklable. They contain no secret:
credentials and certificates are referenced by the paths of their mounts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from sink_job.api.errors import SecretNotFound
from sink_job.engine.retry import RetryPolicy
from sink_job.s3.access.assumed_role import AssumedRole
from sink_job.s3.access.session_policy import read_policy, session_policy
from sink_job.s3.customer_keys import customer_key_id
from sink_job.s3.object_lock import ObjectLock
from sink_job.s3.proxy import ProxySettings

if TYPE_CHECKING:  # tasks unpickle settings without loading the spec's models
    from sink_job.api.sections.job_sections import S3Spec
    from sink_job.api.spec import ObjectSettings, Spec

__all__ = ["LedgerBucket", "S3Settings"]


@dataclass(frozen=True, kw_only=True)
class S3Settings:
    """Location of the bucket, and settings of the client.

    `endpoint`: the store's URL; None: Amazon S3 in `region`.
    `ca_file`: certificate authorities; None: those of the system.
    `credentials_dir`: directory of a mounted Secret; None: botocore's default chain (environment, profile, web
    identity, instance role).
    `role`: the role that is assumed with these credentials. `prefix`: of keys that may be listed.
    `proxy`: None: that of the environment.
    `attributes`: storage class, ACL and tags of objects, as parameters of CreateMultipartUpload.
    `acl`: of all else that is written: that of the settings if it is BucketOwnerFullControl, which policies of buckets
    demand of each PutObject.
    `lock`: Object Lock of objects.
    `offset_tags`: objects get tags with their offsets; `ignores_tag_errors`: also if that fails.
    `encryption`: of all that is written, as parameters of PutObject and CreateMultipartUpload.
    `customer_keys`: files with the keys of SSE-C, the current one first; None: nothing is written with a key.
    `every_request`: parameters of each request that has them. `accelerate`, `dual_stack`: endpoints of AWS.
    `anonymous`: requests have no signature.
    `ledger`: the bucket of ledger and staging, if it is not this one. `section`: of the manifest, for errors.
    `connect_timeout_s`, `read_timeout_s`: maximum time without a response on a connection, not of a whole request.
    """

    bucket: str
    region: str | None = None
    endpoint: str | None = None
    path_style: bool = False
    ca_file: Path | None = None
    credentials_dir: Path | None = None
    role: AssumedRole | None = None
    prefix: str = ""
    proxy: ProxySettings | None = None
    attributes: tuple[tuple[str, str], ...] = ()
    acl: str | None = None
    lock: ObjectLock | None = None
    offset_tags: bool = False
    ignores_tag_errors: bool = True
    encryption: tuple[tuple[str, str | bool], ...] = ()
    customer_keys: tuple[Path | None, ...] = ()
    every_request: tuple[tuple[str, str], ...] = ()
    accelerate: bool = False
    dual_stack: bool = False
    anonymous: bool = False
    ledger: "LedgerBucket | None" = None
    section: str = "spec.s3"
    connect_timeout_s: float = 10.0
    read_timeout_s: float = 60.0
    max_connections: int = 32
    retry: RetryPolicy = field(default_factory=RetryPolicy)

    @classmethod
    def of(cls, spec: "Spec", secret_dirs: Mapping[str, Path], *, reads_only: bool = False) -> "S3Settings":
        """The settings of a manifest. `secret_dirs` maps the name of each Secret to the path of its mount.
        `reads_only`: the session of a role may read all prefixes of the bucket, such as those of earlier settings, and
        write nothing.

        Raises SecretNotFound for a Secret without a directory, and ConfigurationError for a role whose session policy
        would be too long.
        """
        s3 = spec.s3
        prefixes = _prefixes(spec)
        with_ledger = _shared_ledger(s3)
        found = cls(
            bucket=s3.bucket,
            region=s3.region,
            endpoint=s3.endpoint,
            path_style=s3.path_style,
            ca_file=None
            if s3.ca_secret is None
            else _directory(s3.ca_secret.secret, "caSecret", secret_dirs) / s3.ca_secret.key,
            credentials_dir=None
            if s3.credentials is None
            else _directory(s3.credentials.secret, "credentials", secret_dirs),
            role=None
            if s3.assume_role is None
            else AssumedRole.of(
                s3.assume_role,
                read_policy(s3.assume_role.arn, s3.bucket, with_ledger)
                if reads_only
                else session_policy(s3.assume_role.arn, s3.bucket, prefixes, _actions(s3), ledger=with_ledger),
            ),
            proxy=_proxy(spec, secret_dirs),
            attributes=_attributes(s3),
            acl=_acl_of_all(s3),
            lock=None if s3.object_lock is None else ObjectLock.of(s3.object_lock),
            offset_tags=s3.offset_tags,
            ignores_tag_errors=s3.on_tag_error.value == "Ignore",
            encryption=_encryption(s3),
            customer_keys=_customer_keys(s3, secret_dirs),
            every_request=_every_request(s3),
            accelerate=s3.accelerate,
            dual_stack=s3.dual_stack,
            anonymous=s3.anonymous,
            retry=RetryPolicy(max_elapsed_s=s3.retry_for / 1000),
            prefix="" if s3.assume_role is None else prefixes[0],
        )
        return found if s3.ledger is None else replace(found, ledger=_ledger_bucket(found, s3, secret_dirs))

    @property
    def url(self) -> str:
        """`s3://<bucket>`, as in messages and reports."""
        return f"s3://{self.bucket}"

    def url_of(self, key: str) -> str:
        """`s3://<bucket>/<key>`, with the bucket in which this key is."""
        if self.ledger is not None and key.startswith(self.ledger.folder):
            return f"{self.ledger.settings.url}/{key}"
        return f"{self.url}/{key}"


@dataclass(frozen=True, kw_only=True)
class LedgerBucket:
    """Another place for ledger and staging. `settings`: of its bucket. `front`: what its keys begin with before those
    that they would have in the objects' bucket. `folder`: what the keys of all ledgers of the topicsDir begin with."""

    settings: S3Settings
    front: str
    folder: str


def _ledger_folder(spec: "S3Spec") -> str:
    from sink_job.api.spec import ledger_folder

    return f"{spec.ledger_front}{ledger_folder(spec.topics_dir, '')}"


def _shared_ledger(spec: "S3Spec") -> tuple[str, str] | None:
    """Bucket and prefix of a ledger in another place that has the role of the objects' bucket."""
    if spec.ledger is None or spec.ledger.credentials is not None:
        return None
    return spec.ledger.bucket, _ledger_folder(spec)


def _ledger_bucket(objects: S3Settings, spec: "S3Spec", secret_dirs: Mapping[str, Path]) -> LedgerBucket:
    """The ledger's bucket: as the objects' bucket, without what concerns objects or that bucket alone."""
    assert spec.ledger is not None
    credentials, folder = spec.ledger.credentials, _ledger_folder(spec)
    settings = replace(
        objects,
        bucket=spec.ledger.bucket,
        prefix=folder,
        attributes=(),
        lock=None,
        offset_tags=False,
        every_request=tuple(each for each in objects.every_request if each[0] != "ExpectedBucketOwner"),
        accelerate=False,
        section="spec.s3.ledger",
    )
    if credentials is not None:
        directory = _directory(credentials.secret, "ledger.credentials", secret_dirs)
        settings = replace(settings, credentials_dir=directory, role=None, anonymous=False)
    return LedgerBucket(settings=settings, front=spec.ledger_front, folder=folder)


def _proxy(spec: "Spec", secret_dirs: Mapping[str, Path]) -> ProxySettings | None:
    """The proxy of a manifest. Raises SecretNotFound for a Secret without a directory."""
    if spec.s3.proxy is None:
        return None
    return ProxySettings.of(spec.s3.proxy, lambda secret, name: _directory(secret, name, secret_dirs))


def _attributes(spec: "S3Spec") -> tuple[tuple[str, str], ...]:
    found = {
        "StorageClass": None if spec.storage_class is None else spec.storage_class.s3_name,
        "ACL": None if spec.acl is None else spec.acl.s3_name,
        "Tagging": urlencode(sorted(spec.tags.items())) or None,
    }
    return tuple((name, value) for name, value in found.items() if value is not None)


def _acl_of_all(spec: "S3Spec") -> str | None:
    """The ACL of ledger, staging and temporary objects, too: it gives access to the owner of the bucket alone."""
    name = None if spec.acl is None else spec.acl.s3_name
    return name if name == "bucket-owner-full-control" else None


def _encryption(spec: "S3Spec") -> tuple[tuple[str, str | bool], ...]:
    if spec.encryption is None or spec.encryption.type.s3_name is None:
        return ()
    found = {
        "ServerSideEncryption": spec.encryption.type.s3_name,
        "SSEKMSKeyId": spec.encryption.kms_key,
        "BucketKeyEnabled": spec.encryption.bucket_key,
    }
    return tuple((name, value) for name, value in found.items() if value is not None)


def _customer_keys(spec: "S3Spec", secret_dirs: Mapping[str, Path]) -> tuple[Path | None, ...]:
    if spec.encryption is None:
        return ()
    current, previous = spec.encryption.customer_key, spec.encryption.previous_keys
    if current is None and not previous:
        return ()
    return (
        None if current is None else _directory(current.secret, "encryption.customerKey", secret_dirs) / current.key,
        *(_directory(each.secret, "encryption.previousKeys", secret_dirs) / each.key for each in previous),
    )


def _every_request(spec: "S3Spec") -> tuple[tuple[str, str], ...]:
    found = {
        "RequestPayer": "requester" if spec.requester_pays else None,
        "ExpectedBucketOwner": spec.expected_bucket_owner,
    }
    return tuple((name, value) for name, value in found.items() if value is not None)


def _actions(spec: "S3Spec") -> list[str]:
    """The permissions that the attributes of objects need. `check-store` reads the tags."""
    has_tags = bool(spec.tags) or spec.offset_tags
    needed = {
        "s3:PutObjectTagging": has_tags,
        "s3:GetObjectTagging": has_tags,
        "s3:PutObjectAcl": spec.acl is not None,
    }
    lock = [] if spec.object_lock is None else ObjectLock.of(spec.object_lock).actions
    return [*(action for action, is_needed in needed.items() if is_needed), *lock]


def _prefixes(spec: "Spec") -> list[str]:
    """What the keys of a sink begin with: first the ledger and with the delimiter `/` the objects, then others."""
    delimiter, topics_dir = spec.s3.directory_delimiter, spec.s3.topics_dir
    found = [f"{topics_dir}/", f"{topics_dir}{delimiter}"] if topics_dir else [""]
    if spec.errors.dead_letters.prefix is not None:
        found.append(f"{spec.errors.dead_letters.prefix}{delimiter}")
    return list(dict.fromkeys(found))


def _directory(secret: str, field_name: str, secret_dirs: Mapping[str, Path]) -> Path:
    if secret not in secret_dirs:
        raise SecretNotFound(
            f"spec.s3.{field_name}.secret: the Secret {secret} is not mounted. In Kubernetes, check that it exists in "
            f"the sink's namespace; elsewhere use --secret {secret}=DIRECTORY, with one file for each of its keys."
        )
    return secret_dirs[secret]


def with_customer_key(object_settings: "ObjectSettings", settings: S3Settings) -> "ObjectSettings":
    """`object_settings` with what distinguishes the current key of SSE-C, as a claim contains it (P8). Raises
    InvalidCredentials."""
    return object_settings.model_copy(update={"customer_key": customer_key_id(settings.customer_keys)})
