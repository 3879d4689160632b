"""Keys out of a directory laid out like a mounted Secret: one file per key.

Only the directory's path travels (settings are pickled into tasks). The files are looked at before each request and
read again when they changed, so a rotated Secret takes effect without a restart. kubelet changes such a directory by
swapping the link `..data`; both keys are read behind one resolution of that link, so an old key never meets a new
secret.
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
    """botocore's credentials, read from `directory` whenever its files changed. Raises SecretNotFound without keys."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = threading.Lock()
        self._stamp: _Stamp | None = None
        self._frozen = self._read()
        super().__init__("", "", method=DirectoryProvider.METHOD)  # never asked: requests are signed with frozen ones

    def __repr__(self) -> str:
        return f"DirectoryCredentials({str(self._directory)!r})"

    def get_frozen_credentials(self) -> ReadOnlyCredentials:
        """The keys as the files have them now."""
        with self._lock:
            stamp = self._look()
            if stamp != self._stamp:
                with contextlib.suppress(SecretNotFound):  # being rotated: the old keys serve until both are there
                    self._frozen = self._read()
                    self._stamp = stamp
            return self._frozen

    def _look(self) -> _Stamp:
        return tuple(_stamp(self._directory / name) for name in (_ACCESS_KEY, _SECRET_KEY, _TOKEN))

    def _read(self) -> ReadOnlyCredentials:
        swapped = self._directory / "..data"
        directory = swapped.resolve() if swapped.exists() else self._directory
        access, secret, token = (_text(directory / name) for name in (_ACCESS_KEY, _SECRET_KEY, _TOKEN))
        missing = [name for name, text in ((_ACCESS_KEY, access), (_SECRET_KEY, secret)) if not text]
        if missing:
            raise SecretNotFound(
                f"S3 credentials: {self._directory} has no {' and no '.join(missing)}; "
                f"the secret needs the keys {_ACCESS_KEY} and {_SECRET_KEY} ({_TOKEN} for temporary ones)"
            )
        return ReadOnlyCredentials(access, secret, token or None)


class DirectoryProvider(CredentialProvider):
    """The one link of the chain when a secret is named: nothing else is asked when its directory has no keys."""

    METHOD = "secret-directory"

    def __init__(self, directory: Path) -> None:
        super().__init__()
        self._directory = directory

    def load(self) -> DirectoryCredentials:
        """The credentials of the directory. Raises SecretNotFound."""
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
