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

__all__ = ["DirectoryCredentials", "DirectoryProvider"]

_ACCESS_KEY, _SECRET_KEY, _TOKEN = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"
_Stamp = tuple[tuple[int, int, int] | None, ...]


class DirectoryCredentials(Credentials):
    """botocore credentials that are read from `directory`, again after each change of its files.

    Raises SecretNotFound if the directory lacks a key.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._stamp: _Stamp | None = None
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

    def _current_stamp(self) -> _Stamp:
        return tuple(_stamp(self._directory / name) for name in (_ACCESS_KEY, _SECRET_KEY, _TOKEN))

    def _read(self) -> ReadOnlyCredentials:
        link = self._directory / "..data"
        directory = link.resolve() if link.exists() else self._directory
        access, secret, token = (_text(directory / name) for name in (_ACCESS_KEY, _SECRET_KEY, _TOKEN))
        missing = [name for name, text in ((_ACCESS_KEY, access), (_SECRET_KEY, secret)) if not text]
        if missing:
            raise SecretNotFound(
                f"S3 credentials: {self._directory} has no {' and no '.join(missing)}; add the keys {_ACCESS_KEY} and "
                f"{_SECRET_KEY} to the Secret of spec.s3.credentials ({_TOKEN} for temporary credentials)"
            )
        return ReadOnlyCredentials(access, secret, token or None)


class DirectoryProvider(CredentialProvider):
    """The only credential provider if spec.s3.credentials is set. There is no fallback if its directory lacks keys."""

    METHOD = "secret-directory"

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = directory

    def load(self) -> DirectoryCredentials:
        """The credentials of the directory. Raises SecretNotFound if it lacks a key."""
        return DirectoryCredentials(self._directory)


def _stamp(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise SecretNotFound(f"S3 credentials: {path} cannot be read: {type(error).__name__}") from error
