"""Lists and reads the files of a ledger.

Other programs and users may write files below the ledger's root: folder markers of a console, manual copies. Files with
a name that no sink uses are ignored. A file of the ledger that cannot be read raises an error with its key.
"""

from __future__ import annotations

import gzip
import logging
import re
import threading
import zlib
from collections.abc import Callable, Collection, Iterator
from typing import Any, Final, TypeVar

import msgspec

from sink_job.api.errors import ConfigurationError, LedgerUnreadable
from sink_job.engine.thread_pools import pool
from sink_job.s3 import Listed, NotFound, S3Client

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")

_NUMBERED: Final = re.compile(r"[0-9]{20}\.json\.gz")

NAMES: Final = {
    "ledger/": _NUMBERED,
    "snapshot/": _NUMBERED,
    "intent/": re.compile(r"[0-9]{20}-[0-9]{10}\.json\.gz"),
    "published/": re.compile(r"[0-9]{20}-[0-9]{20}\.jsonl\.gz"),
}
"""The folders of a ledger, and the pattern of the file names in each."""

REQUESTS: Final = 16
"""Maximum number of concurrent requests for files of a ledger that a task needs together."""

MIN_LISTED: Final = 16
"""Number of files from which on a folder is listed to find out which of them exist. S3 charges about twelve times as
much for a listing as for a read."""

RESTORE: Final = "Restore that object (an earlier version of it, or a backup), or delete it if no sink wrote it"
_DECODE_ERRORS: Final = (OSError, EOFError, zlib.error, ValueError, RecursionError, msgspec.MsgspecError)

_decoders_lock: Final = threading.Lock()
_decoders: Final[dict[type, Any]] = {}

_log = logging.getLogger(__name__)


class Folders:
    """Lists the files of one ledger. Logs each foreign file once."""

    def __init__(self, s3: S3Client, root: str) -> None:
        self._s3 = s3
        self._root = root
        self._reported: set[str] = set()

    def files(self, folder: str) -> Iterator[Listed]:
        """The ledger's own files in `folder`, a key of `NAMES`."""
        for listed in self._s3.list(self._root + folder):
            if NAMES[folder].fullmatch(listed.key.removeprefix(self._root + folder)):
                yield listed
            elif listed.key not in self._reported:
                self._reported.add(listed.key)
                _log.warning(
                    "s3://%s/%s is ignored: a sink writes no file of this name. Delete it, or move it out of the "
                    "ledger's folder",
                    self._s3.bucket,
                    listed.key,
                )


class _FormatHeader(msgspec.Struct):
    format: int = 1  # files of format 1 have no such field


def read(s3: S3Client, key: str, kind: type[T], *, expected_format: int | None = None) -> T:
    """Reads the JSON file at `key`, gzipped if the key ends with `.gz`.

    Raises NotFound; LedgerUnreadable if the content is not a valid `kind`; ConfigurationError if the file is not of
    `expected_format` (None: not checked).
    """
    content = _content(s3, key)
    if expected_format is not None:
        (header,) = _decoded(s3, key, _FormatHeader, [content])
        if header.format != expected_format:
            raise ConfigurationError(
                f"{s3.url_of(key)} has ledger format {header.format}; this version of s3sink reads and writes "
                f"format {expected_format} only. Run the version of s3sink that wrote it, or start with a new "
                "spec.sinkId and a new spec.s3.topicsDir."
            )
    return _decoded(s3, key, kind, [content])[0]


def find(s3: S3Client, key: str, kind: type[T], *, expected_format: int) -> T | None:
    """The content of the file at `key`; None if it does not exist. Raises as `read`."""
    try:
        return read(s3, key, kind, expected_format=expected_format)
    except NotFound:
        return None


def find_all(s3: S3Client, keys: Collection[str], kind: type[T], *, expected_format: int) -> dict[str, T | None]:
    """The content of the file at each key, read in parallel; None for one that does not exist. Raises as `read`."""
    found = together(lambda key: find(s3, key, kind, expected_format=expected_format), keys)
    return dict(zip(keys, found, strict=True))


def together(call: Callable[[A], B], arguments: Collection[A]) -> list[B]:
    """The results of concurrent calls, in the order of `arguments`. Raises the error of the first call that fails."""
    if len(arguments) < 2:
        return [call(each) for each in arguments]
    with pool(min(REQUESTS, len(arguments)), "s3sink-ledger-files") as requests:
        return [*requests.map(call, arguments)]


def read_lines(s3: S3Client, key: str, kind: type[T]) -> list[T]:
    """Reads the file at `key` with one JSON value per line. Raises NotFound and LedgerUnreadable."""
    return _decoded(s3, key, kind, _content(s3, key).splitlines())


def unreadable(s3: S3Client, key: str, reason: object, advice: str = RESTORE) -> LedgerUnreadable:
    """The error for a file with invalid content."""
    return LedgerUnreadable(f"{s3.url_of(key)} cannot be read ({reason}). {advice}.")


def _content(s3: S3Client, key: str) -> bytes:
    stored = s3.get(key)
    if not stored:
        raise unreadable(s3, key, "it is empty")
    try:
        return gzip.decompress(stored) if key.endswith(".gz") else stored
    except _DECODE_ERRORS as error:
        raise unreadable(s3, key, f"not gzip: {error}") from None


def _decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """The decoder of a type. One thread creates it: msgspec 0.22 can crash when several threads decode a type for the
    first time."""
    with _decoders_lock:
        if kind not in _decoders:
            _decoders[kind] = msgspec.json.Decoder(kind)
    decoder: msgspec.json.Decoder[T] = _decoders[kind]
    return decoder


def _decoded(s3: S3Client, key: str, kind: type[T], texts: list[bytes]) -> list[T]:
    decoder = _decoder(kind)
    try:
        return [decoder.decode(text) for text in texts]
    except _DECODE_ERRORS as error:
        raise unreadable(s3, key, error) from None
