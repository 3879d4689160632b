"""Reads Avro data column-wise with pyruhvro, for the types that fuzzing has shown right.

pyruhvro panics on bytes and fixed, has no check that a datum is consumed to its end, does not check that strings are
UTF-8, and cuts integers that are too large for an int. So it gets a schema with the same binary form that avoids this:

- Bytes and decimals are strings there, ints and enums are longs. The content is checked here.
- A long with a random value follows each datum. It has another value if the datum is shorter or longer than its type.
- Fixed, unions of several types, recursion, records without fields and maps of other keys than text are not used.

Anything unusual in a batch raises `UnusualValues`. Then its records are read one by one, which decides what is invalid.
"""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyruhvro

from sink_job.api.enums import TimestampFormat
from sink_job.arrow import columns as arrow_columns
from sink_job.arrow import json_columns
from sink_job.arrow.columnar import MAX_DEPTH, NotColumnar, UnusualValues, if_columnar
from sink_job.arrow.json_columns import Texts
from sink_job.arrow.varints import read_long
from sink_job.avro.column_checks import data_check
from sink_job.avro.flat_reader import FlatReader
from sink_job.avro.schema import INT_RANGE, AvroField, AvroType
from sink_job.connect import logical_types
from sink_job.connect.json_encoder import JsonOptions, json_encoder, json_text
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Schema, SchemaType
from sink_job.converters.registered import Decoded
from sink_job.records.fields import MISSING, segments

_TIMES: Final = {logical_types.DATE, logical_types.TIME, logical_types.TIMESTAMP}
_FIELD_TYPES: Final = {"boolean", "int", "long", "float", "double", "string", "enum"}


def _marker() -> bytes:
    """A varint of ten bytes, random for each process, so that no data can contain it on purpose."""
    return bytes([*(byte | 0x80 for byte in secrets.token_bytes(9)), 1])


_MARKER: Final = _marker()
_MARKER_VALUE: Final = read_long(_MARKER, 0)[0]


class AvroColumnDecoder:
    """Decodes data of one type column-wise."""

    def __init__(
        self,
        avro: AvroType,
        schema: Schema,
        fields: tuple[str, ...],
        options: JsonOptions,
        datums: DatumSettings | None = None,
    ) -> None:
        """With `datums` the results are the data, which are only checked.

        Raises NotColumnar if the type, or the type of a field, is not read column-wise.
        """
        compiled = TypeCompiler(options)
        self._check = None if datums is None else data_check(avro, schema, datums)
        self._texts = compiled.texts(avro, schema, 0) if datums is None else _unused
        self.read = DataReader(avro).read
        self._fields = {name: _field_reader(avro, schema, segments(name)) for name in fields}

    def decode(self, payload: pa.BinaryArray) -> Decoded:
        """See `Decoder.decode`; all rows are valid. Raises UnusualValues if that must be decided row-wise."""
        column = self.read(payload)
        texts = self._texts(column) if self._check is None else self._checked(column, payload)
        fields = {name: read(column) for name, read in self._fields.items()}
        return Decoded(texts, arrow_columns.truths(column.is_null()) if column.null_count else None, fields=fields)

    def _checked(self, column: pa.Array, payload: pa.BinaryArray) -> pa.BinaryArray:
        assert self._check is not None
        self._check(column.drop_null() if column.null_count else column)
        return payload


class DataReader:
    """Reads data of one type to a column of its reading schema."""

    def __init__(self, avro: AvroType) -> None:
        """`avro` has neither a fixed nor a recursive type."""
        reading = _Reading().schema(avro)
        wrapped = {"type": "record", "name": "W", "fields": [{"name": "v", "type": reading}, _END]}
        self._reading = msgspec.json.encode(wrapped).decode()
        self._flat = if_columnar(lambda: FlatReader(avro))

    def read(self, payload: pa.BinaryArray) -> pa.Array:
        """The values as a column. Raises UnusualValues."""
        if self._flat is not None and self._flat.is_faster(payload):
            return self._flat.read(payload)
        data = arrow_columns.joined(payload, after=_MARKER).to_pylist()
        try:
            batch = pyruhvro.deserialize_array(data, self._reading)
        except Exception as error:
            raise UnusualValues(str(error)) from None
        except BaseException as error:
            if type(error).__name__ != _PANIC:
                raise
            raise UnusualValues(str(error)) from None
        value, end = batch.columns
        if (arrow_columns.numbers(end) != _MARKER_VALUE).any():
            raise UnusualValues("a datum is shorter or longer than its type")
        return value


def _unused(column: pa.Array) -> pa.BinaryArray:
    raise AssertionError("data that pass unchanged have no texts")


_PANIC: Final = "PanicException"
"""The exception for a panic in Rust code. It cannot be imported, and is no Exception."""
_END: Final = {"name": "end", "type": "long"}


