"""Connection settings of the bucket. The driver sends them to its tasks.

The settings are small, hashable (each process keeps one client per settings) and picklable. They contain no secret:
credentials and certificates are referenced by the paths of their mounts.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from sink_job.api.errors import SecretNotFound
from sink_job.engine.retry import RetryPolicy

if TYPE_CHECKING:  # tasks unpickle settings without loading the spec's models
    from sink_job.api.sections.job_sections import S3Spec

__all__ = ["S3Settings"]


@dataclass(frozen=True, kw_only=True)
class S3Settings:
    """Location of the bucket, and settings of the client.

    `endpoint`: the store's URL; None: Amazon S3 in `region`.
    `ca_file`: certificate authorities; None: those of the system.
    `credentials_dir`: directory of a mounted Secret; None: botocore's default chain (environment, profile, web
    identity, instance role).
    `connect_timeout_s`, `read_timeout_s`: maximum time without a response on a connection, not of a whole request.
    """

    bucket: str
    region: str | None = None
    endpoint: str | None = None
    path_style: bool = False
    ca_file: Path | None = None
    credentials_dir: Path | None = None
    connect_timeout_s: float = 10.0
    read_timeout_s: float = 60.0
    max_connections: int = 32
    retry: RetryPolicy = field(default_factory=RetryPolicy)

    @classmethod
    def of(cls, spec: "S3Spec", secret_dirs: Mapping[str, Path]) -> "S3Settings":
        """The settings of a manifest's `spec.s3`. `secret_dirs` maps the name of each Secret to the path of its mount.

        Raises SecretNotFound for a Secret without a directory.
        """
        return cls(
            bucket=spec.bucket,
            region=spec.region,
            endpoint=spec.endpoint,
            path_style=spec.path_style,
            ca_file=None
            if spec.ca_secret is None
            else _directory(spec.ca_secret.secret, "caSecret", secret_dirs) / spec.ca_secret.key,
            credentials_dir=None
            if spec.credentials is None
            else _directory(spec.credentials.secret, "credentials", secret_dirs),
        )

    @property
    def url(self) -> str:
        """`s3://<bucket>`, as in messages and reports."""
        return f"s3://{self.bucket}"


def _directory(secret: str, field_name: str, secret_dirs: Mapping[str, Path]) -> Path:
    if secret not in secret_dirs:
        raise SecretNotFound(
            f"spec.s3.{field_name}.secret: the Secret {secret} is not mounted. In Kubernetes, check that it exists in "
            f"the sink's namespace; elsewhere use --secret {secret}=DIRECTORY, with one file for each of its keys."
        )
    return secret_dirs[secret]
