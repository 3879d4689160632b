"""Connection settings of a schema registry. They contain no secret, only the paths of mounted Secrets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sink_job.api.enums import RegistryType, SubjectNameStrategy
from sink_job.api.errors import SecretNotFound
from sink_job.api.sections.registry_section import RegistrySpec
from sink_job.engine.retry import RetryPolicy
from sink_job.s3.access.assumed_role import AssumedRole
from sink_job.s3.proxy import ProxySettings


@dataclass(frozen=True, kw_only=True)
class RegistrySettings:
    """Location of the registry, and settings of the client.

    `urls`: tried in turn. `ca_file`: certificate authorities; None: the default ones. `credentials_dir`, `client_dir`:
    the directories of mounted Secrets; None: no credentials, no client certificate. `insecure`: a token URL may be
    without TLS. `region`, `registry_name` and `role`: of AWS Glue; it has no URL by default.
    `proxy`: None: that of the environment. `timeout_s`: maximum time without a response on a connection.
    """

    urls: tuple[str, ...] = ()
    type: RegistryType = RegistryType.CONFLUENT
    credentials_dir: Path | None = None
    ca_file: Path | None = None
    client_dir: Path | None = None
    insecure: bool = False
    subjects: SubjectNameStrategy = SubjectNameStrategy.TOPIC_NAME
    region: str | None = None
    registry_name: str | None = None
    role: AssumedRole | None = None
    proxy: ProxySettings | None = None
    timeout_s: float = 15.0
    retry: RetryPolicy = field(default_factory=RetryPolicy)

    @classmethod
    def of(
        cls, spec: RegistrySpec, secret_dirs: Mapping[str, Path], proxy: ProxySettings | None = None
    ) -> RegistrySettings:
        """The settings of a manifest's `spec.format.registry`. `secret_dirs` maps the name of each Secret to the path
        of its mount; `proxy` is that of `spec.s3`.

        Raises SecretNotFound for a Secret without a directory.
        """

        def directory(secret: str, name: str) -> Path:
            if secret not in secret_dirs:
                raise SecretNotFound(
                    f"spec.format.registry.{name}.secret: the Secret {secret} is not mounted. In Kubernetes, check "
                    f"that it exists in the sink's namespace; elsewhere use --secret {secret}=DIRECTORY, with one file "
                    "for each of its keys."
                )
            return secret_dirs[secret]

        return cls(
            urls=tuple(url.rstrip("/") for url in spec.url or ()),
            type=spec.type,
            credentials_dir=directory(spec.credentials.secret, "credentials") if spec.credentials else None,
            ca_file=directory(spec.ca_secret.secret, "caSecret") / spec.ca_secret.key if spec.ca_secret else None,
            client_dir=directory(spec.client_secret.secret, "clientSecret") if spec.client_secret else None,
            insecure=spec.insecure,
            subjects=spec.subjects,
            region=spec.region,
            registry_name=spec.name,
            proxy=proxy,
            role=AssumedRole.of(spec.assume_role) if spec.assume_role else None,
        )

    @property
    def url(self) -> str:
        """The URLs for messages; without any, the region of AWS Glue."""
        return ", ".join(self.urls) or f"AWS Glue in {self.region}"


def authorities(settings: RegistrySettings) -> Path | None:
    """The file of certificate authorities; None: the default ones. Raises SecretNotFound if it does not exist."""
    if settings.ca_file is not None and not settings.ca_file.is_file():
        raise SecretNotFound(
            f"schema registry {settings.url}: the file of certificate authorities {settings.ca_file} does not "
            "exist: check spec.format.registry.caSecret"
        )
    return settings.ca_file
