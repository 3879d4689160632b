"""The files below a ledger's root: which ones a sink wrote, and reading those.

Other programs and people write there, too: folder markers of a console, copies made by hand. A name that no sink writes
is ignored; a file with a sink's name that cannot be read stops whoever needs it, with its key.
"""

from __future__ import annotations

import gzip
import logging
import re
import threading
import zlib
from collections.abc import Iterator
from typing import Any, Final, TypeVar

import msgspec

from sink_job.api.errors import ConfigurationError, LedgerUnreadable
from sink_job.s3 import Listed, S3Client

T = TypeVar("T")

_NUMBERED: Final = re.compile(r"[0-9]{20}\.json\.gz")

NAMES: Final = {
    "ledger/": _NUMBERED,
    "snapshot/": _NUMBERED,
    "intent/": re.compile(r"[0-9]{20}-[0-9]{10}\.json\.gz"),
    "published/": re.compile(r"[0-9]{20}-[0-9]{20}\.jsonl\.gz"),
}
"""The folders of a ledger and what the names of its files in them look like."""

RESTORE: Final = "Restore that object (an earlier version of it, or a backup), or delete it if no sink wrote it"
_BROKEN: Final = (OSError, EOFError, zlib.error, ValueError, msgspec.MsgspecError)

_making: Final = threading.Lock()
_decoders: Final[dict[type, Any]] = {}

_log = logging.getLogger(__name__)


class Folders:
    """Lists the files of one ledger. Each foreign one is reported once."""

    def __init__(self, s3: S3Client, root: str) -> None:
        self._s3 = s3
        self._root = root
        self._reported: set[str] = set()

    def files(self, folder: str) -> Iterator[Listed]:
        """The sink's own files in `folder`, one of `NAMES`."""
        for listed in self._s3.list(self._root + folder):
            if NAMES[folder].fullmatch(listed.key.removeprefix(self._root + folder)):
                yield listed
            elif listed.key not in self._reported:
                self._reported.add(listed.key)
                _log.warning(
                    "s3://%s/%s is ignored: no sink writes a file of that name. Delete it, or move it out of the "
                    "ledger's folder",
                    self._s3.bucket,
                    listed.key,
                )


class _Versioned(msgspec.Struct):
    format: int = 1  # files of format 1 do not contain it


def read(s3: S3Client, key: str, kind: type[T], *, expected_format: int | None = None) -> T:
    """The value in the file at `key`, which is JSON, compressed if the key ends with `.gz`.

    Raises NotFound; LedgerUnreadable for a file with other content; ConfigurationError for a file that is not of
    `expected_format`, unless that is None.
    """
    body = _body(s3, key)
    if expected_format is not None:
        (found,) = _decoded(s3, key, _Versioned, [body])
        if found.format != expected_format:
            raise ConfigurationError(
                f"s3://{s3.bucket}/{key} has ledger format {found.format}; this version of s3sink reads and writes "
                f"format {expected_format} only. Run the version of s3sink that wrote it, or start with a new "
                "spec.sinkId and a new spec.s3.topicsDir."
            )
    return _decoded(s3, key, kind, [body])[0]


def read_lines(s3: S3Client, key: str, kind: type[T]) -> list[T]:
    """The values in the file at `key`, one a line; as `read`."""
    return _decoded(s3, key, kind, _body(s3, key).splitlines())


def unreadable(s3: S3Client, key: str, why: object, advice: str = RESTORE) -> LedgerUnreadable:
    """The error of a file that is not what its name says."""
    return LedgerUnreadable(f"s3://{s3.bucket}/{key} cannot be read ({why}). {advice}.")


def _body(s3: S3Client, key: str) -> bytes:
    body = s3.get(key)
    if not body:
        raise unreadable(s3, key, "it is empty")
    try:
        return gzip.decompress(body) if key.endswith(".gz") else body
    except _BROKEN as error:
        raise unreadable(s3, key, f"not gzip: {error}") from None


def _decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """The decoder of a type, made by one thread: msgspec 0.22 may crash where threads decode a type for the first time
    at once."""
    with _making:
        if kind not in _decoders:
            _decoders[kind] = msgspec.json.Decoder(kind)
    decoder: msgspec.json.Decoder[T] = _decoders[kind]
    return decoder


def _decoded(s3: S3Client, key: str, kind: type[T], texts: list[bytes]) -> list[T]:
    decoder = _decoder(kind)
    try:
        return [decoder.decode(text) for text in texts]
    except _BROKEN as error:
        raise unreadable(s3, key, error) from None
