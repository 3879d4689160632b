"""Records without a value among others, over random rounds, restarts and rebuilds: the objects depend on the records
alone, and readers find each record once."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.enums import SchemaCompatibility
from sink_job.formats.block_rows import BlockRows
from sink_job.ledger.state import ClosedObject
from sink_job.writer.row_selection import object_rows
from tests.unit.avro.avro_data import datum, in_wire_format, record
from tests.unit.rotation.settings import object_settings
from tests.unit.writer.one_partition import TP
from tests.unit.writer.test_projection import WIRE_FORMAT, ProjectingPartition, Version

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
OUTPUTS = ["Json", "Avro", "Parquet"]
VERSIONS = [
    Version(record(("n", "long"), name="V"), {"n": lambda n: n}, 1),
    Version(record(("n", "long"), ("s", ["null", "string"]), name="V"), {"n": lambda n: n, "s": lambda n: "ä"}, 2),
]
OPTIONAL = ["null", record(("n", "long"), name="V")]
NULL_OF_AVRO = in_wire_format(3, datum(OPTIONAL, None))
"""A value that is null for its converter, and not for Kafka."""
WITH_NULL = Version(OPTIONAL, {"n": lambda n: n}, 3)  # type: ignore[arg-type]


@dataclass
class NullPartition(ProjectingPartition):
    """A topic-partition whose batches have all columns of an envelope."""

    def batches(self, first: int, values: Sequence[bytes]) -> Iterator[pa.RecordBatch]:
        for at in range(0, len(values), 3):
            offsets = range(first + at, first + at + len(values[at : at + 3]))
            yield pa.RecordBatch.from_pydict(
                {
                    "offset": pa.array(offsets, pa.int64()),
                    "value": pa.array(values[at : at + 3], pa.binary()),
                    "timestamp": pa.array(offsets, pa.int64()),
                    "timestamp_type": pa.array([0] * len(offsets), pa.int8()),
                    "key": pa.array([f"k{offset}".encode() for offset in offsets], pa.binary()),
                    "headers": pa.nulls(len(offsets), HEADERS),
                }
            )


def partition(
    output: str, mode: SchemaCompatibility, rotation: dict[str, Any], path: str | None = None
) -> NullPartition:
    sections = object_settings(
        format={"converter": "Avro", "output": output, "envelope": True},
        wire_format=WIRE_FORMAT,
        rotation=rotation,
        null_values={"tombstonePath": path},
    )
    settings = sections.model_copy(update={"schema_compatibility": mode})
    return NullPartition(settings, versions=[*VERSIONS, WITH_NULL])


def value_of(kind: int | None, number: int) -> bytes | None:
    """The value of a record: None for no value, 2 for null, 0 and 1 for the versions."""
    if kind is None:
        return None
    return NULL_OF_AVRO if kind == 2 else VERSIONS[kind].data(number)


def written(one: NullPartition, rounds: Sequence[Sequence[int | None]]) -> dict[str, bytes]:
    """The content of all objects by their keys, after the last round has closed them."""
    for number, kinds in enumerate(rounds):
        start = one.state.next
        values: Any = [value_of(kind, start + n) for n, kind in enumerate(kinds)]
        one.round(0, values, close=number == len(rounds) - 1)
    assert one.state.open == ()
    return {o.key: one.content(o) for o in one.named}


def rows(output: str, body: bytes) -> list[dict[str, Any]]:
    if output == "Json":
        return [json.loads(line) for line in body.splitlines()]
    if output == "Parquet":
        found: list[dict[str, Any]] = pq.read_table(io.BytesIO(body)).to_pylist()
        return found
    return [each for each in fastavro.reader(io.BytesIO(body)) if isinstance(each, dict)]


KINDS = st.sampled_from([None, None, 0, 0, 1, 2])
ROUNDS = st.lists(st.lists(KINDS, min_size=1, max_size=8), min_size=1, max_size=5)
MODES = st.sampled_from(list(SchemaCompatibility))
ROTATIONS = st.fixed_dictionaries(
    {"flushSize": st.integers(1, 9), "scope": st.sampled_from(["Partition", "Object"])},
    optional={"maxBytes": st.integers(60, 600), "maxOpenObjects": st.integers(1, 3)},
)


@given(st.sampled_from(OUTPUTS), MODES, ROUNDS, ROTATIONS, st.sampled_from([None, "gone"]))
def test_objects_with_records_without_a_value_do_not_depend_on_rounds_restarts_and_rebuilds(
    output: str, mode: SchemaCompatibility, rounds: list[list[int | None]], rotation: dict[str, Any], path: str | None
) -> None:
    kinds = [kind for of_round in rounds for kind in of_round]
    split = partition(output, mode, rotation, path)
    found = written(split, rounds)
    assert found == written(partition(output, mode, rotation, path), [kinds])
    expect_all_records(output, found, kinds)
    expect_selected_again(split, kinds)


def expect_all_records(output: str, found: dict[str, bytes], kinds: Sequence[int | None]) -> None:
    """Each record is in one object, with a value that is null, or none, as it came."""
    read = sorted((each for body in found.values() for each in rows(output, body)), key=lambda each: each["offset"])
    assert [each["offset"] for each in read] == list(range(len(kinds)))
    assert [each["valueIsNull"] for each in read] == [kind is None for kind in kinds]
    numbers = [None if each.get("value") is None else each["value"]["n"] for each in read]
    assert numbers == [None if kind in (None, 2) else n for n, kind in enumerate(kinds)]


def expect_selected_again(one: NullPartition, kinds: Sequence[int | None]) -> None:
    """A rebuild selects the same records and writes the same bytes."""
    found: dict[str, tuple[list[int], list[bytes]]] = {o.key: ([], []) for o in one.named}
    pipeline, values = one.pipeline, [value_of(kind, n) for n, kind in enumerate(kinds)]
    for batch in one.batches(0, values):  # type: ignore[arg-type]
        for o, _, selected in object_rows(one.named, batch, lambda each, clock: pipeline.prepare(each, clock, TP)):
            found[o.key][0].extend(selected.offsets.tolist())
            found[o.key][1].extend(bytes(row) for row in np.split(selected.data, selected.ends[:-1]))
    for o in one.named:
        offsets, content = found[o.key]
        assert len(offsets) == o.offsets.count
        assert offsets == sorted(offsets)
        assert encoded(one, o, content) == one.content(o)


def encoded(one: NullPartition, o: ClosedObject, content: list[bytes]) -> bytes:
    """The object with these rows, which are one block."""
    encoder = one.pipeline.object_encoder(o.key, TP.topic, o.schema)
    header = encoder.header()
    block = encoder.block(BlockRows.of(pa.array(content, pa.binary())), len(header))
    return header + block.data + encoder.footer([block.index])


NEVER = {"flushSize": 1_000}


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("mode", [SchemaCompatibility.NONE, SchemaCompatibility.BACKWARD, SchemaCompatibility.FORWARD])
def test_a_record_without_a_value_closes_nothing(output: str, mode: SchemaCompatibility) -> None:
    one = partition(output, mode, NEVER)
    assert len(written(one, [[0, None, 0, None], [None], [0, None]])) == 1


@pytest.mark.parametrize("output", OUTPUTS)
def test_an_object_that_one_opens_has_the_schema_of_the_record_before_it(output: str) -> None:
    one = partition(output, SchemaCompatibility.NONE, {"flushSize": 2})
    written(one, [[0, 0, None], [0], [None, None], [None, 0]])
    assert [(o.first, o.last) for o in one.named] == [(0, 1), (2, 3), (4, 5), (6, 7)]
    assert len({o.schema for o in one.named}) == 1


@pytest.mark.parametrize("output", OUTPUTS)
def test_only_the_first_value_of_a_topic_partition_closes_an_object_of_records_without_one(output: str) -> None:
    one = partition(output, SchemaCompatibility.NONE, NEVER)
    written(one, [[None, None], [0, None, 0]])
    assert [(o.first, o.last) for o in one.named] == [(0, 1), (2, 4)]


@pytest.mark.parametrize("output", OUTPUTS)
def test_with_separate_they_are_in_an_object_of_their_own(output: str) -> None:
    one = partition(output, SchemaCompatibility.SEPARATE, NEVER)
    found = written(one, [[0, None, 1, None], [0, None]])
    offsets = sorted([each["offset"] for each in rows(output, body)] for body in found.values())
    assert offsets == [[0, 4], [1, 3, 5], [2]]


@pytest.mark.parametrize("output", OUTPUTS)
def test_the_path_of_tombstones_has_no_schema_of_other_records(output: str) -> None:
    one = partition(output, SchemaCompatibility.NONE, NEVER, "gone")
    found = written(one, [[0, None, 0, 2], [None]])
    offsets = {key.split("/")[2]: [each["offset"] for each in rows(output, body)] for key, body in found.items()}
    assert offsets == {"partition=0": [0, 2], "gone": [1, 3, 4]}
