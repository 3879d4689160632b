"""Random Avro schemas with values, and an encoder that is independent of the converter (fastavro)."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping
from typing import Any

import fastavro
import pyarrow as pa
from hypothesis import strategies as st

from sink_job.api.enums import OutputFormat
from sink_job.avro.converter import AvroConverter
from sink_job.connect.errors import UnknownSchema
from sink_job.connect.json_encoder import DEFAULT_OPTIONS, JsonOptions
from sink_job.connect.schema import RegisteredSchema
from sink_job.converters.base import BatchSource, Converted
from sink_job.converters.registered import SchemaSettings
from sink_job.converters.wire_format import Layout, WireFormat

SOURCE = BatchSource("t")


def datum(schema: Any, value: object) -> bytes:
    """The Avro data of `value`."""
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def in_wire_format(schema_id: int, payload: bytes) -> bytes:
    return b"\0" + schema_id.to_bytes(4) + payload


def registered(schema: Any, schema_id: int | str = 1, **more: Any) -> RegisteredSchema:
    return RegisteredSchema(str(schema_id), "AVRO", json.dumps(schema), **more)


def record(*fields: tuple[str, Any], name: str = "R") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": key, "type": of} for key, of in fields]}


class Table:
    """The schemas that the driver has resolved, by id, in the records of every topic."""

    def __init__(self, schemas: Mapping[str, RegisteredSchema], unknown: tuple[str, ...] = ()) -> None:
        self.schemas = schemas
        self.unknown = unknown

    def find(self, topic: str, schema_id: str) -> RegisteredSchema | None:
        if schema_id in self.unknown:
            raise UnknownSchema(f"the registry does not know schema {schema_id}")
        return self.schemas.get(schema_id)


def converter(
    *schemas: RegisteredSchema,
    fields: tuple[str, ...] = (),
    unknown: tuple[str, ...] = (),
    output: OutputFormat = OutputFormat.JSON,
    options: JsonOptions = DEFAULT_OPTIONS,
) -> AvroConverter:
    table = Table({schema.id: schema for schema in schemas}, unknown)
    return AvroConverter(fields, SchemaSettings(table, WireFormat(Layout.CONFLUENT), output=output, options=options))


def convert(found: AvroConverter, values: list[bytes | None]) -> Converted:
    return found.convert(pa.array(values, pa.binary()), SOURCE)


def texts(found: Converted) -> list[bytes | None]:
    """The text of each row; None for a null or rejected row."""
    gone = {row for row, _ in found.rejected}
    if found.nulls is not None:
        gone |= set(found.nulls.nonzero()[0].tolist())
    return [None if row in gone else value for row, value in enumerate(found.values.to_pylist())]


Draw = Callable[..., Any]
TEXT = st.text(st.characters(codec="utf-8"), max_size=6)
_LEAVES: dict[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32),
    "double": st.floats(),
    "bytes": st.binary(max_size=6),
    "string": TEXT,
}


class Sample:
    """A schema, and a strategy for its values as fastavro writes them."""

    def __init__(self, schema: Any, values: st.SearchStrategy[Any]) -> None:
        self.schema = schema
        self.values = values


class _Builder:
    """Draws schemas in which no name occurs twice."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.count = 0

    def name(self) -> str:
        self.count += 1
        return f"N{self.count}"

    def any(self, depth: int) -> Sample:
        kinds = [*_LEAVES, "enum", "fixed", "decimal", "date", "millis"]
        if depth:
            kinds += ["array", "map", "record", "nullable", "union"] * 2
        kind = self.draw(st.sampled_from(kinds))
        return Sample(kind, _LEAVES[kind]) if kind in _LEAVES else getattr(self, f"_{kind}")(depth)

    def _enum(self, _: int) -> Sample:
        symbols = self.draw(st.lists(st.sampled_from(["A", "B2", "c_"]), min_size=1, unique=True))
        return Sample({"type": "enum", "name": self.name(), "symbols": symbols}, st.sampled_from(symbols))

    def _fixed(self, _: int) -> Sample:
        size = self.draw(st.integers(1, 4))
        return Sample({"type": "fixed", "name": self.name(), "size": size}, st.binary(min_size=size, max_size=size))

    def _decimal(self, _: int) -> Sample:
        schema = {"type": "bytes", "logicalType": "decimal", "precision": 20, "scale": self.draw(st.integers(0, 4))}
        return Sample(schema, st.binary(min_size=1, max_size=8))

    def _date(self, _: int) -> Sample:
        return Sample({"type": "int", "logicalType": "date"}, st.integers(-800_000, 3_000_000))

    def _millis(self, _: int) -> Sample:
        return Sample({"type": "long", "logicalType": "timestamp-millis"}, st.integers(-(10**13), 10**14))

    def _array(self, depth: int) -> Sample:
        items = self.any(depth - 1)
        return Sample({"type": "array", "items": items.schema}, st.lists(items.values, max_size=3))

    def _map(self, depth: int) -> Sample:
        values = self.any(depth - 1)
        return Sample({"type": "map", "values": values.schema}, st.dictionaries(TEXT, values.values, max_size=3))

    def _record(self, depth: int) -> Sample:
        fields = [(f"f{n}", self.any(depth - 1)) for n in range(self.draw(st.integers(1, 4)))]
        schema = record(*((name, field.schema) for name, field in fields), name=self.name())
        return Sample(schema, st.fixed_dictionaries({name: field.values for name, field in fields}))

    def _nullable(self, depth: int) -> Sample:
        other = self.any(depth - 1)
        if isinstance(other.schema, list):
            return other
        schema = self.draw(st.permutations(["null", other.schema]))
        return Sample(schema, st.none() | other.values)

    def _union(self, depth: int) -> Sample:
        members = [Sample("null", st.none()), Sample("long", _LEAVES["long"]), self._record(depth)]
        if self.draw(st.booleans()):
            members.append(self._enum(depth))
        members = self.draw(st.permutations(members))
        choices = [one.values.map(lambda value, one=one: _tagged(one.schema, value)) for one in members]
        return Sample([member.schema for member in members], st.one_of(choices))


def _tagged(schema: Any, value: object) -> object:
    """A value that names its member of a union."""
    return None if schema == "null" else (schema["name"] if isinstance(schema, dict) else schema, value)


@st.composite
def samples(draw: Draw, *, depth: int = 3, max_size: int = 6) -> tuple[Any, list[Any]]:
    """A schema of a record and some values of it. Values of logical types are of their underlying type."""
    sample = _Builder(draw)._record(depth)
    return sample.schema, draw(st.lists(sample.values, max_size=max_size))


def without_logical_types(schema: Any) -> Any:
    """The schema whose data is equal, for an encoder that would convert values of logical types."""
    if isinstance(schema, list):
        return [without_logical_types(member) for member in schema]
    if isinstance(schema, dict):
        return {key: without_logical_types(value) for key, value in schema.items() if key != "logicalType"}
    return schema


def encode(schema: Any, values: list[Any]) -> list[bytes]:
    plain = without_logical_types(schema)
    return [datum(plain, value) for value in values]
