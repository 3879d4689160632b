"""Records that are projected to the schema of their object, from values to the bytes of objects.

The reference is slow: the record-by-record rotator of `tests.unit.rotation.oracle`, and Connect's rules value by value
of `tests.unit.connect.oracle`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.enums import SchemaCompatibility
from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.avro.to_connect import connect_schema, parse_registered
from sink_job.connect.json_encoder import json_text
from sink_job.connect.schema import Schema, schema_id
from sink_job.ledger.offset_checksum import checksum
from sink_job.ledger.state import ClosedObject
from sink_job.rotation.policy import RotationPolicy
from sink_job.s3 import S3Client, UploadedPart
from sink_job.s3.request_body import Body, ChunkedBody
from sink_job.writer.record_pipeline import RecordPipeline
from sink_job.writer.row_selection import object_rows
from sink_job.writer.schema_stores import InMemoryFieldIds, InMemoryObjectSchemas, SchemaStores
from tests.unit.avro.avro_data import Table, datum, in_wire_format, record, registered
from tests.unit.connect import oracle
from tests.unit.connect.strategies import mostly
from tests.unit.rotation.oracle import CheckedPolicy, NaiveObject, NaiveRotator, OneRecord
from tests.unit.rotation.settings import object_settings
from tests.unit.writer.one_partition import TP, MemoryStore, OnePartition, batches

PROJECTING = [SchemaCompatibility.BACKWARD, SchemaCompatibility.FULL, SchemaCompatibility.FORWARD]
WIRE_FORMAT = {"type": "Confluent", "subjects": "TopicName", "idIn": "Value"}


@dataclass(frozen=True)
class Version:
    """A version of a subject: its Avro schema and a value for each number."""

    schema: dict[str, Any]
    fields: dict[str, Callable[[int], object]]
    version: int

    @property
    def connect(self) -> Schema:
        return connect_schema(parse_registered(registered(self.schema)), self.version)

    def value(self, number: int) -> dict[str, object]:
        return {name: of(number) for name, of in self.fields.items()}

    def data(self, number: int) -> bytes:
        return in_wire_format(self.version, datum(self.schema, self.value(number)))


FIELDS: dict[str, list[tuple[Any, Callable[[int], object]]]] = {
    "a": [("long", lambda n: n * 10**10), ("int", lambda n: n)],
    "b": [(["null", "long"], lambda n: n if n % 2 else None)],
    "c": [({"type": "string", "connect.default": "y" * 20}, lambda n: "z" * (n % 7))],
    "d": [(["null", "string"], lambda n: "ä" * 9), ("string", lambda n: "ä")],
}
"""The types that a field can have in a version, each with a function from a number to a value. Some versions cannot be
projected to others."""


@st.composite
def versions(draw: Any) -> list[Version]:
    found = []
    for number in range(1, draw(st.integers(1, 4)) + 1):
        chosen = {name: draw(mostly(*types)) for name, types in FIELDS.items() if draw(st.booleans())}
        chosen["path"] = ("string", lambda n: str(n % 3))
        schema = record(*((name, of) for name, (of, _) in chosen.items()))
        found.append(Version(schema, {name: of for name, (_, of) in chosen.items()}, number))
    return found


class Parts(MemoryStore):
    """Keeps uploaded parts, by upload."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: dict[str, dict[int, bytes]] = {}

    def upload_part(self, key: str, upload: str, number: int, body: Body) -> UploadedPart:
        self.parts.setdefault(upload, {})[number] = bytes(ChunkedBody(body).read())
        return super().upload_part(key, upload, number, body)


@dataclass
class ProjectingPartition(OnePartition):
    """A topic-partition whose tasks share nothing but the ledger."""

    versions: Sequence[Version] = ()
    store: S3Client = field(default_factory=lambda: cast("S3Client", Parts()))
    schemas: InMemoryObjectSchemas = field(default_factory=InMemoryObjectSchemas)
    field_ids: InMemoryFieldIds = field(default_factory=InMemoryFieldIds)

    @property
    def pipeline(self) -> RecordPipeline:
        table = Table({str(each.version): registered(each.schema, version=each.version) for each in self.versions})
        return RecordPipeline.of(self.object_settings, ErrorsSpec(), SchemaStores(table, self.schemas, self.field_ids))

    def content(self, o: ClosedObject) -> bytes:
        parts = cast("Parts", self.store).parts[o.upload]
        return b"".join(body for _, body in sorted(parts.items()))


