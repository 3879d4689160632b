"""Checks data column-wise that are written unchanged: what pyruhvro does not check (see
`sink_job.avro.column_decoder`), and the limits of the output.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import structs

from sink_job.arrow import columns as arrow_columns
from sink_job.arrow import json_columns
from sink_job.arrow.columnar import MAX_DEPTH, NotColumnar, UnusualValues
from sink_job.arrow.utf8 import is_utf8
from sink_job.avro.encoder import RANGES, value_encoder
from sink_job.avro.schema import INT_RANGE, AvroType
from sink_job.avro.to_connect import logical_type
from sink_job.connect import logical_types
from sink_job.connect.errors import InvalidValue
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Schema
from sink_job.connect.scopes import child

Check = Callable[[pa.Array], None]
"""Checks a column without nulls. Raises UnusualValues if its values must be decided row-wise."""

_UUID: Final = r"\A(?:{0}{{8}}(?:-{0}{{4}}){{3}}-{0}{{12}}|{0}{{32}})\z".format("[0-9A-Fa-f]")
"""As `sink_job.avro.value_encoders.is_uuid`, without references to groups, which Arrow does not have."""
_UNCHECKED: Final = {"boolean", "long", "float", "double", "bytes"}


def data_check(avro: AvroType, schema: Schema, settings: DatumSettings) -> Check:
    """The check of data of a type with the schema `schema`, from the columns of its reading schema.

    Raises NotColumnar if the type is not read column-wise.
    """
    return _ColumnCheckCompiler(settings).check(avro, schema, ())


class _ColumnCheckCompiler:
    def __init__(self, settings: DatumSettings) -> None:
        self._settings = settings

    def check(self, avro: AvroType, schema: Schema, enclosing: tuple[AvroType, ...]) -> Check:
        if len(enclosing) > MAX_DEPTH or avro in enclosing:
            raise NotColumnar("a type is deep or recursive")
        inner = (*enclosing, avro)
        match avro.kind:
            case "union" if avro.nullable is not None:
                return _present(self.check(avro.nullable, schema, inner))
            case "record" if avro.fields:
                pairs = zip(avro.fields, schema.fields, strict=True)
                return _struct([self.check(one.type, field.schema, inner) for one, field in pairs])
            case "array" if schema.keys is not None and schema.values is not None:
                return _list(self._entry(avro.items, schema.keys, schema.values, inner))
            case "array":
                return _list(self.check(avro.items, child(schema.values), inner))
            case "map":
                return _map(self.check(avro.items, child(schema.values), inner))
        return self._scalar(avro, schema)

    def _entry(self, avro: AvroType, keys: Schema, values: Schema, enclosing: tuple[AvroType, ...]) -> Check:
        if keys.optional and self._settings.is_parquet:
            raise NotColumnar("null keys are not checked column-wise")
        types = {"key": keys, "value": values}
        inner = (*enclosing, avro)
        return _struct([self.check(field.type, types[field.name], inner) for field in avro.fields])

    def _scalar(self, avro: AvroType, schema: Schema) -> Check:
        name = logical_type(avro)
        if name in RANGES and avro.kind in ("int", "long"):
            return lambda column: json_columns.check_range(column, *RANGES[name])
        match avro.kind:
            case "string" if schema.logical == "uuid":
                return _uuids
            case "string":
                return _utf8
            case "int":
                return lambda column: json_columns.check_range(column, *INT_RANGE)
            case "enum" if avro.symbols:
                return lambda column: json_columns.check_range(column, 0, len(avro.symbols) - 1)
            case "bytes" if logical_types.is_decimal(schema):
                return _decimals(schema, self._settings)
        if avro.kind in _UNCHECKED:
            return _nothing
        raise NotColumnar(f"{avro.kind} is not read column-wise")


def _nothing(column: pa.Array) -> None:
    pass


def _utf8(column: pa.Array) -> None:
    if not is_utf8(column.view(pa.binary())):
        raise UnusualValues("a string is not UTF-8")


def _uuids(column: pa.Array) -> None:
    if not pc.all(pc.match_substring_regex(column.view(pa.binary()), _UUID), min_count=0).as_py():
        raise UnusualValues("a text is not a UUID")


def _present(check: Check) -> Check:
    return lambda column: check(column.drop_null() if column.null_count else column)


def _struct(fields: list[Check]) -> Check:
    def check(column: pa.StructArray) -> None:
        for of_field, values in zip(fields, column.flatten(), strict=True):
            of_field(values)

    return check


def _list(item: Check) -> Check:
    return lambda column: item(column.flatten())


def _map(item: Check) -> Check:
    def check(column: pa.MapArray) -> None:
        if len(column):
            start, end = column.offsets[0].as_py(), column.offsets[-1].as_py()
            _utf8(column.keys.slice(start, end - start))
            item(column.items.slice(start, end - start))

    return check


def _decimals(schema: Schema, settings: DatumSettings) -> Check:
    """Only values with so many bytes that they can have too many digits are checked one by one."""
    scale, encode = (
        logical_types.scale_of(schema),
        value_encoder(structs.replace(schema, optional=False, default=None), settings),
    )
    safe = ((10 ** settings.precision(schema) - 1).bit_length()) // 8

    def check(column: pa.Array) -> None:
        values = column.view(pa.binary())
        sizes = np.diff(arrow_columns.bounds(values))
        for row in np.flatnonzero((sizes > safe) | (sizes == 0)).tolist():
            try:
                encode(logical_types.decimal_from_bytes(values[row].as_py(), scale))
            except InvalidValue as error:
                raise UnusualValues(str(error)) from None

    return check
