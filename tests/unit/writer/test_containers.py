"""Objects that contain the schema of their records, from values to the bytes of objects: over rounds and restarts, and
in a rebuild."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.enums import OutputFormat, SchemaCompatibility
from sink_job.connect.schema import schema_id
from sink_job.formats.part_assembler import PartAssembler
from sink_job.formats.spill_buffer import SpillPool
from sink_job.ledger.state import ClosedObject
from sink_job.writer.row_selection import object_rows
from tests.support.format_settings import with_blocks
from tests.unit.rotation.settings import object_settings
from tests.unit.writer.one_partition import TP, batches
from tests.unit.writer.test_projection import (
    ONE,
    ROTATIONS,
    TWO,
    VERSIONS,
    WIRE_FORMAT,
    ProjectingPartition,
    Version,
    values,
    versions,
)

MODES = [SchemaCompatibility.NONE, SchemaCompatibility.SEPARATE, SchemaCompatibility.BACKWARD]
OUTPUTS = [OutputFormat.AVRO, OutputFormat.PARQUET]
BLOCK = 120
PART = 300


def partition(
    output: OutputFormat,
    chosen: Sequence[Version],
    *,
    mode: SchemaCompatibility = SchemaCompatibility.NONE,
    rotation: dict[str, Any] | None = None,
) -> ProjectingPartition:
    """A topic-partition with small parts and blocks."""
    sections = object_settings(
        format={"converter": "Avro", "output": str(output)},
        wire_format=WIRE_FORMAT,
        rotation=rotation or {"flushSize": 1000},
        partitioner={"type": "Field", "fields": ["path"]},
    )
    small = {
        "format": with_blocks(sections.format, BLOCK),
        "s3": sections.s3.model_copy(update={"part_size": PART}),
        "schema_compatibility": mode,
    }
    return ProjectingPartition(sections.model_copy(update=small), versions=chosen)


def encoded_again(one: ProjectingPartition, o: ClosedObject, records: Sequence[bytes]) -> bytes:
    """The bytes of an object from its source ranges and Kafka's records, as a rebuild writes them."""
    pipeline, parts = one.pipeline, list[bytes]()
    with SpillPool(1 << 20) as pool:
        assembler = PartAssembler(part_size=PART, encoder=pipeline.object_encoder(o.key, o.topic, o.schema), spool=pool)
        for batch in batches(0, records):
            for _, _, rows in object_rows([o], batch, lambda each, clock: pipeline.prepare(each, clock, TP)):
                parts += map(bytes, assembler.append(rows.data, rows.ends))
        return b"".join([*parts, *map(bytes, assembler.finish())])


@given(
    output=st.sampled_from(OUTPUTS),
    mode=st.sampled_from(MODES),
    chosen=versions(),
    rounds=st.lists(st.lists(st.integers(0, 3), max_size=12), min_size=1, max_size=4),
    rotation=ROTATIONS,
)
def test_objects_do_not_depend_on_rounds_and_restarts_and_a_rebuild_writes_the_same_bytes(
    output: OutputFormat,
    mode: SchemaCompatibility,
    chosen: list[Version],
    rounds: list[list[int]],
    rotation: dict[str, Any],
) -> None:
    sequence = [each % len(chosen) for one in rounds for each in one]
    records = [chosen[each].data(n) for n, each in enumerate(sequence)]
    whole, divided = (partition(output, chosen, mode=mode, rotation=rotation) for _ in range(2))
    whole.round(0, records, close=True)
    at = 0
    for number, one in enumerate(rounds):
        divided.round(0, records[at : at + len(one)], close=number == len(rounds) - 1)
        at += len(one)
    assert [(o.key, divided.content(o)) for o in divided.named] == [(o.key, whole.content(o)) for o in whole.named]
    for o in divided.named:
        assert encoded_again(divided, o, records) == divided.content(o)


@pytest.mark.parametrize("rounds", [(2,), (1, 1)])
def test_field_ids_are_assigned_in_the_order_of_records_and_not_of_closes(rounds: tuple[int, ...]) -> None:
    """The object of the second record closes first, by its size."""
    large: dict[str, Any] = {"name": "note", "type": "string"}
    fields = [{"name": "path", "type": "string"}]
    schemas = [{"type": "record", "name": "R", "fields": each} for each in (fields, [large, *fields])]
    small, other = (
        Version(schema, {"path": str, "note": lambda n: "x" * 30}, version) for version, schema in enumerate(schemas, 1)
    )
    one = partition(OutputFormat.PARQUET, [small, other], rotation={"scope": "Object", "maxBytes": 30})
    records = [small.data(0), other.data(1)]
    for count in rounds:
        one.round(0, records[:count])
        records = records[count:]
    assert one.field_ids.topics == {"log": {"path": 1, "note": 2}}


def test_the_source_range_of_an_object_begins_at_its_first_record_and_ends_after_its_last() -> None:
    one = partition(OutputFormat.AVRO, VERSIONS)
    one.round(0, values("11111"), close=True)  # two batches
    one.round(0, values("11"), close=True)
    assert [[(each.start, each.end) for each in o.sources] for o in one.named] == [[(0, 5)], [(5, 7)]]


def test_an_avro_object_holds_its_records_under_its_schema() -> None:
    one = partition(OutputFormat.AVRO, VERSIONS)
    one.round(0, values("11"))
    one.round(0, values("2211")[2:], close=True)
    (o,) = one.named
    assert list(fastavro.reader(io.BytesIO(one.content(o)))) == [{"path": "p", "n": n} for n in (0, 1, 2, 3)]


def test_a_projected_record_is_data_of_the_schema_of_its_object() -> None:
    one = partition(OutputFormat.AVRO, VERSIONS, mode=SchemaCompatibility.BACKWARD)
    one.round(0, values("21"), close=True)
    read = list(fastavro.reader(io.BytesIO(one.content(one.named[0]))))
    assert read == [{"path": "p", "n": 0, "b": 0}, {"path": "p", "n": 1, "b": 5}]


@pytest.mark.parametrize("mode", MODES)
def test_the_schema_of_a_container_is_stored_when_it_opens(mode: SchemaCompatibility) -> None:
    one = partition(OutputFormat.AVRO, VERSIONS, mode=mode)
    one.round(0, values("12"))
    opened = {o.schema for o in one.objects}
    assert opened == {schema_id(each.connect) for each in (ONE, TWO)}
    assert one.schemas.schemas.keys() == opened


def test_the_size_of_a_record_is_its_datum_and_four_bytes() -> None:
    one = partition(OutputFormat.AVRO, VERSIONS)
    one.round(0, values("1"))
    assert one.state.open[0].size == len(ONE.data(0)) - 5 + 4


def test_a_block_over_several_rounds_is_staged_as_it_came() -> None:
    one = partition(OutputFormat.AVRO, VERSIONS)
    one.round(0, values("1"))
    one.round(0, values("11")[1:])
    (o,) = one.state.open
    assert (len(o.partial_block), o.blocks, o.index) == (2, (), ())


def test_a_record_without_a_schema_is_a_data_error() -> None:
    sections = object_settings(format={"converter": "ConnectJson", "output": "Avro"}, rotation={"flushSize": 9})
    one = ProjectingPartition(sections, tolerant=True)
    schema = b'{"type": "struct", "name": "s", "fields": [{"field": "a", "type": "int32"}]}'
    result = one.round(0, [b'{"schema": null, "payload": {"a": 1}}', b'{"schema": %b, "payload": {"a": 1}}' % schema])
    assert [(each.offset, "no schema" in each.message) for each in result.rejected] == [(0, True)]
    assert [o.count for o in one.state.open] == [1]
