"""Runs the real rotator over rounds of records and gathers what it does, in the words of the oracle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from sink_job.arrow.arrays import Indices, Integers
from sink_job.records.batch import NO_SCHEMA, REJECTED, REJECTED_PATH, Rows, SchemaCheck
from sink_job.rotation.policy import RotationPolicy
from sink_job.rotation.rotator import Rotator
from sink_job.rotation.types import Append, Close, ObjectId, OpenObjectState, RotationState, Step
from tests.unit.rotation.oracle import NaiveObject, NaiveRotator, OneRecord, check_of, projected_size

Cut = tuple[str, list[int], int, int, int | None, str | None]
"""An object: its path, offsets, bytes, the clock it was opened at, its base and its schema."""


@dataclass(frozen=True)
class Round:
    """A round: its clock, its records spread over batches, and its planned end."""

    now: int
    batches: list[list[OneRecord]]
    end: int


def rows_of(records: Sequence[OneRecord], closes: SchemaCheck | None = None) -> Rows:
    """The columns of `records`; times are there when any record has one. With `closes`, records are projected."""
    paths = list(dict.fromkeys(r.path for r in records if r.path is not None))
    codes = [
        (REJECTED_PATH if r.path_rejected else REJECTED) if r.path is None else paths.index(r.path) for r in records
    ]
    schemas = list(dict.fromkeys(r.schema for r in records if r.schema is not None))
    schema_codes = [NO_SCHEMA if r.schema is None else schemas.index(r.schema) for r in records]
    sizes = np.array([r.size for r in records], np.int64)

    def projected_sizes(schema: str, rows: Indices) -> Integers:
        return np.array([projected_size(size, schema) for size in sizes[rows].tolist()], np.int64)

    timed = any(r.time is not None for r in records)
    return Rows(
        offsets=np.array([r.offset for r in records], np.int64),
        codes=np.array(codes, np.int32),
        paths=paths,
        times=np.array([r.time or 0 for r in records], np.int64) if timed else None,
        sizes=sizes,
        schemas=np.array(schema_codes, np.int32) if schemas else None,
        schema_ids=schemas,
        closes=closes,
        projected_sizes=projected_sizes if closes is not None else None,
    )


@dataclass
class Replay:
    """A partition that goes through rounds; keeps its objects' offsets beside the rotator's state."""

    settings: RotationPolicy
    state: RotationState = field(default_factory=lambda: RotationState.start(0))
    objects: list[OpenObjectState] = field(default_factory=list)
    offsets: dict[ObjectId, list[int]] = field(default_factory=dict)
    closed: list[list[Cut]] = field(default_factory=list)
    rotation_ends: list[int] = field(default_factory=list)
    """Number of the appended offsets before each Close that ends a rotation."""
    possible_rotation_ends: list[int] = field(default_factory=list)
    """Number of the appended offsets before each Close after which no object is open."""
    appended: list[int] = field(default_factory=list)
    """All appended offsets, in the order of the steps."""

    def round(self, this: Round) -> None:
        rotator = Rotator(self.settings, self.state, self.objects, this.now)
        self.take(rotator.open_round())
        for batch in this.batches:
            rows = rows_of(batch, None if self.settings.separate else check_of(self.settings))
            self.take(rotator.add(rows), rows)
        self.take(rotator.close_round(this.end))
        self.state, self.objects = rotator.state, list(rotator.open.values())

    def take(self, steps: Iterable[Step], rows: Rows | None = None) -> None:
        for step in steps:
            if isinstance(step, Append):
                assert rows is not None
                self.offsets.setdefault(step.target, []).extend(rows.offsets[step.rows].tolist())
                self.appended += rows.offsets[step.rows].tolist()
            elif isinstance(step, Close):
                self.closed.append([self.cut(cut, self.offsets.pop(cut.id)) for cut in step.objects])
                if step.ends_rotation:
                    self.rotation_ends.append(len(self.appended))
                if not self.offsets:
                    self.possible_rotation_ends.append(len(self.appended))

    @staticmethod
    def cut(cut: OpenObjectState, offsets: list[int]) -> Cut:
        assert (cut.first, cut.last, cut.count) == (offsets[0], offsets[-1], len(offsets))
        return cut.path, offsets, cut.size, cut.opened_at, cut.interval_start, cut.schema

    @property
    def open(self) -> list[Cut]:
        return [self.cut(cut, self.offsets[cut.id]) for cut in self.objects]


def naive(settings: RotationPolicy, rounds: Iterable[Round]) -> NaiveRotator:
    """The oracle after the same rounds."""
    rotator = NaiveRotator(settings)
    for this in rounds:
        rotator.round(this.now, [record for batch in this.batches for record in batch], this.end)
    return rotator


def naive_cut(o: NaiveObject) -> Cut:
    return o.path, o.offsets, o.size, o.opened_at, o.base, o.schema