class _Reading:
    """Compiles a type to its reading schema: the one that pyruhvro gets."""

    def __init__(self) -> None:
        self._count = 0

    def schema(self, avro: AvroType) -> object:
        match avro.kind:
            case "union":
                return [self.schema(member) for member in avro.members]
            case "record":
                self._count += 1
                name = f"R{self._count}"
                fields = [{"name": f"f{n}", "type": self.schema(f.type)} for n, f in enumerate(avro.fields)]
                return {"type": "record", "name": name, "fields": fields}
            case "array":
                return {"type": "array", "items": self.schema(avro.items)}
            case "map":
                return {"type": "map", "values": self.schema(avro.items)}
        return {"bytes": "string", "int": "long", "enum": "long"}.get(avro.kind, avro.kind)


class TypeCompiler:
    """Compiles a type to the function that writes its columns as JSON texts."""

    def __init__(self, options: JsonOptions) -> None:
        self._options = options

    def texts(self, avro: AvroType, schema: Schema, depth: int) -> Texts:
        """Raises NotColumnar."""
        if depth > MAX_DEPTH or schema.type is SchemaType.REFERENCE:
            raise NotColumnar("a type is deep or recursive")
        match avro.kind:
            case "union" if avro.nullable is not None:
                texts = self.texts(avro.nullable, schema, depth + 1)
                return json_columns.nullable(texts, json_text(schema, None, self._options))
            case "record" if avro.fields:
                return json_columns.structs(
                    [
                        (field.name, self.texts(one.type, field.schema, depth + 1))
                        for one, field in zip(avro.fields, schema.fields, strict=True)
                    ]
                )
            case "array" if schema.type is SchemaType.ARRAY and schema.values is not None:
                return json_columns.lists(self.texts(avro.items, schema.values, depth + 1))
            case "map" if schema.values is not None:
                return json_columns.maps(self.texts(avro.items, schema.values, depth + 1))
        return self._scalar(avro, schema)

    def _scalar(self, avro: AvroType, schema: Schema) -> Texts:
        if avro.kind in ("int", "long"):
            return self._integers(avro, schema)
        if avro.kind == "bytes":
            return _decimals(schema, self._options) if logical_types.is_decimal(schema) else _bytes
        if avro.kind == "enum" and avro.symbols:
            return json_columns.symbols(avro.symbols)
        if avro.kind in _SCALARS:
            return _SCALARS[avro.kind]
        raise NotColumnar(f"{avro.kind} is not read column-wise")

    def _integers(self, avro: AvroType, schema: Schema) -> Texts:
        if schema.type in (SchemaType.INT8, SchemaType.INT16):
            raise NotColumnar("a small integer is not read column-wise")
        texts: Texts = json_columns.integers
        if self._options.timestamps is TimestampFormat.ISO and schema.name in _TIMES:
            texts = json_columns.converted(json_encoder(schema, self._options))
        return _checked(texts) if avro.kind == "int" else texts


_SCALARS: Final[dict[str, Texts]] = {
    "boolean": json_columns.booleans,
    "float": json_columns.floats,
    "double": json_columns.doubles,
    "string": json_columns.strings,
}


def _checked(texts: Texts) -> Texts:
    """For integers of 32 bits."""

    def of_ints(column: pa.Array) -> pa.BinaryArray:
        json_columns.check_range(column, *INT_RANGE)
        return texts(column)

    return of_ints


def _bytes(column: pa.Array) -> pa.BinaryArray:
    values = column.view(pa.binary()).to_pylist()
    return arrow_columns.binaries([b'"%b"' % base64.b64encode(value) for value in values])


def _decimals(schema: Schema, options: JsonOptions) -> Texts:
    encode, scale = json_encoder(schema, options), logical_types.scale_of(schema)
    texts = json_columns.converted(lambda value: encode(logical_types.decimal_from_bytes(value, scale)))
    return lambda column: texts(column.view(pa.binary()))


ReadField = Callable[[pa.Array], list[object]]


def _field_reader(avro: AvroType, schema: Schema, path: list[str]) -> ReadField:
    """The function for the values of a field. Raises NotColumnar."""
    inner = avro.nullable or avro
    if schema.optional and schema.default is not None:
        raise NotColumnar("a field that takes its default is not read column-wise")
    if not path:
        return _leaf(inner)
    if inner.kind != "record":
        raise NotColumnar(f"a field of {inner.kind} is not read column-wise")
    for position, (field, of_field) in enumerate(zip(inner.fields, schema.fields, strict=True)):
        if field.name == path[0]:
            return _child(position, field, _field_reader(field.type, of_field.schema, path[1:]))
    return lambda column: [MISSING] * len(column)


def _child(position: int, field: AvroField, read: ReadField) -> ReadField:
    return lambda column: read(column.flatten()[position])


def _leaf(avro: AvroType) -> ReadField:
    if avro.kind not in _FIELD_TYPES:
        raise NotColumnar(f"a field of type {avro.kind} is not read column-wise")
    if avro.kind == "enum":
        symbols: list[Any] = avro.symbols
        return lambda column: [None if index is None else symbols[index] for index in column.to_pylist()]
    return lambda column: column.to_pylist()
