"""Credentials from a directory in the layout of a mounted Secret: one file per key.

Settings are pickled into tasks and hold only the directory's path. The files are checked before each request and read
again after a change, so a rotated Secret takes effect without a restart. The kubelet updates the directory by replacing
the symbolic link `..data`. Both keys are read after one resolution of that link, so they are always from the same
version of the Secret.
"""

import contextlib
import threading
from pathlib import Path

from botocore.credentials import CredentialProvider, Credentials, ReadOnlyCredentials

from sink_job.api.errors import SecretNotFound
from sink_job.engine.secret_files import Stamp, current_version, file_stamp, read_key

__all__ = ["DirectoryCredentials", "DirectoryProvider"]

_ACCESS_KEY, _SECRET_KEY, _TOKEN = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"


class DirectoryCredentials(Credentials):
    """botocore credentials that are read from `directory`, again after each change of its files. `setting`: the field
    of the manifest with the Secret.

    Raises SecretNotFound if the directory lacks a key.
    """

    def __init__(self, directory: Path, setting: str = "spec.s3.credentials") -> None:
        self._directory = directory
        self._setting = setting
        self._lock = threading.Lock()
        self._stamp: tuple[Stamp, ...] | None = None
        self._frozen = self._read()
        super().__init__("", "", method=DirectoryProvider.METHOD)  # not used: requests are signed with the frozen keys

    def __repr__(self) -> str:
        return f"DirectoryCredentials({str(self._directory)!r})"

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        """The current keys of the files."""
        with self._lock:
            stamp = self._current_stamp()
            if stamp != self._stamp:
                with contextlib.suppress(SecretNotFound):  # a rotation in progress: use the old keys until it is done
                    self._frozen = self._read()
                    self._stamp = stamp
            return self._frozen

    def _current_stamp(self) -> tuple[Stamp, ...]:
        return tuple(file_stamp(self._directory / name) for name in (_ACCESS_KEY, _SECRET_KEY, _TOKEN))

    def _read(self) -> ReadOnlyCredentials:
        directory = current_version(self._directory)
        access, secret, token = (
            read_key(directory / name, "S3 credentials") for name in (_ACCESS_KEY, _SECRET_KEY, _TOKEN)
        )
        missing = [name for name, text in ((_ACCESS_KEY, access), (_SECRET_KEY, secret)) if not text]
        if missing:
            raise SecretNotFound(
                f"S3 credentials: {self._directory} has no {' and no '.join(missing)}; add the keys {_ACCESS_KEY} and "
                f"{_SECRET_KEY} to the Secret of {self._setting} ({_TOKEN} for temporary credentials)"
            )
        return ReadOnlyCredentials(access, secret, token or None)


class DirectoryProvider(CredentialProvider):
    """The only credential provider if the manifest has a Secret. There is no fallback if its directory lacks keys."""

    METHOD = "secret-directory"

    def __init__(self, directory: Path, setting: str = "spec.s3.credentials") -> None:
        super().__init__()
        self._directory = directory
        self._setting = setting

    def load(self) -> DirectoryCredentials:
        """The credentials of the directory. Raises SecretNotFound if it lacks a key."""
        return DirectoryCredentials(self._directory, self._setting)