@dataclass
class Reference(NaiveRotator):
    """The slow rotator with the real sizes of records. `line` encodes the record of an offset under a schema."""

    line: Callable[[int, str | None], bytes] = lambda offset, schema: b""

    def size_in(self, record: OneRecord, target: NaiveObject) -> int:
        return len(self.line(record.offset, target.schema))

    def content(self, o: NaiveObject) -> bytes:
        return b"".join(self.line(offset, o.schema) for offset in o.offsets)


class Expected:
    """The reference over a sequence of versions: record `n` has the version `sequence[n]`."""

    def __init__(self, mode: SchemaCompatibility, given: Sequence[Version], sequence: Sequence[int]) -> None:
        self._mode = mode
        self._connect = [each.connect for each in given]
        self._by_id = {schema_id(each): each for each in self._connect}
        self._given, self._sequence = given, sequence

    def line(self, offset: int, schema: str | None) -> bytes:
        assert schema is not None
        version = self._sequence[offset]
        value, target = self._given[version].value(offset), self._by_id[schema]
        return json_text(target, oracle.project(self._connect[version], value, target)) + b"\n"

    def closes(self, of_object: str, of_record: str) -> bool:
        current, record = self._by_id[of_object], self._by_id[of_record]
        return oracle.should_change_schema(self._mode, record, current) or not self.is_possible(record, current)

    def is_possible(self, record: Schema, current: Schema) -> bool:
        value = next(g.value(1) for g, c in zip(self._given, self._connect, strict=True) if c == record)
        try:
            oracle.project(record, value, current)
        except oracle.Impossible:
            return False
        return True

    def records(self, start: int, end: int) -> Iterator[OneRecord]:
        for n in range(start, end):
            schema = schema_id(self._connect[self._sequence[n]])
            yield OneRecord(n, f"path={n % 3}", size=len(self.line(n, schema)), schema=schema)


ROTATIONS = st.fixed_dictionaries(
    {"flushSize": st.integers(1, 9), "scope": st.sampled_from(["Partition", "Object"])},
    optional={"maxBytes": st.integers(30, 300), "maxOpenObjects": st.integers(1, 3)},
)


@given(
    mode=st.sampled_from(PROJECTING),
    chosen=versions(),
    rounds=st.lists(st.lists(st.integers(0, 3), max_size=12), min_size=1, max_size=4),
    rotation=ROTATIONS,
)
def test_objects_of_random_versions_rounds_and_restarts_have_the_bytes_of_the_reference(
    mode: SchemaCompatibility, chosen: list[Version], rounds: list[list[int]], rotation: dict[str, Any]
) -> None:
    rounds = [[each % len(chosen) for each in one] for one in rounds]
    one = partition(mode, chosen, rotation)
    sequence = [each for of_round in rounds for each in of_round]
    expected = Expected(mode, chosen, sequence)
    policy = RotationPolicy.of(one.object_settings)
    checked = CheckedPolicy(**vars(policy), closes=expected.closes)
    reference = Reference(checked, line=expected.line)
    for number, of_round in enumerate(rounds):
        start = one.state.next
        is_last = number == len(rounds) - 1
        one.round(number, [chosen[each].data(start + n) for n, each in enumerate(of_round)], close=is_last)
        reference.round(number, [*expected.records(start, start + len(of_round))], start + len(of_round))
    naive = [o for group in [*reference.closed, reference.open] for o in group]
    assert {(o.path, o.first): one.content(o) for o in one.named} == {
        (o.path, o.offsets[0]): reference.content(o) for o in naive
    }
    expect_selected_again(one, sequence, chosen)


def expect_selected_again(one: ProjectingPartition, sequence: list[int], chosen: list[Version]) -> None:
    """A rebuild selects the same records and writes the same bytes."""
    found: dict[int, list[tuple[list[int], bytes]]] = {id(o): [] for o in one.named}
    pipeline = one.pipeline
    for batch in batches(0, [chosen[each].data(n) for n, each in enumerate(sequence)]):
        for o, _, rows in object_rows(one.named, batch, lambda each, clock: pipeline.prepare(each, clock, TP)):
            found[id(o)].append((rows.offsets.tolist(), bytes(rows.data)))
    for o in one.named:
        offsets = [offset for each, _ in found[id(o)] for offset in each]
        assert checksum(np.array(offsets, np.int64)) == o.offsets
        assert b"".join(data for _, data in found[id(o)]) == one.content(o)


def partition(
    mode: SchemaCompatibility, chosen: Sequence[Version], rotation: dict[str, Any] | None = None
) -> ProjectingPartition:
    sections = object_settings(
        format={"converter": "Avro"},
        wire_format=WIRE_FORMAT,
        rotation=rotation or {"flushSize": 1000},
        partitioner={"type": "Field", "fields": ["path"]},
    )
    return ProjectingPartition(sections.model_copy(update={"schema_compatibility": mode}), versions=chosen)


