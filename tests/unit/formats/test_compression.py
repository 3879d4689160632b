"""Compressed blocks depend on their rows, the level and the library alone."""

from __future__ import annotations

import random
from typing import Any

import pytest

from sink_job.api.enums import CompressionCodec, OutputFormat
from sink_job.api.sections.format_section import CompressionSpec, FormatSpec
from sink_job.api.spec import ObjectSettings
from sink_job.codecs.formats import with_library
from sink_job.formats.compression import Gzip, Zstd, compression_of, zstd

RNG = random.Random(1)
ROWS = b"".join(b'{"id": %d, "user": "u%d"}\n' % (n, RNG.randrange(1000)) for n in range(20_000))


@pytest.mark.parametrize("level", [1, 3, 9, 19])
def test_a_zstd_frame_has_its_content_size_and_a_checksum(level: int) -> None:
    frame = Zstd(level).compress(ROWS)
    assert zstd.get_frame_info(frame).decompressed_size == len(ROWS)
    assert frame[4] & 4, "the frame header's descriptor has a checksum (RFC 8878, 3.1.1.1.1)"


def test_a_zstd_frame_does_not_depend_on_the_frames_before_it() -> None:
    compression = Zstd(3)
    first = compression.compress(ROWS)
    compression.compress(RNG.randbytes(300_000))
    assert compression.compress(ROWS) == first


def test_a_higher_level_of_zstd_makes_smaller_frames() -> None:
    sizes = [len(Zstd(level).compress(ROWS)) for level in (1, 9, 19)]
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 3


@pytest.mark.parametrize(("codec", "prefix"), [("None", "None"), ("Gzip", "isal 1."), ("Zstd", "zstd 1.5.")])
def test_the_settings_of_a_claim_name_the_library_that_compresses(codec: str, prefix: str) -> None:
    settings = ObjectSettings(format=FormatSpec(compression=CompressionSpec(codec=CompressionCodec(codec))))
    assert str(with_library(settings).library).startswith(prefix)


def test_a_codec_that_rows_cannot_have_is_rejected() -> None:
    with pytest.raises(ValueError, match="compression Snappy is not supported with the output Parquet"):
        compression_of(FormatSpec(output=OutputFormat.PARQUET))


@pytest.mark.parametrize("level", [0, 1, 2, 3])
def test_a_gzip_member_does_not_depend_on_the_place_of_its_rows_in_memory(level: int) -> None:
    rng = random.Random(level)
    compression = Gzip(level)
    for size in (1, 20, 200, 2_000, 70_000):
        start = rng.randrange(len(ROWS) - size)
        rows = ROWS[start : start + size]
        expected = compression.compress(rows)
        for _ in range(20):
            before = rng.randbytes(rng.randrange(64))
            after = rng.choice([rng.randbytes(300), rows[:300], rows[-3:] * 100])
            place: Any = memoryview(before + rows + after)[len(before) : len(before) + size]
            assert compression.compress(place) == expected
