"""The schema of a topic's records: sampled, of the manifest, or of the ledger."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest

from sink_job.api.enums import ConverterType
from sink_job.api.errors import ConfigurationError, InvalidSpec
from sink_job.api.sections.format_section import FormatSpec
from sink_job.api.sections.transforms_section import TransformSpec
from sink_job.connect.schema import Field, RegisteredSchema, Schema, SchemaType
from sink_job.ddl.columns import columns_of
from sink_job.ddl.schema_source import (
    LedgerSchemaReader,
    manifest_schema,
    sampled_schema,
    transformed,
    transformed_by,
    with_envelope,
)
from sink_job.ledger.schemas.schema_store import SchemaStore, schemas_root
from tests.support.compared_sink import ComparedSink, log_of
from tests.support.memory_sink import MemorySinkFixture

AVRO = json.dumps({"type": "record", "name": "r", "fields": [{"name": "n", "type": "long"}]})
JSON_SCHEMA = json.dumps({"type": "object", "properties": {"n": {"type": "integer"}}})
PROTOBUF = 'syntax = "proto3"; package p; message M { int64 n = 1; }'


@pytest.fixture
def sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ComparedSink:
    return ComparedSink(MemorySinkFixture(tmp_path, monkeypatch), tmp_path / "sink.yaml")


def reader(sink: ComparedSink) -> LedgerSchemaReader:
    return LedgerSchemaReader(sink.fixture.sink, cast("Any", sink.fixture.s3))


def names(schema: Schema | None, settings: FormatSpec | None = None) -> list[str]:
    assert schema is not None
    return [each.name for each in columns_of(schema, settings or FormatSpec()) or ()]


def test_a_sample_is_that_of_transformed_values() -> None:
    specs = [
        TransformSpec.model_validate(each)
        for each in (
            {"type": "Filter", "when": {"field": "hidden"}},
            {"type": "Insert", "field": "t", "source": "Topic", "when": {"topic": "flights"}},
            {"type": "Cast", "casts": {"a": "Text"}},
        )
    ]
    lines = [b'{"a": 1}', b"", b'{"hidden": 1}', b'{"a": 2}']
    assert list(transformed(lines, specs, "flights")) == [b'{"a":"1","t":"flights"}', b'{"a":"2","t":"flights"}']
    assert list(transformed(lines, specs, "other")) == [b'{"a":"1"}', b'{"a":"2"}']
    with pytest.raises(InvalidSpec, match=r"--records: record 2: transforms\[2\] \(Cast\): the value is an array"):
        list(transformed([b"", b'{"a": 1}', b"[]"], specs, "other"))


def test_a_sample_has_the_types_of_all_its_values() -> None:
    lines = [b'{"a": 1, "b": {"c": "x"}}', b"", b'{"a": 1.5, "d": [true], "e": null}']
    columns = columns_of(sampled_schema(lines, FormatSpec()), FormatSpec())
    assert {each.name: each.type.kind.value for each in columns or ()} == {
        "a": "double",
        "b": "struct",
        "d": "array",
        "e": "json",
    }


@pytest.mark.parametrize(
    ("lines", "message"),
    [([b"{}", b"{"], "line 2 is not JSON"), ([b"[1]"], "line 1 is not a JSON object"), ([b"  "], "has no values")],
)
def test_a_sample_of_other_values_is_an_error(lines: list[bytes], message: str) -> None:
    with pytest.raises(InvalidSpec, match=message):
        sampled_schema(lines, FormatSpec())


@pytest.mark.parametrize(
    ("converter", "schema"),
    [
        ("Avro", {"text": AVRO}),
        ("JsonSchema", {"text": JSON_SCHEMA}),
        ("Protobuf", {"text": PROTOBUF, "message": "p.M"}),
    ],
)
def test_the_manifest_has_the_schema_of_bare_values(converter: str, schema: dict[str, str]) -> None:
    settings = FormatSpec.model_validate({"converter": converter, "schema": schema})
    assert names(manifest_schema(settings), settings) == ["n"]


def test_json_values_can_have_a_field_list() -> None:
    schema = {"text": '[{"name": "n", "type": "int64"}, {"name": "at", "type": "timestamp-millis"}]'}
    settings = FormatSpec.model_validate({"converter": "Json", "output": "Parquet", "schema": schema})
    columns = columns_of(manifest_schema(settings) or Schema(SchemaType.STRING), settings)
    assert [(each.name, each.type.kind.value) for each in columns or ()] == [("n", "long"), ("at", "timestamp")]


def test_without_a_schema_in_the_manifest_there_is_none() -> None:
    assert manifest_schema(FormatSpec()) is None


def test_an_envelope_has_key_and_origin_beside_the_value() -> None:
    settings = FormatSpec.model_validate({"envelope": True, "keyConverter": "Text"})
    expected = ["key", "headers", "timestamp", "timestampType", "topic", "partition", "offset", "value"]
    assert names(with_envelope(None, settings), settings) == expected
    assert with_envelope(None, FormatSpec()) is None


def test_an_envelope_with_null_values_says_which_do_not_exist() -> None:
    settings = FormatSpec.model_validate({"envelope": True})
    assert names(with_envelope(None, settings, has_nulls=True), settings)[-2:] == ["valueIsNull", "value"]


@pytest.mark.parametrize("output", ["Avro", "Parquet"])
def test_the_newest_object_has_the_schema_of_containers(sink: ComparedSink, output: str) -> None:
    sink.output = output
    sink.write(log_of(output, 12, paths=2), paths=True)
    found = reader(sink)
    assert found.topics == ["log"]
    assert names(found.schema("log"), sink.fixture.sink.spec.format) == ["partition", "offset", "kind"]
    assert found.schema("other") is None


def test_the_newest_version_in_the_ledger_is_that_of_json_with_a_registry(sink: ComparedSink) -> None:
    sink.write(log_of("Json", 3))
    store = SchemaStore(cast("Any", sink.fixture.s3), schemas_root(sink.fixture.root, 1))
    for number, field in (("9", "new"), ("3", "old")):
        text = AVRO.replace('"n"', f'"{field}"')
        store.put("log", RegisteredSchema(number, "AVRO", text, subject="log-value", version=int(number)), "http://r")
    assert reader(sink).schema("other") is None
    sink.fixture.sink = sink.fixture.sink.model_copy(
        update={"spec": sink.fixture.sink.spec.model_copy(update={"format": FormatSpec.model_construct(**FORMAT)})}
    )
    assert names(reader(sink).schema("log")) == ["new"]


FORMAT = {**FormatSpec().__dict__, "converter": "Avro"}


def test_json_of_a_registry_has_the_columns_that_transforms_make(sink: ComparedSink) -> None:
    sink.write(log_of("Json", 3))
    store = SchemaStore(cast("Any", sink.fixture.s3), schemas_root(sink.fixture.root, 1))
    store.put("log", RegisteredSchema("9", "AVRO", AVRO, subject="log-value", version=9), "http://r")
    insert = TransformSpec.model_validate({"type": "Insert", "field": "o", "source": "Offset"})
    format_ = FormatSpec.model_construct(**{**FORMAT, "converter": ConverterType.AVRO})
    spec = sink.fixture.sink.spec.model_copy(update={"format": format_, "transforms": [insert]})
    sink.fixture.sink = sink.fixture.sink.model_copy(update={"spec": spec})
    assert names(reader(sink).schema("log")) == ["n", "o"]


def test_a_recursive_schema_has_no_columns_with_transforms(sink: ComparedSink) -> None:
    insert = TransformSpec.model_validate({"type": "Insert", "field": "o", "source": "Offset"})
    spec = sink.fixture.sink.spec.model_copy(
        update={"format": FormatSpec(converter=ConverterType.AVRO), "transforms": [insert]}
    )
    change = transformed_by(sink.fixture.sink.model_copy(update={"spec": spec}))
    assert transformed_by(sink.fixture.sink) is None
    assert change is not None
    recursive = Schema(SchemaType.STRUCT, "N", fields=(Field("n", Schema(SchemaType.REFERENCE, "N")),))
    with pytest.raises(ConfigurationError, match="the schema of log cannot be used: it is recursive"):
        change(recursive, "log")


def test_transformed_json_with_a_schema_is_read_under_it() -> None:
    settings = FormatSpec.model_validate({"converter": "JsonSchema", "schema": {"text": JSON_SCHEMA}})
    as_it_came, read = manifest_schema(settings), manifest_schema(settings, is_transformed=True)
    assert as_it_came is not None
    assert read is not None
    assert [as_it_came.fields[0].schema.optional, read.fields[0].schema.optional] == [False, True]


def test_a_schema_that_cannot_be_used_is_an_error() -> None:
    settings = FormatSpec.model_validate({"converter": "Avro", "schema": {"text": '{"type": "nonsense"}'}})
    with pytest.raises(ConfigurationError, match=r"spec.format.schema cannot be used"):
        manifest_schema(settings)
