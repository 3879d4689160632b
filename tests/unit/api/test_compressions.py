"""A codec is accepted with the outputs that have it, and rejected with the others."""

from __future__ import annotations

import itertools

import pytest

from sink_job.api.compressions import COMPRESSIONS
from sink_job.api.enums import CompressionCodec, OutputFormat
from tests.unit.api.manifests import accepted, spec_errors

HAVE = {
    "Json": "None, Gzip, Zstd",
    "Bytes": "None, Gzip, Zstd",
    "Avro": "None, Deflate, Snappy, Zstd, Bzip2",
    "Parquet": "Snappy, None, Gzip, Zstd, Lz4, Brotli",
}


def test_each_output_has_its_codecs() -> None:
    assert {str(output): ", ".join(codecs) for output, codecs in COMPRESSIONS.items()} == HAVE


@pytest.mark.parametrize(("output", "codec"), list(itertools.product(OutputFormat, CompressionCodec)), ids=str)
def test_a_codec_is_accepted_or_rejected_with_those_of_its_output(
    output: OutputFormat, codec: CompressionCodec
) -> None:
    document = {"spec.format": {"converter": "JsonEnvelope", "output": str(output), "compression": str(codec)}}
    if str(codec) in HAVE[output].split(", "):
        assert accepted(document, for_job=False).spec.format.compression is codec
    else:
        message = f"spec.format.compression: {codec} cannot be used with the output {output}: it has {HAVE[output]}"
        assert spec_errors(document, for_job=False) == [message]


@pytest.mark.parametrize("output", OutputFormat, ids=str)
def test_an_output_has_a_default_codec(output: OutputFormat) -> None:
    document = {"spec.format": {"converter": "JsonEnvelope", "output": str(output)}}
    codec = accepted(document, for_job=False).spec.format.compression
    assert str(codec) == ("Snappy" if output is OutputFormat.PARQUET else "None")


def test_an_invalid_output_is_the_only_error_without_a_codec() -> None:
    assert [each.split(":")[0] for each in spec_errors({"spec.format.output": "Csv"})] == ["spec.format.output"]


def test_each_codec_is_that_of_an_output() -> None:
    assert {codec for codecs in COMPRESSIONS.values() for codec in codecs} == set(CompressionCodec)


@pytest.mark.parametrize("level", [0, 20])
def test_a_zstd_level_is_from_1_to_19(level: int) -> None:
    (error,) = spec_errors({"spec.format": {"compression": "Zstd", "zstdLevel": level}})
    assert error.startswith(f"spec.format.zstdLevel: {level} is ")


def test_a_level_without_effect_is_accepted() -> None:
    assert accepted({"spec.format": {"compression": "Gzip", "zstdLevel": 9}}).spec.format.zstd_level == 9
