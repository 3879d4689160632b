"""The maximum depth of values with a schema does not depend on the caller's stack."""

from __future__ import annotations

import json
from collections.abc import Callable

import pyarrow as pa
import pytest

from sink_job.connect.schema import RegisteredSchema
from sink_job.converters.base import BatchSource, Converted, ValueConverter
from sink_job.converters.registered import SchemaSettings
from sink_job.converters.wire_format import Layout, WireFormat
from sink_job.json.connect_json import ConnectJsonConverter
from sink_job.json.json_schema.converter import JsonSchemaConverter
from tests.unit.avro.avro_data import Table, converter, in_wire_format, record, registered

LIST = record(("v", {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1}), ("n", ["null", "R"]))
TREE = record(("n", ["null", "int", {"type": "array", "items": "R"}]))
DEEP = "the value is nested deeper than {} levels"


def json_schema() -> ValueConverter:
    table = Table({"1": RegisteredSchema("1", "JSON", '{"type": "object", "properties": {"a": {"type": "string"}}}')})
    return JsonSchemaConverter((), SchemaSettings(table, WireFormat(Layout.CONFLUENT)))


def linked_list(levels: int) -> bytes:
    return in_wire_format(1, b"\2\5\2" * (levels - 1) + b"\2\5\0")


def tree(levels: int) -> bytes:
    """Each node has a union, whose member is an object, around an array: three levels."""
    nodes, rest = divmod(levels - 1, 3)
    inner = {0: b"\0", 1: b"\2\2", 2: b"\4\0"}[rest]
    return in_wire_format(1, b"\4\2" * nodes + inner + b"\0" * nodes)


def brackets(levels: int) -> bytes:
    return in_wire_format(1, b"[" * levels + b"]" * levels)


def envelope(levels: int) -> bytes:
    return b'{"schema":null,"payload":%b}' % (b"[" * (levels - 1) + b"]" * (levels - 1))


def envelope_with_schema(levels: int) -> bytes:
    schema = {"type": "struct", "fields": [{"field": "a", "type": "int8", "optional": True}]}
    unknown = b"[" * (levels - 2) + b"]" * (levels - 2)
    return b'{"schema":%b,"payload":{"x":%b}}' % (json.dumps(schema).encode(), unknown)


CASES: list[tuple[Callable[[], ValueConverter], Callable[[int], bytes], int]] = [
    (lambda: converter(registered(LIST)), linked_list, 100),
    (lambda: converter(registered(TREE)), tree, 100),
    (json_schema, brackets, 256),
    (ConnectJsonConverter, envelope, 256),
    (ConnectJsonConverter, envelope_with_schema, 256),
]


def convert(found: ValueConverter, value: bytes, frames: int = 0) -> Converted:
    """Converts `value` below `frames` calls."""
    if frames:
        return convert(found, value, frames - 1)
    return found.convert(pa.array([value], pa.binary()), BatchSource("t"))


@pytest.mark.parametrize("frames", [0, 300])
@pytest.mark.parametrize(("new", "value", "limit"), CASES)
def test_the_limit_of_the_depth_is_the_same_for_each_caller(
    new: Callable[[], ValueConverter], value: Callable[[int], bytes], limit: int, frames: int
) -> None:
    assert not convert(new(), value(limit), frames).rejected
    ((row, reason),) = convert(new(), value(limit + 1), frames).rejected
    assert (row, reason.removeprefix("schema 1: ")) == (0, DEEP.format(limit))


@pytest.mark.parametrize("levels", [300, 1_000, 100_000])
@pytest.mark.parametrize(("new", "value", "limit"), CASES)
def test_a_value_of_any_greater_depth_is_rejected(
    new: Callable[[], ValueConverter], value: Callable[[int], bytes], limit: int, levels: int
) -> None:
    ((_, reason),) = convert(new(), value(levels)).rejected
    assert DEEP.format(limit) in reason or "nested too deeply" in reason
