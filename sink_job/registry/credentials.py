"""Credentials of a registry, from a directory in the layout of a mounted Secret: one file per key.

The kubelet updates the directory by replacing the symbolic link `..data`. All keys are read after one resolution of
that link, so they are from the same version of the Secret.
"""

from __future__ import annotations

import unicodedata
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Final

from sink_job.api.errors import InvalidCredentials, SecretNotFound
from sink_job.engine.secret_files import Stamp, current_version, file_stamp, read_key

_KEYS: Final = {
    "username": "username",
    "password": "password",
    "token": "token",
    "clientId": "client_id",
    "clientSecret": "client_secret",
    "tokenUrl": "token_url",
    "scope": "scope",
    "logicalCluster": "logical_cluster",
    "identityPool": "identity_pool",
}
_KINDS: Final = (("username", "password"), ("token",), ("clientId", "clientSecret", "tokenUrl"))
_HEADERS: Final = ("token", "logicalCluster", "identityPool")
_ADVICE: Final = (
    "the Secret of spec.format.registry.credentials needs the keys username and password, or token, or clientId, "
    "clientSecret and tokenUrl"
)


@dataclass(frozen=True, kw_only=True)
class RegistryCredentials:
    """User and password, or a bearer token, or an OAuth client; the other fields are empty."""

    username: str = ""
    password: str = ""
    token: str = ""
    client_id: str = ""
    client_secret: str = ""
    token_url: str = ""
    scope: str = ""
    logical_cluster: str = ""
    identity_pool: str = ""

    def __repr__(self) -> str:
        return f"RegistryCredentials({', '.join(f.name for f in fields(self) if getattr(self, f.name))})"

    @property
    def secrets(self) -> list[str]:
        """The values to redact in all output, with that of the header Authorization: a proxy can return it."""
        encoded = b64encode(f"{self.username}:{self.password}".encode()).decode() if self.username else ""
        return [value for value in (self.password, encoded, self.token, self.client_secret) if value]


def read_credentials(directory: Path) -> RegistryCredentials:
    """The credentials in `directory`.

    Raises SecretNotFound if they are not of exactly one kind, and InvalidCredentials for a value that HTTP cannot send:
    libraries quote it in their messages. Passwords may have characters beyond ASCII (RFC 7617), headers not.
    """
    current = current_version(directory)
    values = {key: read_key(current / key, "registry credentials") for key in _KEYS}
    kinds = [kind for kind in _KINDS if any(values[key] for key in kind)]
    if len(kinds) != 1:
        raise SecretNotFound(f"registry credentials: {directory} has {_found(kinds)}; {_ADVICE}")
    missing = [key for key in kinds[0] if not values[key]]
    if missing:
        raise SecretNotFound(f"registry credentials: {directory} has no {' and no '.join(missing)}; {_ADVICE}")
    for key, value in values.items():
        _check(current / key, value, is_ascii=key in _HEADERS)
    return RegistryCredentials(**{_KEYS[key]: value for key, value in values.items()})


def _check(path: Path, value: str, *, is_ascii: bool) -> None:
    if any(unicodedata.category(character) == "Cc" for character in value):
        raise InvalidCredentials(f"registry credentials: {path} contains a line break or another control character")
    if is_ascii and not value.isascii():
        raise InvalidCredentials(f"registry credentials: {path} contains a character that is not ASCII")


def _found(kinds: Sequence[tuple[str, ...]]) -> str:
    return "none of the keys" if not kinds else f"keys of {len(kinds)} kinds ({', '.join(kind[0] for kind in kinds)})"


def stamp(*paths: Path | None) -> tuple[Stamp, ...]:
    """A value that differs after a change of one of the files, or of a file in one of the directories."""
    files = [
        path / key for path in paths if path is not None and path.is_dir() for key in (*_KEYS, "tls.crt", "tls.key")
    ]
    return tuple(file_stamp(path) for path in (*files, *(path for path in paths if path is not None)))
