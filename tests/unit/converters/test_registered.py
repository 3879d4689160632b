"""Values with schemas of a registry: rows by schema, what is not resolved yet, and what is rejected."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sink_job.api.enums import ConverterType, DecimalFormat, OutputFormat
from sink_job.avro.converter import AvroDecoder
from sink_job.connect import schema_cache
from sink_job.connect.errors import InvalidSchema
from sink_job.connect.json_encoder import DEFAULT_OPTIONS
from sink_job.connect.schema import RegisteredSchema, Schema, SchemaReference, SchemaType
from sink_job.converters.base import BatchSource, Converted
from sink_job.converters.registered import Decoded, Decoder, RegisteredConverter, SchemaSettings, text_size
from sink_job.converters.wire_format import Layout, WireFormat
from sink_job.records.fields import MISSING
from tests.unit.avro.avro_data import SOURCE, Table, datum, in_wire_format, record
from tests.unit.rotation.settings import object_settings

TOPIC = BatchSource("t")


class Letters:
    """Decodes letters, as upper case after the text of its schema. `?` is rejected, `-` null; `d` drops a property."""

    def __init__(self, schema: RegisteredSchema) -> None:
        self.text = schema.text
        self.schema = Schema(SchemaType.STRING, name=schema.text.upper())

    def decode(self, payload: pa.BinaryArray) -> Decoded:
        values = [value.decode() for value in payload.to_pylist()]
        nulls = np.array([value == "-" for value in values])
        return Decoded(
            pa.array([f"{self.text}{value.upper()}".encode() for value in values], pa.binary()),
            nulls=nulls if nulls.any() else None,
            rejected=[(row, "is a question") for row, value in enumerate(values) if value == "?"],
            fields={"letter": [*values]},
            dropped_properties=values.count("d"),
        )

    def project(self, payload: pa.BinaryArray, target: Schema) -> pa.BinaryArray:
        return pa.array([f"{target.name}{value.decode()}".encode() for value in payload.to_pylist()], pa.binary())


class Unprojected:
    """A decoder whose values cannot be projected."""

    schema = Schema(SchemaType.STRING)

    def decode(self, payload: pa.BinaryArray) -> Decoded:
        return Decoded(payload)


def decoder(schema: RegisteredSchema) -> Decoder:
    if schema.text == "invalid":
        raise InvalidSchema("the schema is not valid")
    return Unprojected() if schema.text == "fixed" else Letters(schema)


def table(unknown: tuple[str, ...] = (), **texts: str) -> Table:
    """Schemas by id; the names of the arguments are `s<id>`."""
    found = {name[1:]: RegisteredSchema(name[1:], "X", text) for name, text in texts.items()}
    return Table(found, unknown)


def converter(found: Any, *fields: str, **settings: Any) -> RegisteredConverter:
    options = SchemaSettings(found, WireFormat(Layout.CONFLUENT), **settings)
    return RegisteredConverter(fields, options, decoder)


def values(*rows: tuple[int, str] | None) -> pa.BinaryArray:
    """Values by schema id and letter; None is a tombstone."""
    return pa.array([None if row is None else in_wire_format(row[0], row[1].encode()) for row in rows], pa.binary())


def shown(found: Converted) -> list[bytes | None]:
    """The value of each row; None for a null or rejected one."""
    gone = {row for row, _ in found.rejected} | set(np.flatnonzero(found.nulls) if found.nulls is not None else ())
    return [None if row in gone else value for row, value in enumerate(found.values.to_pylist())]


BOTH = table(s1="x", s2="y")


def test_rows_of_several_schemas_keep_their_order() -> None:
    found = converter(BOTH).convert(values((1, "a"), (2, "b"), None, (1, "c"), (2, "-"), (1, "?")), TOPIC)
    assert shown(found) == [b"xA", b"yB", None, b"xC", None, None]
    assert [row for row, _ in found.rejected] == [5]
    assert found.schemas is not None
    assert found.schemas.codes.tolist() == [0, 1, -1, 0, 1, 0]
    assert [schema.name for schema in found.schemas.schemas] == ["X", "Y"]


def test_a_reason_names_the_schema_of_the_value() -> None:
    found = converter(BOTH).convert(values((2, "?")), TOPIC)
    [(row, reason)] = found.rejected
    assert row == 0
    assert "is a question" in reason
    assert "2" in reason


def test_an_empty_batch_and_one_of_tombstones_have_no_schemas() -> None:
    for batch in (values(), values(None, None)):
        found = converter(BOTH).convert(batch, TOPIC)
        assert shown(found) == [None] * len(batch)
        assert found.schemas is not None
        assert found.schemas.schemas == []


def test_the_fields_of_rows_in_no_group_are_missing() -> None:
    found = converter(table(("3",), s1="x"), "letter").convert(values((1, "a"), None, (3, "b"), (1, "c")), TOPIC)
    assert found.fields == {"letter": ["a", MISSING, MISSING, "c"]}


def test_dropped_properties_of_all_schemas_are_added() -> None:
    found = converter(BOTH).convert(values((1, "d"), (2, "d"), (2, "a"), (1, "d")), TOPIC)
    assert found.dropped_properties == 3


def test_with_the_output_bytes_values_stay_as_they_came_and_are_checked() -> None:
    batch = values((1, "a"), None, (1, "?"))
    found = converter(BOTH, output=OutputFormat.BYTES).convert(batch, TOPIC)
    assert found.values.to_pylist()[0] == batch[0].as_py()
    assert [row for row, _ in found.rejected] == [2]


# -- ids ---------------------------------------------------------------------------------------------------------------


def test_a_batch_ends_before_the_first_id_that_is_not_resolved() -> None:
    found = converter(table(s1="x")).convert(values((1, "a"), (9, "b"), (1, "?"), (8, "c"), (9, "d")), TOPIC)
    assert found.unresolved == [(1, "9"), (3, "8")]
    assert shown(found)[0] == b"xA"
    assert found.rejected == []


def test_unresolved_ids_are_found_without_decoding_in_the_order_of_their_rows() -> None:
    assert converter(table(s1="invalid")).unresolved(values(None, (9, "b"), (1, "a"), (8, "c"), (9, "d")), TOPIC) == (
        "9",
        "8",
    )


def test_an_id_that_the_registry_does_not_know_rejects_its_rows_alone() -> None:
    found = converter(table(("3",), s1="x")).convert(values((3, "a"), (1, "b"), (3, "c")), TOPIC)
    assert (found.unknown, found.unresolved) == ([0, 2], [])
    assert shown(found) == [None, b"xB", None]
    assert "does not know schema 3" in found.rejected[0][1]


def test_a_schema_that_cannot_be_used_rejects_its_rows_alone() -> None:
    found = converter(table(s1="x", s2="invalid")).convert(values((2, "a"), (1, "b")), TOPIC)
    assert (found.rejected, found.unknown) == ([(0, "the schema is not valid")], [])
    assert shown(found) == [None, b"xB"]


def test_a_value_that_is_not_in_wire_format_is_rejected_alone() -> None:
    batch = pa.array([b"", b"{}", in_wire_format(1, b"a")], pa.binary())
    found = converter(BOTH).convert(batch, TOPIC)
    assert [row for row, _ in found.rejected] == [0, 1]
    assert shown(found)[2] == b"xA"


def test_bare_values_have_one_schema_and_reasons_without_an_id() -> None:
    settings = SchemaSettings(table(s7="x"), bare_values="7")
    found = RegisteredConverter((), settings, decoder).convert(pa.array([b"a", None, b"?"], pa.binary()), TOPIC)
    assert shown(found) == [b"xA", None, None]
    assert found.rejected == [(2, "is a question")]
    assert not settings.needs_headers


class Prefetching(Table):
    """A table that reads the schemas of a batch at once."""

    def __init__(self, found: Table) -> None:
        super().__init__(found.schemas)
        self.prefetched: list[tuple[str, list[str]]] = []

    def prefetch(self, topic: str, schema_ids: Collection[str]) -> None:
        self.prefetched.append((topic, sorted(schema_ids)))


def test_the_schemas_of_a_batch_are_read_at_once() -> None:
    found = Prefetching(BOTH)
    converter(found).convert(values((1, "a"), (2, "b"), (1, "c")), TOPIC)
    assert found.prefetched == [("t", ["1", "2"])]


def test_another_table_is_used_with_the_schemas_that_are_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    first = converter(table(s1="x"))
    second = first.with_table(table(s1="x", s2="y"))
    assert second.convert(values((2, "a")), TOPIC).unresolved == []
    assert first.convert(values((2, "a")), TOPIC).unresolved == [(0, "2")]


# -- schemas -----------------------------------------------------------------------------------------------------------


def test_a_schema_has_a_reason_against_it_or_a_schema_of_connect() -> None:
    found = converter(BOTH)
    valid, invalid = RegisteredSchema("1", "X", "x"), RegisteredSchema("2", "X", "invalid")
    assert (found.reason_against(valid), found.schema_of(valid)) == (None, Schema(SchemaType.STRING, name="X"))
    assert (found.reason_against(invalid), found.schema_of(invalid)) == ("the schema is not valid", None)


def test_the_size_of_a_schema_counts_its_references() -> None:
    references = tuple(SchemaReference(name, name, 1, "12345") for name in "ab")
    assert text_size(RegisteredSchema("1", "X", "123", references)) == 13


def test_large_schemas_of_a_registry_are_compiled_again_rather_than_kept_without_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(schema_cache, "MAX_CACHE_SIZE", 30_000)
    compiled: list[str] = []

    def decoder(registered: RegisteredSchema) -> Decoder:
        compiled.append(registered.id)
        return AvroDecoder(registered, (), DEFAULT_OPTIONS)

    schema = record(("f", "int"))
    text = json.dumps(schema | {"doc": "x" * 9_000})
    table = Table({str(n): RegisteredSchema(str(n), "AVRO", text) for n in (1, 2, 3)})
    converter = RegisteredConverter((), SchemaSettings(table, WireFormat(Layout.CONFLUENT)), decoder)
    for schema_id in (1, 1, 2, 2, 3, 1):
        value = in_wire_format(schema_id, datum(schema, {"f": 1}))
        assert not converter.convert(pa.array([value], pa.binary()), SOURCE).rejected
    assert compiled == ["1", "2", "3", "1"]


def test_the_reason_against_a_schema_is_computed_once() -> None:
    def fail(schema: RegisteredSchema) -> Decoder:
        calls.append(schema.id)
        raise InvalidSchema("no")

    calls: list[str] = []
    found = RegisteredConverter(
        (), SchemaSettings(Table({"1": RegisteredSchema("1", "AVRO", "")}), WireFormat(Layout.CONFLUENT)), fail
    )
    values = pa.array([in_wire_format(1, b"")], pa.binary())
    reasons = [found.convert(values, SOURCE).rejected for _ in range(2)]
    assert reasons == [[(0, "no")], [(0, "no")]]
    assert calls == ["1"]


# -- projection --------------------------------------------------------------------------------------------------------


def test_values_of_several_schemas_are_projected_in_their_order() -> None:
    target = Schema(SchemaType.STRING, name="T")
    projected = converter(BOTH).project(values((2, "a"), (1, "b"), (2, "c"), (1, "d")), TOPIC, target)
    assert projected.to_pylist() == [b"Ta", b"Tb", b"Tc", b"Td"]


def test_a_language_whose_values_cannot_be_projected_is_a_bug_that_names_the_schema() -> None:
    with pytest.raises(TypeError, match="values with the schema 1 cannot be projected"):
        converter(table(s1="fixed")).project(values((1, "a")), TOPIC, Schema(SchemaType.STRING))


# -- settings ----------------------------------------------------------------------------------------------------------

WIRE = {"type": "Confluent", "subjects": "TopicName", "idIn": "Either"}


def test_a_sink_without_schemas_has_no_settings_of_them() -> None:
    found = object_settings(format={"converter": "Text"})
    assert SchemaSettings.of(found, None) is None
    assert SchemaSettings.of_keys(found, None) is None


@pytest.mark.parametrize(("output", "has_datums"), [("Json", False), ("Avro", True), ("Parquet", True)])
def test_the_settings_of_values_are_those_of_the_format(output: str, has_datums: bool) -> None:
    format_ = {"converter": "Avro", "output": output, "decimals": "Numeric"}
    found = SchemaSettings.of(object_settings(format=format_, wire_format=WIRE), BOTH)
    assert found is not None
    assert (found.table, found.output, found.bare_values) == (BOTH, OutputFormat(output), None)
    assert found.options.decimals is DecimalFormat.NUMERIC
    assert (found.datums is not None, found.needs_headers) == (has_datums, True)


@pytest.mark.parametrize("envelope", [True, False])
def test_a_key_has_the_form_of_a_value_only_within_an_envelope(envelope: bool) -> None:
    format_ = {"keyConverter": "Avro", "output": "Json", "decimals": "Numeric", "envelope": envelope}
    found = SchemaSettings.of_keys(object_settings(format=format_, wire_format=WIRE), BOTH)
    assert found is not None
    assert (found.options.decimals is DecimalFormat.NUMERIC) is envelope
    assert found.wire_format is not None


@pytest.mark.parametrize("key_converter", [None, *ConverterType])
def test_only_keys_with_schemas_have_settings_of_them(key_converter: ConverterType | None) -> None:
    found = object_settings(format={"keyConverter": key_converter} if key_converter else {}, wire_format=WIRE)
    has_schemas = key_converter is not None and key_converter.has_schemas
    assert (SchemaSettings.of_keys(found, None) is not None) is has_schemas
