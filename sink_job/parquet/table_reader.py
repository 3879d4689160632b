"""Reads the data of a Parquet object's rows to a table of Parquet's types.

Column-wise with pyruhvro where it reads the type, and else row-wise. Both give the same table.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import pyarrow as pa

from sink_job.arrow.columnar import MAX_DEPTH, columnar_or_row_wise
from sink_job.avro import row_decoder as avro_row_decoder
from sink_job.avro.column_decoder import DataReader
from sink_job.avro.from_connect import avro_type
from sink_job.avro.map_entries import entry_types, is_map_entry, map_of_entries
from sink_job.avro.schema import AvroType
from sink_job.avro.to_connect import logical_type
from sink_job.avro.visitor import inner_types
from sink_job.connect import logical_types
from sink_job.connect.field_ids import FieldIds, field_paths, numbered
from sink_job.connect.output_settings import DatumSettings, check_parquet
from sink_job.connect.schema import Schema
from sink_job.parquet.columns import column_types, raw_type, symbols_size, typed, with_dictionaries
from sink_job.parquet.types import arrow_schema

MAX_SHARED: Final = 1.2
"""The maximum size of all that was read, in multiples of the columns that are made of it. A column that shares a part
of it keeps all of it in memory."""


class ParquetTableReader:
    """Reads the rows of objects with one schema."""

    def __init__(
        self, schema: Schema, settings: DatumSettings, ids: FieldIds | None = None, *, dictionaries: bool = False
    ) -> None:
        """`settings` are those of the output Parquet; `ids` has each of the schema's `field_paths` (None: their
        numbers). `dictionaries`: the table has enums as indexes of their symbols. Otherwise it has them as a Parquet
        file does, as texts. Raises InvalidSchema if Parquet cannot express the schema."""
        avro = avro_type(schema, settings)
        record = avro.nullable or avro
        check_parquet(schema)
        ids = numbered(field_paths(schema)) if ids is None else ids
        self.arrow_schema: pa.Schema = arrow_schema(schema, settings, ids)
        """The columns of the table, with a field id (`PARQUET:field_id`) for each type."""
        self.symbols_size = symbols_size(record) if dictionaries else 0
        """The size of the largest dictionary of an enum in bytes, as Parquet has it."""
        if dictionaries:
            self.arrow_schema = with_dictionaries(record, self.arrow_schema)
        self._fields = [
            typed(each, self.arrow_schema.field(number)) for number, each in enumerate(column_types(record))
        ]
        self._columns = DataReader(avro) if _is_by_column(avro, 0) else None
        self._rows = _RowColumns(avro)

    def table(self, datums: pa.BinaryArray) -> pa.Table:
        """The table of `datums`, none of which is null: data of `avro_schema(schema, settings)` that a converter has
        accepted. Raises ValueError for data that is not valid, which is an internal error."""
        columnar = None if self._columns is None else partial(self._table_of, self._columns.read)
        return columnar_or_row_wise(datums, columnar, partial(self._table_of, self._rows.read))

    def _table_of(self, read: Callable[[pa.BinaryArray], pa.StructArray], datums: pa.BinaryArray) -> pa.Table:
        rows = read(datums)
        if rows.null_count:
            raise ValueError("a row of an object is null")
        columns = [of_field(rows.field(number)) for number, of_field in enumerate(self._fields)]
        if rows.nbytes > MAX_SHARED * sum(column.nbytes for column in columns):
            columns = list(map(_copied, columns))
        return pa.Table.from_arrays(columns, schema=self.arrow_schema)


def _copied(column: pa.Array) -> pa.Array:
    """The column in memory of its own."""
    return pa.concat_arrays([column, column.slice(0, 0)])


def _is_by_column(avro: AvroType, depth: int) -> bool:
    if depth > MAX_DEPTH or avro.kind == "fixed" or (avro.kind == "union" and avro.nullable is None):
        return False
    if avro.kind == "array" and is_map_entry(avro.items):
        key = entry_types(avro.items)[0]
        if (key.nullable or key).kind in _NESTED:
            return False
    return all(_is_by_column(each, depth + 1) for each in inner_types(avro))


_NESTED: Final = {"record", "array", "map", "union"}

_Plain = Callable[[Any], Any]


class _RowColumns:
    """Reads data row-wise."""

    def __init__(self, avro: AvroType) -> None:
        self._read = avro_row_decoder.DatumReader(avro).read
        self._type = raw_type(avro)
        self._plain = _plain(avro) or _same

    def read(self, datums: pa.BinaryArray) -> pa.Array:
        return pa.array([self._plain(self._read(data)) for data in datums.to_pylist()], self._type)


def _same(value: object) -> object:
    return value


def _plain(avro: AvroType) -> _Plain | None:
    """The function that turns values into those that Arrow reads: the last of equal keys of a map counts."""
    match avro.kind:
        case "union":
            return _union(avro)
        case "record":
            return _record({field.name: _plain(field.type) for field in avro.fields})
        case "array" if is_map_entry(avro.items):
            item = _with_short_key(avro.items, _plain(avro.items) or _same)
            return lambda value: _entries(avro.items, [item(entry) for entry in value])
        case "array":
            return _each(_plain(avro.items))
        case "map":
            of_value = _plain(avro.items) or _same
            return lambda value: [(key, of_value(item)) for key, item in value.items()]
    return None


def _with_short_key(entry: AvroType, item: _Plain) -> _Plain:
    """Equal decimals can have different bytes. As keys, they get the shortest ones, to be compared."""
    key = entry_types(entry)[0]
    if logical_type(key.nullable or key) != "decimal" or (key.nullable or key).kind != "bytes":
        return item
    return lambda value: {**item(value), "key": _shortest(value["key"])}


def _shortest(unscaled: bytes) -> bytes:
    return logical_types.integer_to_bytes(int.from_bytes(unscaled, "big", signed=True))


def _entries(entry: AvroType, entries: list[Any]) -> list[Any]:
    found: Any = map_of_entries(entry, entries)
    pairs = found.items() if isinstance(found, dict) else found
    return [{"key": key, "value": value} for key, value in pairs]


def _union(avro: AvroType) -> _Plain | None:
    if (inner := avro.nullable) is None:
        members = {member.member_name: _plain(member) for member in avro.members if member.kind != "null"}
        return _unless_null(_record(members))
    return _unless_null(_plain(inner))


def _unless_null(function: _Plain | None) -> _Plain | None:
    return None if function is None else lambda value: None if value is None else function(value)


def _each(function: _Plain | None) -> _Plain | None:
    return None if function is None else lambda value: [function(item) for item in value]


def _record(fields: dict[str, _Plain | None]) -> _Plain | None:
    changed = {name: function for name, function in fields.items() if function is not None}
    if not changed:
        return None
    return lambda value: {name: changed[name](item) if name in changed else item for name, item in value.items()}
