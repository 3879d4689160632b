"""A codec is accepted with the outputs that have it, and rejected with the others."""

from __future__ import annotations

import itertools

import pytest

from sink_job.api.enums import CompressionCodec, OutputFormat
from sink_job.api.rules.compressions import COMPRESSIONS
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
    document = {
        "spec.format": {"converter": "ConnectJson", "output": str(output), "compression": {"codec": str(codec)}}
    }
    if str(codec) in HAVE[output].split(", "):
        assert accepted(document, for_job=False).spec.format.compression.codec is codec
    else:
        message = f"{codec} cannot be used with the output {output}: it has {HAVE[output]}"
        assert spec_errors(document, for_job=False) == [f"spec.format.compression.codec: {message}"]


@pytest.mark.parametrize("output", OutputFormat, ids=str)
def test_an_output_has_a_default_codec(output: OutputFormat) -> None:
    document = {"spec.format": {"converter": "ConnectJson", "output": str(output)}}
    codec = accepted(document, for_job=False).spec.format.compression.codec
    assert str(codec) == ("Snappy" if output is OutputFormat.PARQUET else "None")


def test_an_invalid_output_is_the_only_error_without_a_codec() -> None:
    assert [each.split(":")[0] for each in spec_errors({"spec.format.output": "Csv"})] == ["spec.format.output"]


def test_each_codec_is_that_of_an_output() -> None:
    assert {codec for codecs in COMPRESSIONS.values() for codec in codecs} == set(CompressionCodec)


LEVELS_OF = {"Gzip": (0, 3, 2), "Deflate": (0, 3, 2), "Zstd": (1, 19, 3)}


def compressed(output: str, codec: str, **level: int) -> dict[str, object]:
    compression = {"codec": codec, **level}
    return {"spec.format": {"converter": "ConnectJson", "output": output, "compression": compression}}


@pytest.mark.parametrize(("output", "codec"), [("Json", "Gzip"), ("Avro", "Deflate"), ("Bytes", "Zstd")])
def test_a_level_is_one_of_its_codec(output: str, codec: str) -> None:
    lowest, highest, default = LEVELS_OF[codec]
    assert accepted(compressed(output, codec)).spec.format.compression.level == default
    for level in (lowest, highest):
        assert accepted(compressed(output, codec, level=level)).spec.format.compression.level == level
    for level in {lowest - 1, highest + 1} - {-1, 20}:
        assert spec_errors(compressed(output, codec, level=level)) == [
            f"spec.format.compression.level: {level} is not a level of {codec}: use {lowest} to {highest}"
        ]


@pytest.mark.parametrize("level", [-1, 20])
def test_a_level_of_no_codec_is_rejected(level: int) -> None:
    (error,) = spec_errors(compressed("Json", "Zstd", level=level))
    assert error.startswith(f"spec.format.compression.level: {level} is ")


@pytest.mark.parametrize(
    ("output", "codec", "having"),
    [
        ("Json", "None", "Gzip and Zstd have"),
        ("Avro", "Snappy", "Deflate and Zstd have"),
        ("Parquet", "Gzip", "Zstd has"),
    ],
)
def test_a_level_without_effect_is_rejected_with_the_codecs_that_have_levels(
    output: str, codec: str, having: str
) -> None:
    assert spec_errors(compressed(output, codec, level=1)) == [
        f"spec.format.compression.level: 1 has no effect: with the output {output}, {codec} has no levels, and "
        f"{having}; remove it"
    ]


def test_a_codec_without_its_section_gets_the_section_in_the_message() -> None:
    assert spec_errors({"spec.format.compression": "Gzip"}) == [
        'spec.format.compression: "Gzip" is not a mapping: write {codec: Gzip}'
    ]


def test_a_level_needs_a_codec() -> None:
    (error,) = spec_errors({"spec.format.compression": {"level": 1}})
    assert error.startswith("spec.format.compression.codec: is missing")
