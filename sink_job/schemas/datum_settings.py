"""The settings that shape the values of the outputs Avro and Parquet."""

from __future__ import annotations

from typing import Final

import msgspec

from sink_job.api.enums import LogicalTypes, OutputFormat, TimeUnit
from sink_job.api.job_sections import FormatSpec
from sink_job.schemas import logical
from sink_job.schemas.avro import Extension
from sink_job.schemas.model import Schema

_PRECISION: Final = "connect.decimal.precision"
_AVRO_PRECISION: Final = 64
"""AvroData's precision of a decimal without one."""
MAX_PARQUET_PRECISION: Final = 38


class DatumSettings(msgspec.Struct, frozen=True):
    """The settings of one sink. `output` is Avro or Parquet. `envelope`: values are fields of an envelope. `time_unit`
    is that of the columns of Parquet; the data of rows have the times of their schemas."""

    output: OutputFormat = OutputFormat.AVRO
    logical_types: LogicalTypes = LogicalTypes.ALL
    connect_names: bool = False
    envelope: bool = False
    time_unit: TimeUnit = TimeUnit.MICROS

    @classmethod
    def of(cls, settings: FormatSpec) -> DatumSettings | None:
        """The settings; None for an output whose values are no Avro data."""
        if not settings.output.has_datums:
            return None
        return cls(
            settings.output,
            settings.logical_types,
            settings.connect_names,
            settings.envelope,
            settings.time_unit or TimeUnit.MICROS,
        )

    @property
    def is_parquet(self) -> bool:
        return self.output is OutputFormat.PARQUET

    @property
    def extension(self) -> Extension:
        """What the schemas of Avro values have beyond Connect's data model."""
        return Extension.LOGICAL_TYPES if self.logical_types is LogicalTypes.ALL else Extension.SYMBOLS

    @property
    def keeps_logical_types(self) -> bool:
        """Whether logical types that Connect has no equivalent of are kept."""
        return self.extension is Extension.LOGICAL_TYPES

    def precision(self, schema: Schema) -> int:
        """The maximum number of digits of a decimal, at most 38 in Parquet."""
        found = given_precision(schema)
        if self.is_parquet:
            return min(found or MAX_PARQUET_PRECISION, MAX_PARQUET_PRECISION)
        return found or _AVRO_PRECISION


def given_precision(schema: Schema) -> int | None:
    """The precision that the schema of a decimal names; None if it names no valid one."""
    text = schema.parameter.get(_PRECISION, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0 else None


def is_native_decimal(schema: Schema, precision: int) -> bool:
    """Whether the scale of a decimal is one that Avro and Parquet allow."""
    return 0 <= logical.scale_of(schema) <= precision
