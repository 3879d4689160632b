"""Records without a value in envelopes: what objects contain of them, and how readers distinguish them from null."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import duckdb
import fastavro
import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given

from sink_job.api.enums import SchemaCompatibility
from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.connect.schema import schema_id
from sink_job.envelope.null_records import NULL_RECORD
from sink_job.envelope.schema import KEY_BYTES, nullable_envelope_schema
from sink_job.formats.block_rows import BlockRows, lengths_of
from sink_job.records.batch import ANY_SCHEMA, NO_SCHEMA
from sink_job.rotation.types import ObjectId
from sink_job.writer.record_pipeline import PreparedBatch, RecordPipeline
from sink_job.writer.row_slices import RowSelection, row_slices
from sink_job.writer.schema_stores import SchemaStores
from tests.unit.avro.avro_data import Table, datum, in_wire_format, record, registered, samples
from tests.unit.envelope.enveloped import FIRST, WIRE_FORMAT, Consumed, json_row, prepare
from tests.unit.rotation.settings import object_settings

FLIGHT = record(("number", "long"), name="example.Flight")
OPTIONAL = ["null", FLIGHT]
KEY = record(("id", "long"), name="example.Key")
TABLE = Table(
    {
        "1": registered(FLIGHT, version=1),
        "2": registered(OPTIONAL, 2, version=2),
        "key-5": registered(KEY, "key-5", version=1),
    }
)
OUTPUTS = ["Avro", "Parquet"]
ALL_OUTPUTS = ["Json", *OUTPUTS]


def pipeline(
    table: Table = TABLE,
    *,
    mode: SchemaCompatibility = SchemaCompatibility.NONE,
    path: str | None = None,
    partitioner: dict[str, Any] | None = None,
    **of_format: Any,
) -> RecordPipeline:
    """The pipeline of a sink that writes records without a value."""
    chosen = {"converter": "Avro", "envelope": True, **of_format}
    wire_format = WIRE_FORMAT if chosen["converter"] == "Avro" else None
    sections = object_settings(
        format=chosen, wire_format=wire_format, partitioner=partitioner, null_values={"tombstonePath": path}
    )
    sections = sections.model_copy(update={"schema_compatibility": mode})
    return RecordPipeline.of(sections, ErrorsSpec(), SchemaStores(table))


def flight(number: int, version: int = 1) -> bytes:
    schema = FLIGHT if version == 1 else OPTIONAL
    return in_wire_format(version, datum(schema, {"number": number}))


NULL_OF_AVRO = in_wire_format(2, datum(OPTIONAL, None))


def object_of(found: RecordPipeline, prepared: PreparedBatch, schema: str | None) -> bytes:
    """The object with all records of a batch, and this schema."""
    assert prepared.errors == []
    found.keep_schemas("flights", [ObjectId("", schema)], prepared.schemas)
    (rows,) = row_slices(prepared, [RowSelection(schema, slice(0, len(prepared.rows)))])
    encoder = found.object_encoder("key", "flights", schema)
    header = encoder.header()
    block = encoder.block(BlockRows([rows.data], lengths_of(np.concatenate(([0], rows.ends)))), len(header))
    return header + block.data + encoder.footer([block.index])


def read(output: str, body: bytes) -> list[dict[str, Any]]:
    if output == "Json":
        return [json.loads(line) for line in body.splitlines()]
    if output == "Parquet":
        found: list[dict[str, Any]] = pq.read_table(io.BytesIO(body)).to_pylist()
        return found
    return [each for each in fastavro.reader(io.BytesIO(body)) if isinstance(each, dict)]


class Found(NamedTuple):
    offset: int
    key: object
    value_is_null: bool
    value: object


def contents(rows: Sequence[dict[str, Any]]) -> list[Found]:
    return [Found(each["offset"] - FIRST - 1, each["key"], each["valueIsNull"], each.get("value")) for each in rows]


def queried(query: str) -> list[Any]:
    found = duckdb.sql(query)
    assert found is not None
    return found.fetchall()


def first_schema(prepared: PreparedBatch) -> str | None:
    """The schema of the first record that has one."""
    assert prepared.rows.schemas is not None
    return next((prepared.rows.schema_ids[code] for code in prepared.rows.schemas.tolist() if code >= 0), None)


# -- content -----------------------------------------------------------------------------------------------------------


def test_a_json_line_says_whether_kafkas_value_is_null() -> None:
    records = [Consumed(b"{}", b"k"), Consumed(None, b"k"), Consumed(b" null ", b"k")]
    prepared = prepare(pipeline(converter="Json"), records)
    expected = [
        json_row(each, number, value, b'"aw=="').replace(b',"value":', b',"valueIsNull":%b,"value":' % is_null)
        for number, (each, value, is_null) in enumerate(
            zip(records, [b"{}", b"null", b"null"], [b"false", b"true", b"false"], strict=True)
        )
    ]
    assert (prepared.encoded.to_pylist(), prepared.errors, prepared.ignored) == (expected, [], 0)


@pytest.mark.parametrize(("converter", "value"), [("Text", b'"null"'), ("Bytes", b'"bnVsbA=="')])
def test_a_text_is_no_null(converter: str, value: bytes) -> None:
    lines = prepare(
        pipeline(converter=converter), [Consumed(b"null"), Consumed(None), Consumed(b"")]
    ).encoded.to_pylist()
    assert [line[line.index(b'"valueIsNull"') :] for line in lines] == [
        b'"valueIsNull":false,"value":%b}\n' % value,
        b'"valueIsNull":true,"value":null}\n',
        b'"valueIsNull":false,"value":""}\n',
    ]


@pytest.mark.parametrize("output", ALL_OUTPUTS)
def test_readers_distinguish_no_value_from_null(output: str) -> None:
    found = pipeline(output=output)
    records = [Consumed(flight(0, 2), b"a"), Consumed(None, b"b"), Consumed(NULL_OF_AVRO, b"c"), Consumed(flight(1, 2))]
    prepared = prepare(found, records)
    rows = contents(read(output, object_of(found, prepared, first_schema(prepared))))
    assert [each[2:] for each in rows] == [(False, {"number": 0}), (True, None), (False, None), (False, {"number": 1})]
    assert [each.offset for each in rows] == [0, 1, 2, 3]
    keys = ["YQ==", "Yg==", "Yw==", None] if output == "Json" else [b"a", b"b", b"c", None]
    assert [each.key for each in rows] == keys


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_required_value_is_optional_from_the_first_record_on(output: str) -> None:
    found = pipeline(output=output)
    prepared = prepare(found, [Consumed(flight(0))])
    schema = prepared.schemas[str(first_schema(prepared))]
    assert schema.fields[-1].schema.optional
    with_null = prepare(found, [Consumed(flight(0)), Consumed(None)])
    assert first_schema(with_null) == first_schema(prepared)


def test_duckdb_distinguishes_them_in_parquet_and_json(tmp_path: Any) -> None:
    records = [Consumed(flight(0, 2)), Consumed(None), Consumed(NULL_OF_AVRO)]
    for output in ("Parquet", "Json"):
        found, path = pipeline(output=output), tmp_path / f"x.{output.lower()}"
        prepared = prepare(found, records)
        path.write_bytes(object_of(found, prepared, first_schema(prepared)))
        query = f"""select "valueIsNull", "value" is null from '{path}' order by "offset" """
        assert queried(query) == [(False, False), (True, True), (False, True)]


def test_duckdb_reads_objects_with_and_without_the_field_value_together(tmp_path: Any) -> None:
    found = pipeline(output="Parquet", path="gone")
    for name, records in (("a", [Consumed(flight(7))]), ("b", [Consumed(None)])):
        prepared = prepare(found, records)
        (tmp_path / f"{name}.parquet").write_bytes(object_of(found, prepared, first_schema(prepared)))
    query = (
        f"""select "valueIsNull", "value".number from read_parquet('{tmp_path}/*', union_by_name = true) order by 1"""
    )
    assert queried(query) == [(False, 7), (True, None)]


@given(samples(max_size=3))
def test_each_value_is_read_as_it_came_beside_no_value(sample: tuple[Any, list[Any]]) -> None:
    schema, values = sample
    found = pipeline(Table({"1": registered(schema, version=1)}), output="Avro")
    alone = RecordPipeline.of(
        found.object_settings.model_copy(update={"null_values": None}),
        ErrorsSpec(),
        SchemaStores(found.stores.registered),
    )
    records = [Consumed(in_wire_format(1, datum(schema, value))) for value in values]
    expected, given_ = prepare(alone, records), prepare(found, [*records, Consumed(None)])
    assume(values and not expected.errors)
    plain = read("Avro", object_of(alone, expected, first_schema(expected)))
    written = read("Avro", object_of(found, given_, first_schema(given_)))
    assert repr([each["value"] for each in written]) == repr([*(each["value"] for each in plain), None])


UNION = ["string", FLIGHT, "long"]


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_union_without_null_gets_it_as_another_type(output: str) -> None:
    found = pipeline(Table({"1": registered(UNION, version=1)}), output=output)
    values = ["ä", {"number": 5}, 7]
    prepared = prepare(found, [*(Consumed(in_wire_format(1, datum(UNION, each))) for each in values), Consumed(None)])
    rows = contents(read(output, object_of(found, prepared, first_schema(prepared))))
    shown = [each.value for each in rows]
    if output == "Parquet":
        assert [[v for v in each.values() if v is not None] if each else None for each in shown] == [  # type: ignore[attr-defined]
            ["ä"], [{"number": 5}], [7], None,
        ]  # fmt: skip
    else:
        assert shown == [*values, None]
    assert [each.value_is_null for each in rows] == [False, False, False, True]


def test_a_union_that_is_too_large_for_another_type_is_a_data_error() -> None:
    for types, is_valid in ((63, True), (64, False)):
        union: Any = [record(("f", "int"), name=f"R{n}") for n in range(types)]
        found = pipeline(Table({"1": registered(union, version=1)}), output="Avro")
        value = in_wire_format(1, datum(union, (f"R{types - 1}", {"f": 3})))
        prepared = prepare(found, [Consumed(value)])
        if is_valid:
            (row,) = read("Avro", object_of(found, prepared, first_schema(prepared)))
            assert row["value"] == {"f": 3}
        else:
            (error,) = prepared.errors
            assert error.message.endswith("union of 64 types, which is too many to add null: the maximum is 63")


# -- schemas -----------------------------------------------------------------------------------------------------------


def test_records_without_a_value_follow_the_schema_of_others_or_have_one_of_their_own() -> None:
    records = [Consumed(flight(0)), Consumed(None), Consumed(NULL_OF_AVRO)]
    for output in ALL_OUTPUTS:
        rows = prepare(pipeline(output=output), records).rows
        assert rows.schemas is not None
        assert rows.schemas.tolist() == [0, ANY_SCHEMA, ANY_SCHEMA]
        assert rows.nulls is not None
        assert rows.nulls.schema == (NO_SCHEMA if output == "Json" else 1)
        for changes in ({"path": "gone"}, {"mode": SchemaCompatibility.SEPARATE}):
            prepared = prepare(pipeline(output=output, **changes), records)
            assert prepared.rows.nulls is None
            assert prepared.rows.schemas is not None
            codes = prepared.rows.schemas.tolist()
            ids = [prepared.rows.schema_ids[code] for code in codes]
            own = schema_id(NULL_RECORD if output == "Json" else nullable_envelope_schema(None, KEY_BYTES))
            assert ids[1:] == [own, own]


@pytest.mark.parametrize("output", OUTPUTS)
def test_an_object_of_records_without_a_value_alone_has_no_field_for_it(output: str) -> None:
    found = pipeline(output=output)
    prepared = prepare(found, [Consumed(None, b"a"), Consumed(None)])
    assert prepared.rows.nulls is not None
    only = prepared.rows.schema_ids[prepared.rows.nulls.schema]
    rows = read(output, object_of(found, prepared, only))
    assert [(each["key"], each["valueIsNull"], "value" in each) for each in rows] == [
        (b"a", True, False),
        (None, True, False),
    ]
    assert prepared.rows.sizes is not None
    assert prepared.rows.sizes.tolist() == [prepared.prefix_bytes + len(each) for each in prepared.encoded.to_pylist()]


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_record_without_a_value_has_a_byte_more_where_the_schema_has_one(output: str) -> None:
    found = pipeline(output=output)
    prepared = prepare(found, [Consumed(flight(0)), Consumed(None)])
    assert prepared.rows.nulls is not None
    (rows,) = row_slices(prepared, [RowSelection(first_schema(prepared), slice(1, 2))])
    assert len(rows.data) == len(prepared.encoded[1].as_py()) + prepared.rows.nulls.size


@pytest.mark.parametrize("output", ALL_OUTPUTS)
def test_keys_with_schemas_are_read_without_a_value(output: str) -> None:
    found = pipeline(
        output=output,
        keyConverter="Avro",
        mode=SchemaCompatibility.SEPARATE,
        partitioner={"type": "Field", "fields": ["$key.id"]},
    )
    key = in_wire_format(5, datum(KEY, {"id": 3}))
    prepared = prepare(found, [Consumed(None, key), Consumed(None, b"nope"), Consumed(None, None)])
    assert [each.row for each in prepared.errors] == [1]
    assert prepared.errors[0].message.startswith("key: the key starts with the byte 110")
    assert [prepared.rows.paths[code] for code in prepared.rows.codes.tolist() if code >= 0] == [
        "key.id=3",
        "key.id=null",
    ]


@pytest.mark.parametrize("output", ALL_OUTPUTS)
@pytest.mark.parametrize("mode", [SchemaCompatibility.BACKWARD, SchemaCompatibility.FULL, SchemaCompatibility.FORWARD])
def test_a_record_without_a_value_is_projected_and_needs_no_version(output: str, mode: SchemaCompatibility) -> None:
    newer = record(("number", "long"), ("seats", ["null", "int"]), name="example.Flight")
    table = Table({"1": registered(FLIGHT, version=1), "3": registered(newer, 3, version=2)})
    found = pipeline(table, output=output, mode=mode)
    values = [
        in_wire_format(3, datum(newer, {"number": 1, "seats": 9})),
        None,
        flight(2),
    ]
    prepared = prepare(found, [Consumed(each) for each in values])
    rows = contents(read(output, object_of(found, prepared, first_schema(prepared))))
    assert [each[2:] for each in rows] == [
        (False, {"number": 1, "seats": 9}),
        (True, None),
        (False, {"number": 2, "seats": None}),
    ]


# -- paths -------------------------------------------------------------------------------------------------------------


def test_all_nulls_are_on_the_path_of_tombstones_if_paths_need_the_value() -> None:
    found = pipeline(converter="Json", partitioner={"type": "Field", "fields": ["a"]})
    rows = prepare(found, [Consumed(b'{"a": 1}'), Consumed(None), Consumed(b"null"), Consumed(b"{}")]).rows
    assert [rows.paths[code] if code >= 0 else None for code in rows.codes.tolist()] == [
        "a=1",
        "tombstone",
        "tombstone",
        None,
    ]


def test_nulls_are_on_the_path_of_others_if_it_does_not_need_the_value() -> None:
    found = pipeline(converter="Json", keyConverter="Text", partitioner={"type": "Field", "fields": ["$key"]})
    rows = prepare(found, [Consumed(b"{}", b"k"), Consumed(None, b"k"), Consumed(b"null", b"l")]).rows
    assert [rows.paths[code] for code in rows.codes.tolist()] == ["key=k", "key=k", "key=l"]


def test_the_time_on_the_path_of_tombstones_is_kafkas() -> None:
    by_time = {"type": "Daily", "timezone": "UTC", "timestampExtractor": "RecordField", "timestampField": "at"}
    found = pipeline(converter="Json", partitioner=by_time)
    records = [Consumed(b'{"at": 86400000}'), Consumed(None, timestamp=5), Consumed(None, timestamp=-1)]
    prepared = prepare(found, records)
    assert prepared.rows.times is not None
    assert prepared.rows.times.tolist()[:2] == [86_400_000, 5]
    assert [(each.row, each.message, str(each.reason)) for each in prepared.errors] == [
        (2, "the record has no Kafka timestamp", "InvalidPath")
    ]
