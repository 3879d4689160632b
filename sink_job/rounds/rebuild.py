"""Making objects again whose upload or leftovers are gone, from their recorded members (P2).

What a round has cut is never cut anew: the task reads the recorded stretches again, under the clocks they had then,
takes the records whose path is the object's, and writes them to a new upload. The tally must come out as recorded;
otherwise Kafka no longer holds the records, and that is data loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sink_job.api.types import TopicPartition
from sink_job.formats.spool import Spool
from sink_job.rounds.objects import ObjectWriter, Uploads
from sink_job.rounds.pieces import pieces
from sink_job.rounds.share import TaskShare
from sink_job.rounds.state import NamedObject, OpenObject, Part, Tally
from sink_job.s3.checksums import combine_all


class RebuildInput(msgspec.Struct, frozen=True):
    """The objects of one topic-partition to make again, all begun under the same settings."""

    named: tuple[NamedObject, ...] = ()
    open: tuple[OpenObject, ...] = ()

    def stretch(self) -> tuple[int, int]:
        """The offsets `[start, end)` to read."""
        objects: tuple[NamedObject | OpenObject, ...] = (*self.named, *self.open)
        return min(o.first for o in objects), max(o.last for o in objects) + 1


class Missing(msgspec.Struct, frozen=True):
    """An object that cannot be made again: how many of its records Kafka still holds."""

    path: str
    first: int
    last: int
    found: Tally
    wanted: Tally


class RebuildResult(msgspec.Struct, frozen=True):
    """The objects under their new uploads."""

    named: tuple[NamedObject, ...] = ()
    open: tuple[OpenObject, ...] = ()
    missing: tuple[Missing, ...] = ()


class RebuildShare(TaskShare):
    """A task's share of the rebuilding: takes a `RebuildInput` for each topic-partition and returns a `RebuildResult`,
    both msgpack."""

    def __call__(self, tp: TopicPartition, given: bytes, batches: Iterator[pa.RecordBatch]) -> bytes:
        wanted = msgspec.msgpack.decode(given, type=RebuildInput)
        with Spool(self.settings.budget) as spool:
            return msgspec.msgpack.encode(_Rebuilder(self, tp, wanted, spool).run(batches))


class _Rebuilder:
    def __init__(self, share: TaskShare, tp: TopicPartition, wanted: RebuildInput, spool: Spool) -> None:
        settings = share.settings
        self._share = share
        self._tp = tp
        self._wanted = wanted
        self._spool = spool
        self._pipeline = share.pipeline
        self._uploads = Uploads(share.s3, threads=settings.threads, bodies=settings.bodies)
        self._objects: Sequence[NamedObject | OpenObject] = (*wanted.named, *wanted.open)
        self._writers = [self._writer(o) for o in self._objects]

    def _writer(self, o: NamedObject | OpenObject) -> ObjectWriter:
        return ObjectWriter(
            key=self._pipeline.key(self._tp, o.path, o.first),
            uploads=self._uploads,
            staged=self._share.staged,
            spool=self._spool,
            compression=self._pipeline.compression,
            part_size=self._share.shaping.s3.part_size,
            was=None,
        )

    def run(self, batches: Iterator[pa.RecordBatch]) -> RebuildResult:
        for batch in batches:
            offsets = batch.column("offset").to_numpy()
            for clock in self._clocks(int(offsets[0]), int(offsets[-1])):
                self._take(batch, clock)
        missing = tuple(self._missing())
        if missing:
            return RebuildResult(missing=missing)
        split = len(self._wanted.named)
        return RebuildResult(self._named(self._writers[:split]), self._open(self._writers[split:]))

    def _clocks(self, first: int, last: int) -> list[int]:
        """The round clocks under which records between these offsets were seen."""
        stretches = (s for o in self._objects for s in o.seen)
        return sorted({s.clock for s in stretches if s.start <= last and s.end > first})

    def _take(self, batch: pa.RecordBatch, clock: int) -> None:
        """Gives each object its records of the batch among those that were seen under `clock`."""
        prepared = self._pipeline.prepare(batch, clock, self._tp)
        rows = prepared.rows
        codes = {path: code for code, path in enumerate(rows.paths)}
        chosen = [
            (writer, np.flatnonzero((rows.codes == codes[o.path]) & _seen(o, clock, rows.offsets)))
            for o, writer in zip(self._objects, self._writers, strict=True)
            if o.path in codes
        ]
        chosen = [(writer, mine) for writer, mine in chosen if len(mine)]
        for (writer, _), piece in zip(chosen, pieces(prepared, [mine for _, mine in chosen]), strict=True):
            writer.append(piece)

    def _missing(self) -> Iterator[Missing]:
        for o, writer in zip(self._objects, self._writers, strict=True):
            if writer.offsets != o.offsets:
                yield Missing(o.path, o.first, o.last, writer.offsets, o.offsets)

    def _named(self, writers: Sequence[ObjectWriter]) -> tuple[NamedObject, ...]:
        for writer in writers:
            writer.finish()
        return tuple(_renamed(o, *writer.result()) for o, writer in zip(self._wanted.named, writers, strict=True))

    def _open(self, writers: Sequence[ObjectWriter]) -> tuple[OpenObject, ...]:
        staging = self._share.staging
        objects = []
        for o, writer in zip(self._wanted.open, writers, strict=True):
            left = writer.leave()
            upload, parts = writer.result()
            sealed, loose = staging.add(left.sealed), staging.add(left.loose)
            objects.append(msgspec.structs.replace(o, upload=upload, parts=parts, sealed=sealed, loose=loose))
        return tuple(objects)


def _seen(o: NamedObject | OpenObject, clock: int, offsets: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    chosen = np.zeros(len(offsets), dtype=np.bool_)
    for stretch in o.seen:
        if stretch.clock == clock:
            chosen |= (offsets >= stretch.start) & (offsets < stretch.end)
    return chosen


def _renamed(o: NamedObject, upload: str | None, parts: tuple[Part, ...]) -> NamedObject:
    assert upload is not None, "a rebuilt object has at least one record, so at least one part"
    crc = combine_all((p.crc, p.size) for p in parts)
    return msgspec.structs.replace(o, upload=upload, parts=parts, bytes=sum(p.size for p in parts), crc=crc)
