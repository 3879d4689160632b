"""Leftovers between rounds: bytes of open objects that fill no part yet, staged together by the tasks of a round (P6).

All topic-partitions of a task stage into one object, so a round over many of them costs a request a task. What the
ledger keeps of each leftover is its extent: where it lies, and its checksum. So whoever reads one of its own notices by
itself that it is gone or altered, and a staging object stays until no open object refers to it.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Iterable

from sink_job.ledger.state import Extent
from sink_job.s3 import NotFound, S3Client
from sink_job.s3.checksums import crc64nvme

STAGING_BYTES = 32 << 20
"""Size at which a staging object is full and the next one is begun."""

WINDOW = 256 << 10
"""Bytes read at a time where leftovers are small: neighbours in a staging object are mostly needed together."""

WINDOWS = 64
"""Windows that a task keeps: of each of its chains' staging objects one, in 16 MiB at most."""


class StagedDataLost(Exception):
    """A staging object is gone, or not what was staged: the open objects have to be made again (P2, P6)."""


def new_prefix(root: str, epoch: int, number: int) -> str:
    """What the staging objects of one task attempt in round `number` are called below the ledger's `root`: no other
    attempt, round or epoch uses it (P6)."""
    return f"{root}staging/{epoch:020d}-{number:020d}-{uuid.uuid4().hex[:16]}"


def is_expired(name: str, epoch: int, recorded: int) -> bool:
    """Whether a staging object (its name below `staging/`) is of a lower epoch, or of this epoch's rounds up to
    `recorded`."""
    parts = name.split("-", 2)
    if len(parts) < 3 or not (parts[0].isdigit() and parts[1].isdigit()):
        return False
    return int(parts[0]) < epoch or (int(parts[0]) == epoch and int(parts[1]) <= recorded)


class StagingWriter:
    """Writes leftovers, many to an object, and says where each one is."""

    def __init__(self, s3: S3Client, prefix: str) -> None:
        """`prefix` is one that nobody else uses: see `new_prefix`."""
        self.bytes = 0
        self._s3 = s3
        self._prefix = prefix
        self._chunks: list[bytes] = []
        self._size = 0
        self._written = 0

    @property
    def waiting(self) -> bool:
        """Whether there is something that the next `flush` will put."""
        return bool(self._chunks)

    def add(self, data: bytes) -> tuple[Extent, ...]:
        """Where `data` will be once `flush` has returned; empty for no data."""
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
        if self._chunks:
            self._s3.put(self._name(), self._chunks)
            self._chunks, self._size = [], 0
            self._written += 1

    def _name(self) -> str:
        return f"{self._prefix}-{self._written}"


class StagingReader:
    """Reads leftovers back, for one task: small ones a window at a time, since its other topic-partitions need those
    around them."""

    def __init__(self, s3: S3Client) -> None:
        self._s3 = s3
        self._windows: OrderedDict[tuple[str, int], bytes] = OrderedDict()

    def read(self, extents: Iterable[Extent]) -> bytes:
        """The bytes of these extents, one behind the other.

        Raises StagingLost when one of them is gone or is not what was staged.
        """
        return b"".join(self._one(extent) for extent in extents)

    def _one(self, extent: Extent) -> bytes:
        try:
            data = self._bytes(extent)
        except NotFound:
            raise StagedDataLost(f"s3://{self._s3.bucket}/{extent.name} is gone") from None
        if len(data) != extent.length or crc64nvme(data) != extent.crc:
            raise StagedDataLost(f"s3://{self._s3.bucket}/{extent.name} is not what was staged")
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
