"""The section of the format: what its settings are where the manifest leaves them out."""

from __future__ import annotations

import pytest

from sink_job.api.enums import CompressionCodec, OutputFormat
from sink_job.api.sections.format_section import CompressionSpec, FormatSpec

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
