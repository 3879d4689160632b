"""`python -m bench.ledger_growth`: the bytes of records and snapshots that a sink writes in a day, without Spark and
S3.

Every partition has one open object whose path is the day (or hour) of the round's clock, and gets records in every
round. States, changes and their encoding are the sink's own. Records are measured at some rounds of the day; the sums
of the day are computed from these. `--before` writes a range for each round and whole lists in each record, as the sink
did before it had path clocks.
"""

from __future__ import annotations

import argparse
import gzip
import random
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import SNAPSHOT_INTERVAL_RECORDS
from sink_job.ledger.staging import new_prefix
from sink_job.ledger.state import (
    Extent,
    LedgerState,
    OffsetChecksum,
    OpenObject,
    Part,
    PartitionDelta,
    PartitionState,
    Record,
    SourceRange,
)
from sink_job.ledger.transitions import diff
from sink_job.rotation.types import OpenObjectState, RotationState
from sink_job.writer.object_writer import MAX_STAGED_EXTENTS, extend_sources
from sink_job.writer.record_pipeline import RecordPipeline

DAY_MS = 86_400_000
MIDNIGHT = 1_700_006_400_000
ROOT = "topics/_s3sink/default.sink/"
TASKS = 2
SAMPLES = 48


class Rates(NamedTuple):
    """The records of a partition in a round."""

    records: int
    record_bytes: int
    part_bytes: int


