"""Values as Avro data for the outputs Avro and Parquet, under the Avro schema of their object.

Avro data passes unchanged where its type has the same binary form as the object's.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from sink_job.arrow import columns as arrow_columns
from sink_job.avro.encoder import RANGES, datum_encoder
from sink_job.avro.from_connect import avro_type
from sink_job.avro.map_entries import entry_types, is_map_entry
from sink_job.avro.schema import AvroType
from sink_job.avro.to_connect import logical_type
from sink_job.avro.visitor import all_types, inner_types
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.projection import projector
from sink_job.connect.schema import Schema

_SMALL: Final = ("int8", "int16")


def projected_datums(
    values: Iterable[object], source: Schema, target: Schema, settings: DatumSettings
) -> pa.BinaryArray:
    """The data under the Avro schema of `target` of values under `source`, in Connect's data model.

    The values are valid under `source`. They have no limit of size: data errors are decided before. Raises
    RecursionError.
    """
    project, encode = projector(source, target), datum_encoder(target, settings, limited=False)
    return arrow_columns.binaries([encode(project(value)) for value in values])


def passes(avro: AvroType, schema: Schema, settings: DatumSettings) -> bool:
    """Whether data of the type `avro` of a producer is data under the Avro schema of `schema`, byte for byte."""
    return _is_same_form(avro, avro_type(schema, settings), set())


def _is_same_form(one: AvroType, other: AvroType, compared: set[tuple[int, int]]) -> bool:
    if (id(one), id(other)) in compared:
        return True
    compared.add((id(one), id(other)))
    if one.kind != other.kind or one.symbols != other.symbols or one.size != other.size:
        return False
    if one.properties.get("connect.type") in _SMALL:  # Connect drops the upper bits
        return False
    ours, theirs = inner_types(one), inner_types(other)
    return len(ours) == len(theirs) and all(
        _is_same_form(inner, of_other, compared) for inner, of_other in zip(ours, theirs, strict=True)
    )


def has_limits(avro: AvroType, settings: DatumSettings) -> bool:
    """Whether values of a type that are valid Avro data can be none of the output: decimals, dates and times
    outside their range, and texts that must be UUIDs; for Parquet also null keys of maps."""
    return any(_has_limit(each, settings) for each in all_types(avro))


def _has_limit(avro: AvroType, settings: DatumSettings) -> bool:
    name = logical_type(avro)
    if settings.is_parquet and is_map_entry(avro) and entry_types(avro)[0].nullable is not None:
        return True
    if name == "uuid":
        return settings.keeps_logical_types and avro.kind == "string"
    return name == "decimal" or name in RANGES
