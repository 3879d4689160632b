"""The encoders of containers, from the settings of a sink and the schema of an object."""

from __future__ import annotations

from collections.abc import Callable

from sink_job.api.enums import OutputFormat
from sink_job.api.sections.format_section import AvroSpec, FormatSpec, ParquetSpec
from sink_job.connect.field_ids import FieldIds
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import Schema
from sink_job.formats.base import ObjectEncoder

EncoderOfKey = Callable[[str], ObjectEncoder]
"""key of an object -> its encoder."""


def container_encoder(settings: FormatSpec, schema: Schema, ids: FieldIds | None = None) -> EncoderOfKey:
    """The encoders of the objects with the schema `schema`; `ids` as of `RowReader`. Raises InvalidSchema if the output
    cannot express it, which the converter has checked."""
    return _parquet(settings, schema, ids) if settings.output is OutputFormat.PARQUET else _avro(settings, schema)


def datum_settings(settings: FormatSpec) -> DatumSettings:
    """The settings of the datums of containers."""
    datums = DatumSettings.of(settings)
    assert datums is not None, "the rows of containers are datums"
    return datums


def _avro(settings: FormatSpec, schema: Schema) -> EncoderOfKey:
    from sink_job.avro.container import AvroContainer, avro_codec
    from sink_job.avro.from_connect import avro_schema

    text = avro_schema(schema, datum_settings(settings))
    codec = avro_codec(settings)
    block_size = (settings.avro or AvroSpec()).block
    return lambda key: AvroContainer(text, key, codec, block_size=block_size)


def _parquet(settings: FormatSpec, schema: Schema, ids: FieldIds | None) -> EncoderOfKey:
    from sink_job.parquet.container import ParquetContainer, parquet_codec
    from sink_job.parquet.table_reader import ParquetTableReader

    parquet = settings.parquet or ParquetSpec()
    encoder = ParquetContainer(
        ParquetTableReader(schema, datum_settings(settings), ids, dictionaries=True),
        parquet_codec(settings),
        block_size=parquet.row_group,
        dictionary=parquet.dictionary,
        bloom_filters=parquet.bloom_filters or (),
    )
    return lambda key: encoder
