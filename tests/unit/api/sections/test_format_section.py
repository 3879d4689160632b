"""The section of the format: its defaults, and its message for an invalid value."""

from __future__ import annotations

import pytest

from sink_job.api.enums import CompressionCodec, OutputFormat
from sink_job.api.sections.format_section import CompressionSpec, FormatSpec
from tests.unit.api.manifests import accepted, case, spec_errors

LEVELS = {CompressionCodec.GZIP: 2, CompressionCodec.DEFLATE: 2, CompressionCodec.ZSTD: 3}


@pytest.mark.parametrize("codec", CompressionCodec)
def test_a_codec_with_levels_has_one_by_default_and_another_codec_has_none(codec: CompressionCodec) -> None:
    found = CompressionSpec(codec=codec)
    assert found.level == LEVELS.get(codec)
    if codec in LEVELS:
        assert found.chosen_level == LEVELS[codec]
    else:
        with pytest.raises(ValueError, match=f"the codec {codec} has no level"):
            _ = found.chosen_level


def test_a_given_level_is_chosen_also_zero() -> None:
    assert CompressionSpec(codec=CompressionCodec.GZIP, level=0).chosen_level == 0


@pytest.mark.parametrize("output", OutputFormat)
def test_the_compression_depends_on_the_output(output: OutputFormat) -> None:
    expected = CompressionCodec.SNAPPY if output is OutputFormat.PARQUET else CompressionCodec.NONE
    assert FormatSpec(output=output).compression.codec is expected


@pytest.mark.parametrize("output", OutputFormat)
def test_only_the_section_of_the_output_has_a_value(output: OutputFormat) -> None:
    found = FormatSpec(output=output)
    assert {name: getattr(found, name) is not None for name in ("parquet", "avro", "bytes")} == {
        "parquet": output is OutputFormat.PARQUET,
        "avro": output is OutputFormat.AVRO,
        "bytes": output is OutputFormat.BYTES,
    }


INVALID = [
    case(
        "a value in the wrong case gets a suggestion",
        {"spec.format.compression": {"codec": "gzip"}},
        "spec.format.compression.codec: gzip is not one of None, Gzip, Zstd, Snappy, Lz4, Brotli, Deflate, Bzip2; did "
        "you mean Gzip?",
    ),
    case(
        "the previous name of the converter is answered with the new one",
        {"spec.format.converter": "JsonEnvelope"},
        "spec.format.converter: JsonEnvelope is not one of Json, ConnectJson, Text, Bytes, Cbor, MessagePack, Avro, "
        "Protobuf, JsonSchema: JsonEnvelope is now ConnectJson",
    ),
    *(
        case(
            f"the previous name {name} is answered with the new one",
            {f"spec.format.{name}": value},
            f"spec.format.{name}: is not a field of spec.format: it is now spec.format.{renamed}",
        )
        for name, value, renamed in (
            ("rowGroup", "64Mi", "parquet.rowGroup"),
            ("timeUnit", "Micros", "parquet.timeUnit"),
            ("avroBlock", "1Mi", "avro.block"),
            ("connectNames", True, "avro.connectNames"),
            ("bytesSeparator", "", "bytes.separator"),
            ("gzipLevel", 3, "compression.level"),
        )
    ),
    case(
        "the connector's converter class gets a suggestion",
        {"spec.format.converter": "org.apache.kafka.connect.json.JsonConverter"},
        "spec.format.converter: org.apache.kafka.connect.json.JsonConverter is not one of Json, ConnectJson, Text, "
        "Bytes, Cbor, MessagePack, Avro, Protobuf, JsonSchema; did you mean Json?",
    ),
    case(
        "the connector's format class gets a suggestion",
        {"spec.format.output": "io.confluent.connect.s3.format.bytearray.ByteArrayFormat"},
        "spec.format.output: io.confluent.connect.s3.format.bytearray.ByteArrayFormat is not one of Json, Bytes, Avro, "
        "Parquet; did you mean Bytes?",
    ),
    case(
        "an unknown gzip level is rejected",
        {"spec.format.compression": {"codec": "Gzip", "level": 20}},
        "spec.format.compression.level: 20 is above the maximum of 19",
    ),
    case(
        "an extension without a dot is rejected",
        {"spec.format": {"output": "Bytes", "bytes": {"extension": "bin"}}},
        "spec.format.bytes.extension: bin is not a valid extension: use a dot and letters or digits, such as .bin",
    ),
]


@pytest.mark.parametrize(("changes", "expected"), INVALID)
def test_an_invalid_value_is_rejected(changes: dict[str, object], expected: list[str]) -> None:
    assert spec_errors(changes) == expected


VALID = [
    case(
        "a separator of two newlines",
        {"spec.format": {"converter": "Bytes", "output": "Bytes", "bytes": {"separator": "\n\n"}}},
    ),
]


@pytest.mark.parametrize(("changes", "expected"), VALID)
def test_a_valid_value_is_accepted(changes: dict[str, object], expected: list[str]) -> None:
    assert expected == []
    accepted(changes)
