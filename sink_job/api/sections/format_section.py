"""The section spec.format: how records are converted, encoded and compressed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, TypeVar

from pydantic import Field, StrictBool, StrictInt

from sink_job.api.base_model import SpecModel, description
from sink_job.api.enums import (
    CompressionCodec,
    ConverterType,
    DecimalFormat,
    LogicalTypes,
    OutputFormat,
    SchemaInference,
    TimestampFormat,
    TimeUnit,
    UnknownFields,
)
from sink_job.api.field_types import Extension, FieldPath
from sink_job.api.rules.compressions import COMPRESSIONS, LEVELS
from sink_job.api.sections.registry_section import RegistrySpec
from sink_job.api.sections.schema_section import SchemaSpec
from sink_job.api.units.quantities import MI, Size

S = TypeVar("S", bound=SpecModel)

MAX_BLOOM_FILTERS: Final = 16
"""Maximum number of columns with a Bloom filter: each takes memory of every task."""


def default_level(section: Mapping[str, Any]) -> int | None:
    """The level of a codec without one, in a validated `CompressionSpec`; None for codecs without levels."""
    levels = LEVELS.get(section.get("codec", CompressionCodec.NONE))
    return None if levels is None else levels.default


class CompressionSpec(SpecModel):
    """The compression of objects."""

    codec: Annotated[
        CompressionCodec, description(key="s3.compression.type, avro.codec, parquet.codec", example="Zstd")
    ]
    """Compression codec: None, Gzip or Zstd for Json and Bytes; None, Deflate, Snappy, Zstd or Bzip2 for Avro; None,
    Snappy, Gzip, Zstd, Lz4 or Brotli for Parquet."""
    level: Annotated[StrictInt | None, description(key="s3.compression.level", ge=0, le=19)] = Field(
        default_factory=default_level
    )
    """Level of the codec, from fastest to smallest objects: 0 to 3 for Gzip and Deflate (default 2), 1 to 19 for Zstd
    (default 3). Other codecs, and Gzip in Parquet, have a fixed level."""

    @property
    def chosen_level(self) -> int:
        """The level of a codec that has levels. Raises ValueError for another one."""
        if self.level is None:
            raise ValueError(f"the codec {self.codec} has no level")
        return self.level


class ParquetSpec(SpecModel):
    """Settings of the output Parquet."""

    row_group: Annotated[int, Size(minimum=MI, maximum=512 * MI)] = 64 * MI
    """Size of a row group: it ends at the first record at which its records, as Avro, reach this size, or their columns
    1.5 times as much. Each task needs memory for one row group."""
    dictionary: StrictBool = True
    """Dictionaries: a column has one in each row group where a sample of its values says that it becomes smaller. With
    false only columns of enums have one."""
    time_unit: TimeUnit = TimeUnit.MICROS
    """Unit of times and timestamps in milliseconds, also of the timestamp in an envelope: Micros writes them in
    microseconds, AsSchema as the schema says. Iceberg has no milliseconds. Other times keep their unit."""
    bloom_filters: Annotated[
        list[FieldPath] | None,
        description(example=["flight", "origin.icao"], min_length=1, max_length=MAX_BLOOM_FILTERS),
    ] = None
    """Columns with a Bloom filter in each row group, for searches by value: use dots for nested fields, value.<field>
    with envelope, <field>.list.element for the elements of a list. Booleans, floats and absent columns have none. Each
    takes memory of every task."""


class AvroSpec(SpecModel):
    """Settings of the output Avro."""

    block: Annotated[int, Size(minimum=1024, maximum=64 * MI)] = MI
    """Size of a block: it ends at the first record at which its records reach this size, before compression."""
    connect_names: Annotated[StrictBool, description(key="connect.meta.data")] = False
    """Write connect.name, connect.version and the like into the schema of objects."""


class BytesSpec(SpecModel):
    """Settings of the output Bytes."""

    separator: Annotated[str, description(key="format.bytearray.separator", max_length=64)] = "\n"
    """Text after every record. Default: a newline. May be empty."""
    extension: Annotated[Extension, description(key="format.bytearray.extension")] = ".bin"
    """File extension of objects."""


def default_compression(section: Mapping[str, Any]) -> CompressionSpec:
    """The compression of a validated `FormatSpec` without one: the first codec of its output."""
    return CompressionSpec(codec=COMPRESSIONS[section.get("output", OutputFormat.JSON)][0])


def _only_of(output: OutputFormat, section: type[S]) -> Callable[[Mapping[str, Any]], S | None]:
    """The default of the section of an output: its own defaults, or None for another output."""
    return lambda fields: section() if fields.get("output") is output else None


class FormatSpec(SpecModel):
    """How records are converted, encoded and compressed."""

    converter: Annotated[ConverterType, description(key="value.converter")] = ConverterType.JSON
    """Converter of record values."""
    key_converter: Annotated[ConverterType | None, description(key="key.converter")] = None
    """Converter of record keys. Required if paths or times use $key. Otherwise it needs envelope: keys are not read
    without it. An envelope without it has the bytes of keys."""
    output: Annotated[OutputFormat, description(key="format.class")] = OutputFormat.JSON
    """Format of objects: JSON lines, bytes with a separator, Avro object container files, or Parquet. Avro and Parquet
    need records with schemas."""
    compression: CompressionSpec = Field(default_factory=default_compression)
    """Compression of objects. Default: Snappy for Parquet, else None."""
    parquet: ParquetSpec | None = Field(default_factory=_only_of(OutputFormat.PARQUET, ParquetSpec))
    """Settings of the output Parquet."""
    avro: AvroSpec | None = Field(default_factory=_only_of(OutputFormat.AVRO, AvroSpec))
    """Settings of the output Avro."""
    bytes: BytesSpec | None = Field(default_factory=_only_of(OutputFormat.BYTES, BytesSpec))
    """Settings of the output Bytes."""
    registry: RegistrySpec | None = None
    """The schema registry of the records. Required by the converters Avro, Protobuf and JsonSchema, except with
    schema."""
    bare_value_schema: Annotated[SchemaSpec | None, description(alias="schema")] = None
    """The schema of bare values, for the converters Avro, Protobuf and JsonSchema, instead of a registry;
    and for the converter Json if output is Avro or Parquet."""
    inference: SchemaInference = SchemaInference.NONE
    """Once, for the converter Json and the outputs Avro and Parquet, instead of schema: infer the schema from the first
    records of each topic, and keep it for ever."""
    unknown_fields: UnknownFields = UnknownFields.FAIL
    """Properties of a JSON value that its schema lacks, if output is Avro or Parquet, or with JsonSchema and
    transforms: Fail rejects the record, Drop drops and counts them, Json writes them as JSON into the column
    _unknown."""
    decimals: Annotated[DecimalFormat, description(key="json.decimal.format")] = DecimalFormat.BASE64
    """Form of decimals in Json, for Avro, Protobuf and ConnectJson: Base64 of their unscaled bytes, or Numeric."""
    timestamps: TimestampFormat = TimestampFormat.NUMBER
    """Form of dates, times and timestamps in Json, for Avro, Protobuf and ConnectJson, and of the timestamp in an
    envelope: Number of days or milliseconds, or Iso (ISO 8601)."""
    logical_types: LogicalTypes = LogicalTypes.ALL
    """Logical types of Avro in Avro and Parquet: All of them, or AsConnector: those of Kafka Connect, others as plain
    long or string."""
    envelope: StrictBool = False
    """Write key, headers, timestamp, timestampType, topic, partition and offset beside the value, in the same object,
    for the outputs Json, Avro and Parquet."""

    @property
    def key_output(self) -> OutputFormat:
        """The format of keys: that of the object that contains them; otherwise they are read for paths only."""
        return self.output if self.envelope else OutputFormat.BYTES
