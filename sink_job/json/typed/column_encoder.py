"""JSON texts as Avro data column-wise: a typed decoder of msgspec reads the texts, and columns are encoded with NumPy.

The decoder is strict: it reads only texts that the reader of values row-wise does, in the same way
(`sink_job.json.json_schema.decoder`). Types that it does not have (decimals, bytes, unions, recursion, maps of other
keys than text) are read as any JSON value, and converted row-wise within the column. Anything unusual raises
`UnusualValues`. Then the texts are read row-wise, which decides what is invalid.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain, compress, repeat
from operator import attrgetter, is_not
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa

from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.arrays import Bytes, Integers
from sink_job.arrow.columnar import NotColumnar, UnusualValues
from sink_job.avro import column_encoder as avro_column_encoder
from sink_job.avro.column_encoder import Parts
from sink_job.avro.encoder import value_encoder, value_range
from sink_job.avro.from_connect import enum_symbols, is_text_map, is_union
from sink_job.avro.value_encoders import MAX_REPEATED, is_uuid
from sink_job.connect.errors import VALUE_ERRORS
from sink_job.connect.json_decoder import MAX_FIELDS, Read, default_value, parse_number
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import INTEGER_BITS, Schema, SchemaType
from sink_job.connect.scopes import child
from sink_job.connect.visitor import free_references
from sink_job.json.json_schema.to_connect import ONE_OF
from sink_job.json.typed.unknown_properties import COLUMN_NAME

_ERRORS: Final = (*VALUE_ERRORS, msgspec.DecodeError, RecursionError)
_FLOATS: Final = (SchemaType.FLOAT32, SchemaType.FLOAT64)
_SCALARS: Final = (bool, int, float, str)

ReaderOf = Callable[[Schema], Read]
"""Schema -> the function that reads a JSON value under it, row-wise."""


class _Column(NamedTuple):
    """The type of values for the decoder, and the function that encodes a column of them."""

    type: Any
    encode: Callable[[list[Any]], Parts]


class JsonDatumColumns:
    """Encodes texts under one schema."""

    def __init__(
        self, schema: Schema, settings: DatumSettings, reader_of: ReaderOf, reads_any: Callable[[Schema], bool]
    ) -> None:
        """`reads_any`: see `JsonDatums`. Raises NotColumnar, and InvalidSchema if the output cannot express the
        schema."""
        compiler = _ColumnEncoderCompiler(settings, reader_of, reads_any)
        column = compiler.required(schema)
        if column.type is Any or schema.optional or schema.default is not None:
            raise NotColumnar("the values are read row-wise")
        self._encode = column.encode
        self._max_fields = compiler.max_fields
        self._decode = msgspec.json.Decoder(column.type, float_hook=parse_number).decode_lines

    def encode(self, texts: pa.BinaryArray) -> pa.BinaryArray:
        """The data of `texts`, none of which is null. Raises UnusualValues if one must be read row-wise."""
        return self.encode_lines(arrow_columns.joined(texts, after=b"\n"))

    def encode_lines(self, lines: pa.BinaryArray) -> pa.BinaryArray:
        """As `encode`, for texts that a newline follows."""
        bounds = arrow_columns.bounds(lines)
        data = arrow_columns.content(lines)[bounds[0] : bounds[-1]]
        if np.count_nonzero(data == ord("\n")) != len(lines):
            raise UnusualValues("a text has a line break")
        if self._can_be_sparse(data):
            raise UnusualValues("the structs can have more fields than the memory is for")
        try:
            values = self._decode(data.data)
            if len(values) != len(lines):
                raise UnusualValues("a text is empty")
            return avro_column_encoder.joined(self._encode(values), len(values))
        except UnusualValues:
            raise
        except _ERRORS as error:
            raise UnusualValues(str(error)) from None

    def _can_be_sparse(self, lines: Bytes) -> bool:
        """Whether the structs of the texts can have more than MAX_FIELDS fields, with those that are missing."""
        most = len(lines) // 2  # an object has two bytes or more
        return self._max_fields * most > MAX_FIELDS and bool(
            self._max_fields * np.count_nonzero(lines == ord("{")) > MAX_FIELDS
        )


class _ColumnEncoderCompiler:
    def __init__(self, settings: DatumSettings, reader_of: ReaderOf, reads_any: Callable[[Schema], bool]) -> None:
        self.max_fields = 1
        """The number of fields of the struct that has the most."""
        self._settings = settings
        self._reader_of = reader_of
        self._reads_any = reads_any

    def column(self, schema: Schema) -> _Column:
        """The column of values that can be null or missing."""
        column = self.required(schema)
        if column.type is Any:
            return self._one_by_one(schema)
        if schema.default is not None:
            return _defaulted(schema, column) if column.type in _SCALARS else self._one_by_one(schema)
        return _Column(column.type | None, _nullable(column.encode)) if schema.optional else column

    def required(self, schema: Schema) -> _Column:
        """The column of values that are not null."""
        if self._reads_any(schema):
            return self._one_by_one(schema)
        match schema.type:
            case SchemaType.STRUCT if not is_union(schema) and schema.name != ONE_OF:
                return self._struct(schema)
            case SchemaType.ARRAY:
                return self._array(self.column(child(schema.values)))
            case SchemaType.MAP if is_text_map(schema):
                return self._map(self.column(child(schema.values)))
            case SchemaType.STRING:
                return self._text(schema)
            case SchemaType.BOOLEAN:
                return _Column(bool, _booleans)
        if schema.type in _FLOATS:
            return _Column(float, _floats if schema.type is SchemaType.FLOAT32 else _doubles)
        return _integers(schema) if schema.type in INTEGER_BITS else self._one_by_one(schema)

    def _one_by_one(self, schema: Schema) -> _Column:
        read, encode = self._reader_of(schema), value_encoder(schema, self._settings)

        def of_values(values: list[Any]) -> Parts:
            data = [encode(read(value)) for value in values]
            _check_repeated(sum(map(len, data)))
            return [arrow_columns.binaries(data)]

        return _Column(Any, of_values)

    def _struct(self, schema: Schema) -> _Column:
        fields = [self.column(field.schema) for field in schema.fields]
        self.max_fields = max(self.max_fields, len(fields))
        attributes = [f"f{number}" for number in range(len(fields))]
        is_recursive = any((schema.name or "") in free_references(field.schema) for field in schema.fields)
        if is_recursive or not all(_is_plain(field.name) for field in schema.fields):
            return self._one_by_one(schema)
        kind = msgspec.defstruct(
            "Struct",
            [
                (name, column.type, *_default_if_missing(field.schema, column))
                for name, column, field in zip(attributes, fields, schema.fields, strict=True)
            ],
            rename=dict(zip(attributes, (field.name for field in schema.fields), strict=True)),
            forbid_unknown_fields=True,
            kw_only=True,
            gc=False,
        )
        columns = [(attrgetter(name), column.encode) for name, column in zip(attributes, fields, strict=True)]
        return _Column(
            kind, lambda values: [part for get, encode in columns for part in encode(list(map(get, values)))]
        )

    def _array(self, item: _Column) -> _Column:
        def encode(values: list[list[Any]]) -> Parts:
            counts = np.fromiter(map(len, values), np.int64, len(values))
            items = list(chain.from_iterable(values))
            return avro_column_encoder.lists(counts, _repeated(item.encode(items), len(items)))

        return _Column(list[item.type], encode)  # type: ignore[name-defined]

    def _map(self, item: _Column) -> _Column:
        def encode(values: list[dict[str, Any]]) -> Parts:
            counts = np.fromiter(map(len, values), np.int64, len(values))
            keys, items = list(chain.from_iterable(values)), list(chain.from_iterable(map(dict.values, values)))
            entries = [*avro_column_encoder.texts(keys), *item.encode(items)]
            return avro_column_encoder.lists(counts, _repeated(entries, len(keys)))

        return _Column(dict[str, item.type], encode)  # type: ignore[name-defined]

    def _text(self, schema: Schema) -> _Column:
        if symbols := enum_symbols(schema):
            index = {symbol: position for position, symbol in enumerate(symbols)}.__getitem__
            return _Column(str, lambda values: [avro_column_encoder.longs(_numbers(map(index, values), len(values)))])
        if schema.logical == "uuid":
            return _Column(str, _uuids)
        return _Column(str, avro_column_encoder.texts)


def _default_if_missing(schema: Schema, column: _Column) -> tuple[object, ...]:
    """What the decoder sets for a missing property; empty if it is required."""
    if schema.name == COLUMN_NAME:
        return (msgspec.UNSET,)  # a property with this name is an unknown one, also if it is null
    return (None,) if schema.optional or schema.default is not None or column.type is Any else ()


def _is_plain(name: str) -> bool:
    """Whether msgspec accepts the name of a property."""
    return not set(name) & {'"', "\\"} and min(name, default=" ") >= " " and name.isprintable()


def _nullable(encode: Callable[[list[Any]], Parts]) -> Callable[[list[Any]], Parts]:
    def of_values(values: list[Any]) -> Parts:
        present = np.fromiter(map(is_not, values, repeat(None)), np.bool_, len(values))
        if present.all():
            return [avro_column_encoder.constant(b"\x02", len(values)), *encode(values)]
        some = list(compress(values, present))
        return [avro_column_encoder.branches(present, 0, 1), *avro_column_encoder.spread(encode(some), present)]

    return of_values


def _defaulted(schema: Schema, column: _Column) -> _Column:
    """A null takes the default, which is the first member of an optional type."""
    default: Any = default_value(schema)
    size = len(default.encode()) if isinstance(default, str) else 0

    def encode(values: list[Any]) -> Parts:
        if size:
            _check_repeated(size * values.count(None))
        parts = column.encode([default if value is None else value for value in values])
        return [avro_column_encoder.constant(b"\x00", len(values)), *parts] if schema.optional else parts

    return _Column(column.type | None, encode)


def _repeated(parts: Parts, rows: int) -> pa.BinaryArray:
    """The data of the items of arrays and maps."""
    data = avro_column_encoder.joined(parts, rows)
    _check_repeated(int(np.ptp(arrow_columns.bounds(data)[[0, -1]])))
    return data


def _check_repeated(size: int) -> None:
    """Values of this size can have too many defaults for `value_encoder`, which decides."""
    if size > MAX_REPEATED:
        raise UnusualValues("the data are much larger than the values")


def _numbers(values: Iterable[int], count: int) -> Integers:
    """Raises OverflowError for an integer of more than 64 bits."""
    return np.fromiter(values, np.int64, count)


def _integers(schema: Schema) -> _Column:
    lowest, highest = value_range(schema)

    def encode(values: list[int]) -> Parts:
        numbers = _numbers(values, len(values))
        if len(numbers) and not (lowest <= numbers.min() and numbers.max() <= highest):
            raise UnusualValues("an integer is outside its range")
        return [avro_column_encoder.longs(numbers)]

    return _Column(int, encode)


def _booleans(values: list[bool]) -> Parts:
    return [avro_column_encoder.booleans(np.fromiter(values, np.bool_, len(values)))]


def _doubles(values: list[float]) -> Parts:
    return [avro_column_encoder.doubles(_finite(np.fromiter(values, np.float64, len(values))))]


def _floats(values: list[float]) -> Parts:
    with np.errstate(over="ignore"):
        singles = np.fromiter(values, np.float64, len(values)).astype(np.float32)
    return [avro_column_encoder.floats(_finite(singles))]


def _finite(numbers: Any) -> Any:
    """The numbers. msgspec reads one that is too large as an infinity."""
    if not np.isfinite(numbers).all():
        raise UnusualValues("a number is too large")
    return numbers


def _uuids(values: list[str]) -> Parts:
    if not all(map(is_uuid, values)):
        raise UnusualValues("a text is not a UUID")
    return avro_column_encoder.texts(values)