# -- tables ------------------------------------------------------------------------------------------------------------

BASE: dict[str, Callable[[int], object]] = {"path": lambda n: "p", "n": lambda n: n}
ONE = Version(record(("path", "string"), ("n", "long")), BASE, 1)
TWO = Version(
    record(("path", "string"), ("n", "long"), ("b", {"type": "int", "connect.default": 5})), BASE | {"b": int}, 2
)
THREE = Version(record(("path", "string"), ("n", "long"), ("b", "int")), BASE | {"b": int}, 3)
OTHER = Version(record(("path", "string"), ("n", "long"), name="S"), BASE, 4)
VERSIONS = [ONE, TWO, THREE, OTHER]
BACKWARD = [
    ("1122", [(1, 0, 1), (2, 2, 3)]),
    ("2211", [(2, 0, 3)]),
    ("1212", [(1, 0, 0), (2, 1, 3)]),
    ("31", [(3, 0, 0), (1, 1, 1)]),  # 1 lacks a required field of 3
    ("2141", [(2, 0, 1), (4, 2, 2), (1, 3, 3)]),  # another name
]
FORWARD = [
    ("1122", [(1, 0, 3)]),
    ("2211", [(2, 0, 1), (1, 2, 3)]),
    ("2121", [(2, 0, 0), (1, 1, 3)]),
    ("13", [(1, 0, 1)]),
    ("1412", [(1, 0, 0), (4, 1, 1), (1, 2, 3)]),
]


@pytest.mark.parametrize(
    ("mode", "sequence", "expected"),
    [
        *((mode, *row) for mode in ("Backward", "Full") for row in BACKWARD),
        *(("Forward", *row) for row in FORWARD),
    ],
)
def test_an_object_closes_for_a_newer_or_an_older_version_or_an_impossible_projection(
    mode: str, sequence: str, expected: list[tuple[int, int, int]]
) -> None:
    one = partition(SchemaCompatibility(mode), VERSIONS)
    one.round(0, values(sequence), close=True)
    numbers = {schema_id(each.connect): each.version for each in VERSIONS}
    assert [(numbers[o.schema or ""], o.first, o.last) for o in one.named] == expected


def values(sequence: str) -> list[bytes]:
    return [VERSIONS[int(each) - 1].data(n) for n, each in enumerate(sequence)]


def test_a_projected_record_has_the_fields_of_the_schema_of_its_object() -> None:
    one = partition(SchemaCompatibility.BACKWARD, VERSIONS)
    one.round(0, values("21"), close=True)
    assert one.content(one.named[0]) == b'{"path":"p","n":0,"b":0}\n{"path":"p","n":1,"b":5}\n'


def test_the_schema_of_an_object_is_stored_when_it_opens() -> None:
    one = partition(SchemaCompatibility.FORWARD, VERSIONS)
    one.round(0, values("12"))
    assert [*one.schemas.schemas.values()] == [ONE.connect]


def test_without_projection_no_schema_of_an_object_is_stored() -> None:
    one = partition(SchemaCompatibility.SEPARATE, VERSIONS)
    one.round(0, values("12"))
    assert one.schemas.schemas == {}


def test_a_record_in_no_version_of_its_subject_is_rejected_once() -> None:
    one = partition(SchemaCompatibility.BACKWARD, [ONE])
    table = Table({"1": registered(ONE.schema, version=1), "7": registered(ONE.schema)})
    valid, invalid = in_wire_format(7, ONE.data(0)[5:]), in_wire_format(7, b"")
    (batch,) = batches(0, [valid, ONE.data(1), invalid])
    prepared = one.pipeline.with_stores(SchemaStores(table)).prepare(batch, 0, TP)
    assert [(error.row, "no version" in error.message) for error in prepared.errors] == [(0, True), (2, False)]
    assert prepared.rows.codes.tolist() == [-1, 0, -1]


def test_records_that_cannot_be_projected_any_more_are_written_as_they_came_by_a_rebuild() -> None:
    """Kafka holds other records than those that were read. The comparison of the offsets decides, not an exception."""
    one = partition(SchemaCompatibility.BACKWARD, VERSIONS)
    one.round(0, values("32"), close=True)
    (batch,) = batches(0, values("31"))
    ((_, _, rows),) = object_rows(one.named[:1], batch, lambda each, clock: one.pipeline.prepare(each, clock, TP))
    assert bytes(rows.data) == b'{"path":"p","n":0,"b":0}\n{"path":"p","n":1}\n'