class Partition:
    """A topic-partition during the rounds of a day."""

    def __init__(self, number: int, pipeline: RecordPipeline, rates: Rates, *, before: bool) -> None:
        self.tp = TopicPartition("events", number)
        self.state = PartitionState(RotationState.start(0), rotation_start=0)
        self._random = random.Random(number)
        self._pipeline = pipeline
        self._rates = rates
        self._before = before
        self._start = self._random.randrange(10**7, 10**8)
        self._next = self._start
        self._seen: list[SourceRange] = []
        self._parts: list[Part] = []
        self._tail: list[Extent] = []
        self._size = 0
        self._clock: int | None = None
        self._path = ""
        self._offsets = OffsetChecksum()

    def round(self, now: int, prefix: str) -> None:
        """Adds a round's records; `prefix` is the name of its staging object."""
        rates, choose = self._rates, self._random
        path = self._pipeline.partitioner.time_path(now) or ""
        if path != self._path:
            self._seen, self._parts, self._tail, self._size, self._offsets = [], [], [], 0, OffsetChecksum()
            self._path, self._start = path, self._next
        self._clock = now if self._before else self._pipeline.path_clock(self._clock, now)
        count = choose.randint(1, 2 * rates.records)
        first, self._next = self._next, self._next + count
        self._seen[-1:] = extend_sources(self._seen[-1:], first, self._next, self._clock or 0)
        self._offsets += OffsetChecksum(count, choose.getrandbits(64))
        staged = sum(e.length for e in self._tail) + count * rates.record_bytes
        self._size += count * rates.record_bytes
        if staged >= rates.part_bytes:
            self._parts.append(Part(len(self._parts) + 1, f"{choose.getrandbits(128):032x}", self._crc(), staged))
            self._tail = []
        elif len(self._tail) > MAX_STAGED_EXTENTS:
            self._tail = [self._extent(prefix, staged)]
        else:
            self._tail.append(self._extent(prefix, count * rates.record_bytes))

    def _extent(self, prefix: str, length: int) -> Extent:
        return Extent(f"{prefix}-0", self.tp.partition // TASKS * length, length, self._crc())

    def _crc(self) -> int:
        return self._random.getrandbits(64)

    def now(self) -> PartitionState:
        """The ledger state after the rounds so far."""
        o = OpenObject(
            OpenObjectState(
                path=self._path,
                first=self._start,
                last=self._next - 1,
                count=self._offsets.count,
                size=self._size,
                opened_at=self._seen[0].clock,
            ),
            settings=1,
            offsets=self._offsets,
            upload=f"{self.tp.partition:064x}" if self._parts else None,
            parts=tuple(self._parts),
            sources=tuple(self._seen),
            partial_block=tuple(self._tail),
        )
        return PartitionState(
            RotationState(
                next=self._next,
                committable=self._start,
                last_time=self._seen[-1].clock,
                open_records=self._offsets.count,
                current_path=self._path,
            ),
            rotation_start=self._start,
            accepted=self._offsets,
            accepted_end=self._next,
            settings=1,
            path_clock=None if self._before else self._clock,
            open=(o,),
        )

    def change(self, old: PartitionState, new: PartitionState) -> PartitionDelta:
        """The content of the record of the last round."""
        change = diff(old, new)
        if self._before and change.kept:
            kept = change.kept[0]
            whole = msgspec.structs.replace(new.open[0], parts=new.open[0].parts[kept.parts :])
            change = msgspec.structs.replace(change, state=msgspec.structs.replace(change.state, open=(whole,)))
        return change


class Measured(NamedTuple):
    """The round `number` of the day: stored bytes of its record and of a snapshot after it."""

    number: int
    record: int
    snapshot: int


def measure(rounds: int, partitions: Sequence[Partition]) -> list[Measured]:
    """Runs a day of `rounds` rounds, and measures some of them."""
    every = max(1, rounds // SAMPLES)
    found: list[Measured] = []
    for number in range(1, rounds + 1):
        now = MIDNIGHT + (number - 1) * (DAY_MS // rounds)
        chosen = number % every == 0
        old = [p.now() for p in partitions] if chosen else []
        prefixes = [new_prefix(ROOT, 1, number) for _ in range(TASKS)]
        for p in partitions:
            p.round(now, prefixes[p.tp.partition % TASKS])
        if chosen:
            states = [p.now() for p in partitions]
            changes = {str(p.tp): p.change(a, b) for p, a, b in zip(partitions, old, states, strict=True)}
            record = Record(number=number + 1, epoch=1, attempt="a" * 32, kind="round", clock=now, partitions=changes)
            state = LedgerState(number + 1, 1, now, partitions=dict(zip(changes, states, strict=True)))
            found.append(Measured(number, stored(record), stored(state)))
    return found


def stored(what: Record | LedgerState) -> int:
    """The stored size in bytes."""
    return len(gzip.compress(msgspec.json.encode(what), 1, mtime=0))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.ledger_growth", description=__doc__)
    parser.add_argument("--seconds", type=int, default=10, help="from one round to the next (default: 10)")
    parser.add_argument("--partitions", type=int, default=64)
    parser.add_argument("--type", choices=("Daily", "Hourly"), default="Daily")
    parser.add_argument("--records", type=int, default=50, help="of a partition in a round, on average (default: 50)")
    parser.add_argument("--record-bytes", type=int, default=1_000)
    parser.add_argument("--before", action="store_true")
    given = parser.parse_args()
    sections = {"partitioner": {"type": given.type, "timezone": "UTC"}, "rotation": {"flushSize": 10**9}}
    object_settings = ObjectSettings.model_validate(sections)
    pipeline = RecordPipeline.of(object_settings, ErrorsSpec())
    rates = Rates(given.records, given.record_bytes, object_settings.s3.part_size)
    partitions = [Partition(n, pipeline, rates, before=given.before) for n in range(given.partitions)]
    rounds = 86_400 // given.seconds
    found = measure(rounds, partitions)
    records = sum(m.record for m in found) * rounds / len(found)
    snapshots = sum(m.snapshot for m in found) * rounds / len(found) / SNAPSHOT_INTERVAL_RECORDS
    first, last = found[0], found[-1]
    print(f"{given.type} paths by the clock, {given.partitions} partitions, a round every {given.seconds} s:")
    print(f"record of round {first.number:,}: {first.record / 1e3:,.1f} kB; of round {last.number:,}: ", end="")
    print(f"{last.record / 1e3:,.1f} kB; all records of the day: {records / 1e9:,.3f} GB")
    print(f"snapshot at the end of the day: {last.snapshot / 1e3:,.1f} kB; all of them: {snapshots / 1e9:,.3f} GB")


if __name__ == "__main__":
    main()
