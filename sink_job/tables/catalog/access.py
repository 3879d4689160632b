"""How a catalog is reached: login, certificate authorities, proxy. Contains no secret, only the paths of mounts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from sink_job.api.errors import SecretNotFound, TransientError
from sink_job.api.sections.secret_refs import SecretRef
from sink_job.api.sections.tables_section import CatalogSpec
from sink_job.s3 import S3Settings
from sink_job.s3.access.assumed_role import AssumedRole
from sink_job.s3.proxy import ProxySettings

SECTION: Final = "spec.tables.catalog"


class CommitNotSent(TransientError):
    """The catalog cannot get a commit now, and has not got it."""


def _hide_nothing(values: Iterable[str]) -> None:
    """For callers that print nothing."""


@dataclass(frozen=True)
class CatalogSecrets:
    """The mounts of Secrets by name. `hide` gets the secrets to redact in all output, each time when they were read."""

    directories: Mapping[str, Path] = field(default_factory=dict)
    hide: Callable[[Iterable[str]], None] = _hide_nothing


@dataclass(frozen=True, kw_only=True)
class CatalogAccess:
    """`credentials_dir`: directory of the mounted Secret; None: no login. `ca_file`: certificate authorities; None: the
    default ones. `role`: of AWS. `proxy`: None: that of the environment. `hide`: see `CatalogSecrets`.
    `timeout_s`: maximum time without a response on a connection. `insecure`: requests without TLS are allowed.
    `creates_nothing`: a database that does not exist is not created."""

    credentials_dir: Path | None = None
    ca_file: Path | None = None
    role: AssumedRole | None = None
    proxy: ProxySettings | None = None
    hide: Callable[[Iterable[str]], None] = _hide_nothing
    timeout_s: float = 60.0
    insecure: bool = False
    creates_nothing: bool = False

    @classmethod
    def of(cls, spec: CatalogSpec, secrets: CatalogSecrets, s3: S3Settings) -> CatalogAccess:
        """That of a manifest's catalog; `s3` has the proxy, and the keys for AWS Glue
        without others. Raises SecretNotFound for a Secret without a directory."""

        def directory(found: SecretRef, field: str) -> Path:
            if found.secret not in secrets.directories:
                raise SecretNotFound(
                    f"{SECTION}.{field}.secret: the Secret {found.secret} is not mounted. In Kubernetes, check that it "
                    f"exists in the sink's namespace; elsewhere use --secret {found.secret}=DIRECTORY, with one file "
                    "for each of its keys"
                )
            return secrets.directories[found.secret]

        keys = s3.credentials_dir if spec.type.is_glue else None
        return cls(
            credentials_dir=keys if spec.credentials is None else directory(spec.credentials, "credentials"),
            ca_file=None if spec.ca_secret is None else directory(spec.ca_secret, "caSecret") / spec.ca_secret.key,
            role=None if spec.assume_role is None else AssumedRole.of(spec.assume_role),
            proxy=s3.proxy,
            hide=secrets.hide,
            insecure=spec.insecure,
        )

    def authorities(self) -> Path | None:
        """The file of certificate authorities; None: the default ones. Raises SecretNotFound if it does not exist."""
        if self.ca_file is not None and not self.ca_file.is_file():
            raise SecretNotFound(
                f"the file of certificate authorities {self.ca_file} does not exist: check {SECTION}.caSecret"
            )
        return self.ca_file
