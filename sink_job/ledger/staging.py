"""Staged remainders: bytes of open objects that do not fill a part yet are stored between rounds (P6).

All topic-partitions of a task share one staging object: a round costs one request per task. The ledger keeps the extent
of each remainder: key, offset, length and checksum. Each reader detects missing or changed data from its own extents. A
staging object is kept until no open object refers to it.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Iterable

from sink_job.ledger.state import Extent
from sink_job.s3 import NotFound, S3Client
from sink_job.s3.checksums import crc64nvme

STAGING_BYTES = 32 << 20
"""Maximum size of a staging object in bytes; a larger remainder has one of its own."""

WINDOW = 256 << 10
"""Bytes per read of small remainders: neighbours in a staging object are mostly needed together."""

WINDOWS = 64
"""Maximum number of windows that a task keeps in memory: 16 MiB."""


class StagedDataLost(Exception):
    """A staging object is missing or was changed: the open objects must be rebuilt (P2, P6)."""


def new_prefix(root: str, epoch: int, number: int) -> str:
    """The key prefix of one task attempt's staging objects in round `number`, below the ledger's `root`. No other
    attempt, round or epoch uses it (P6)."""
    return f"{root}staging/{epoch:020d}-{number:020d}-{uuid.uuid4().hex[:16]}"


def staged_dead_letters(root: str) -> str:
    """The key prefix of dead-letter objects in the ledger's folder: they exist until their records are in a topic."""
    return f"{root}dead-letters/"


def is_expired(name: str, epoch: int, recorded: int) -> bool:
    """Whether the staging object `name` (without the prefix `staging/`) is of a lower epoch, or of a round of this
    epoch up to `recorded`, inclusive."""
    parts = name.split("-", 2)
    if len(parts) < 3 or not (parts[0].isdigit() and parts[1].isdigit()):
        return False
    return int(parts[0]) < epoch or (int(parts[0]) == epoch and int(parts[1]) <= recorded)


class StagingWriter:
    """Writes remainders to shared staging objects and returns their extents."""

    def __init__(self, s3: S3Client, prefix: str) -> None:
        """`prefix` must be unique: see `new_prefix`."""
        self.bytes = 0
        self._s3 = s3
        self._prefix = prefix
        self._chunks: list[bytes] = []
        self._size = 0
        self._written = 0

    @property
    def waiting(self) -> bool:
        """Whether the next `flush` writes an object."""
        return bool(self._chunks)

    def add(self, data: bytes) -> tuple[Extent, ...]:
        """Adds `data` and returns its extents, which are valid after the next `flush`; empty for no data."""
        if not data:
            return ()
        if self._size and self._size + len(data) > STAGING_BYTES:
            self.flush()
        extent = Extent(self._name(), self._size, len(data), crc64nvme(data))
        self._chunks.append(data)
        self._size += len(data)
        self.bytes += len(data)
        return (extent,)

    def flush(self) -> None:
        """Writes the added data to the store."""
        if self._chunks:
            self._s3.put(self._name(), self._chunks)
            self._chunks, self._size = [], 0
            self._written += 1

    def _name(self) -> str:
        return f"{self._prefix}-{self._written}"


class StagingReader:
    """Reads the remainders of one task. Small ones are read in windows, which the task's other topic-partitions
    share."""

    def __init__(self, s3: S3Client) -> None:
        self._s3 = s3
        self._windows: OrderedDict[tuple[str, int], bytes] = OrderedDict()

    def read(self, extents: Iterable[Extent]) -> bytes:
        """The concatenated bytes of these extents.

        Raises StagedDataLost when an extent is missing or was changed.
        """
        return b"".join(self._one(extent) for extent in extents)

    def _one(self, extent: Extent) -> bytes:
        try:
            data = self._bytes(extent)
        except NotFound:
            raise StagedDataLost(f"{self._s3.url_of(extent.name)} is missing") from None
        if len(data) != extent.length or crc64nvme(data) != extent.crc:
            raise StagedDataLost(
                f"{self._s3.url_of(extent.name)} was changed: bytes {extent.offset} to "
                f"{extent.offset + extent.length - 1} do not match their checksum"
            )
        return data

    def _bytes(self, extent: Extent) -> bytes:
        number, start = divmod(extent.offset, WINDOW)
        end = start + extent.length
        if 8 * extent.length > WINDOW or end > WINDOW:
            return self._s3.get_range(extent.name, extent.offset, extent.length)
        return self._window(extent.name, number)[start:end]

    def _window(self, name: str, number: int) -> bytes:
        window = self._windows.pop((name, number), None)
        if window is None:
            window = self._s3.get_range(name, number * WINDOW, WINDOW)
            if len(self._windows) == WINDOWS:
                self._windows.popitem(last=False)
        self._windows[name, number] = window
        return window
