"""The format of objects: output, compression, and the settings of each output."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from sink_job.api.enums import ConverterType
from sink_job.api.field_types import check_extension
from sink_job.migrate.draft import Draft
from sink_job.migrate.values import parse_boolean, parse_choice, parse_number, simple_name

_FORMATS: Final = {"AvroFormat": "Avro", "JsonFormat": "Json", "ByteArrayFormat": "Bytes", "ParquetFormat": "Parquet"}
_AVRO_CODECS: Final = {"null": "None", "deflate": "Deflate", "snappy": "Snappy", "bzip2": "Bzip2"}
_PARQUET_CODECS: Final = {
    "none": "None",
    "uncompressed": "None",
    "snappy": "Snappy",
    "gzip": "Gzip",
    "zstd": "Zstd",
    "brotli": "Brotli",
}
_WITH_FORMS: Final = (ConverterType.AVRO, ConverterType.PROTOBUF, ConverterType.CONNECT_JSON)
_MAX_SEPARATOR: Final = 64
_ENHANCED: Final = "enhanced.avro.schema.support"
_OF_SCHEMAS: Final = (
    _ENHANCED,
    "scrub.invalid.names",
    "allow.optional.map.keys",
    "generalized.sum.type.support",
    "flatten.unions",
    "flatten.singleton.unions",
    "discard.type.doc.default",
    "ignore.default.for.nullables",
)
"""Settings of the Avro schemas that the connector makes for the outputs Avro and Parquet."""


def output_format(draft: Draft) -> str:
    """Sets `format.output`."""
    key = "format.class"
    value = draft.text(key)
    if not value:
        draft.missing(key, "the connector needs it; Json is written", "correct format.output")
        return "Json"
    found = _FORMATS.get(simple_name(value)) if "." not in value or value.startswith("io.confluent.") else None
    if found is None:
        draft.impossible(key, "a format of one's own cannot be converted")
        return "Json"
    draft.put("format.output", found, key)
    return found


def convert_format(draft: Draft, output: str, converter: ConverterType) -> None:
    """Sets the fields of the output, and `schemaCompatibility`."""
    infers = _schemas_of_output(draft, output, converter)
    _compression(draft, output)
    _bytes(draft, output, converter)
    _avro(draft, output)
    _types(draft, output)
    _decimals(draft, output, converter)
    _compatibility(draft, converter, output, infers=infers)


def _schemas_of_output(draft: Draft, output: str, converter: ConverterType) -> bool:
    """Makes sure that records of Avro and Parquet have schemas. True if they are inferred."""
    if output not in ("Avro", "Parquet"):
        return False
    draft.put("format.logicalTypes", "AsConnector", "logical types that Kafka Connect does not have are plain")
    if converter.has_schemas:
        return False
    if converter is not ConverterType.JSON:
        action = "use a converter with schemas, or the output Json or Bytes"
        draft.impossible("format.class", f"{output} needs records with a schema, and {converter} has none", action)
        return False
    draft.put("format.inference", "Once", "the connector has no schema either")
    draft.different(
        "format.class",
        f"{output} needs records with a schema, and JSON with schemas.enable=false has none: the connector stops at "
        "its first record, and here a schema is inferred once",
        "write format.schema instead of format.inference, or leave it",
    )
    return True


def _compression(draft: Draft, output: str) -> None:
    of_output = {"Avro": "avro.codec", "Parquet": "parquet.codec"}.get(output, "s3.compression.type")
    for key in ("s3.compression.type", "avro.codec", "parquet.codec"):
        if key != of_output and key in draft.settings:
            draft.left_out(key, f"has no effect with the output {output}")
    codec = _codec(draft, of_output)
    if codec is not None:
        comment = of_output if of_output in draft.settings else f"{of_output}: the connector's default"
        draft.put("format.compression.codec", codec, comment)
    key = "s3.compression.level"
    level = draft.parsed(key, parse_number)
    if level is None:
        return
    if codec != "Gzip" or output == "Parquet":
        draft.left_out(key, "has no effect without s3.compression.type=gzip")
    elif level == -1:
        draft.left_out(key, "the default, as here")
    elif not 0 <= level <= 9:
        draft.different(key, "is not a level of gzip (-1 to 9); the default is used")
    else:
        comment = f"{key}={level}: the nearest level of another library, so compressed bytes differ"
        draft.put("format.compression.level", nearest_gzip_level(level), comment)


def nearest_gzip_level(level: int) -> int:
    """The level of ISA-L, 0 to 3, for one of zlib, 0 to 9."""
    return (level + 2) // 3


def _codec(draft: Draft, key: str) -> str | None:
    value = draft.text(key)
    if key == "parquet.codec":
        value = value or "snappy"
        if value.lower() in ("lz4", "lzo"):
            draft.impossible(key, f"Hadoop's {value.upper()} is not supported", "use another codec, such as zstd")
            return None
        choices: Mapping[str, str] = _PARQUET_CODECS
    else:
        choices = _AVRO_CODECS if key == "avro.codec" else {"none": "None", "gzip": "Gzip"}
    if not value:
        return None
    try:
        return parse_choice(value, choices)
    except ValueError as error:
        draft.different(key, f"{error}; the default is used", "correct format.compression")
        return None


def _bytes(draft: Draft, output: str, converter: ConverterType) -> None:
    for key in ("format.bytearray.separator", "format.bytearray.extension"):
        if output != "Bytes" and key in draft.settings:
            draft.left_out(key, f"has no effect with the output {output}")
    if output != "Bytes":
        return
    if converter is not ConverterType.BYTES:
        draft.different(
            "format.class",
            f"ByteArrayFormat needs the ByteArrayConverter, and with {converter} the connector stops at its first "
            "record; here values are written as they came",
            "check format.converter",
        )
    separator = draft.raw("format.bytearray.separator")  # blanks are part of it
    if separator is not None and len(separator) > _MAX_SEPARATOR:
        draft.impossible("format.bytearray.separator", f"is longer than {_MAX_SEPARATOR} characters")
    elif separator is not None:
        draft.put("format.bytes.separator", separator, "format.bytearray.separator")
    extension = draft.parsed("format.bytearray.extension", _extension)
    if extension is not None:
        draft.put("format.bytes.extension", extension, "format.bytearray.extension")


def _extension(text: str) -> str:
    check_extension(text)
    return text


def _avro(draft: Draft, output: str) -> None:
    key = "connect.meta.data"
    value = draft.parsed(key, parse_boolean)
    if output == "Avro":
        names = True if value is None else value
        draft.put(
            "format.avro.connectNames", names, key if key in draft.settings else f"{key}: the connector's default"
        )
    elif value is not None:
        draft.left_out(key, f"has no effect with the output {output}")
    if output == "Parquet":
        draft.put("format.parquet.timeUnit", "AsSchema", "the connector keeps milliseconds")


def _types(draft: Draft, output: str) -> None:
    """Settings of the schemas that the connector makes for objects, and what it writes otherwise."""
    if output == "Parquet":
        what = "Lists and decimals have another layout in Parquet than the connector's (docs/migrating.md)"
        draft.to_do(what, "check the readers of tables that the connector has started")
    for name in _OF_SCHEMAS:
        value = draft.settings.get(name)
        if value is None:
            continue
        if output not in ("Avro", "Parquet"):
            draft.left_out(name, f"has no effect with the output {output}")
        elif name == _ENHANCED and output == "Parquet":
            draft.left_out(name, "enums are strings in Parquet")
        elif name == "scrub.invalid.names" and output == "Avro" and value.strip().lower() == "true":
            draft.left_out(name, "always so")


def _decimals(draft: Draft, output: str, converter: ConverterType) -> None:
    key = "json.decimal.format"
    value = draft.parsed(key, lambda text: parse_choice(text, {"base64": "Base64", "numeric": "Numeric"}))
    if value is None:
        return
    if output in ("Avro", "Parquet") or converter not in _WITH_FORMS:
        draft.left_out(key, f"has no effect with the converter {converter} and the output {output}")
    else:
        draft.put("format.decimals", value, key)


def _compatibility(draft: Draft, converter: ConverterType, output: str, *, infers: bool) -> None:
    key = "schema.compatibility"
    names = {"none": "None", "backward": "Backward", "forward": "Forward", "full": "Full"}
    value = draft.parsed(key, lambda text: parse_choice(text, names))
    if value is None:
        return
    if value != "None" and (infers or not converter.has_schemas or output == "Bytes"):
        draft.left_out(key, f"has no effect: records of {converter} have no schema that could change")
    else:
        draft.put("schemaCompatibility", value, key)
