"""An object has the same bytes and parts whether it was written in 1, 2 or 1,000 rounds, for each output and
compression. A row group or block spans many rounds, and one record is larger than a part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from sink_job.formats.compression import Gzip, Zstd
from sink_job.ledger.state import ClosedObject
from sink_job.writer.record_pipeline import RecordPipeline
from tests.support.format_settings import with_blocks
from tests.unit.avro.avro_data import record
from tests.unit.rotation.settings import object_settings
from tests.unit.writer.test_projection import WIRE_FORMAT, ProjectingPartition, Version

RECORDS, PART, BLOCK = 1_000, 3_000, 2_000
LARGE = 500
"""The number of the record that is larger than a part."""
COMPRESSIONS = {
    "Json": ("None", "Gzip", "Zstd"),
    "Bytes": ("None", "Gzip", "Zstd"),
    "Avro": ("None", "Deflate", "Snappy", "Zstd", "Bzip2"),
    "Parquet": ("None", "Snappy", "Gzip", "Zstd", "Lz4", "Brotli"),
}
CASES = [(output, compression) for output, chosen in COMPRESSIONS.items() for compression in chosen]
VERSION = Version(
    record(("n", "long"), ("s", "string")),
    {"n": lambda n: n * 12_345, "s": lambda n: f"{n % 9}" * (4 * PART if n == LARGE else n % 7)},
    1,
)
VALUES = [VERSION.data(n) for n in range(RECORDS)]


@dataclass
class OneWorker(ProjectingPartition):
    """A topic-partition whose rounds are in one process: the schema is parsed once."""

    _pipeline: RecordPipeline | None = None

    @property
    def pipeline(self) -> RecordPipeline:
        self._pipeline = self._pipeline or super().pipeline
        return self._pipeline


@pytest.fixture(autouse=True, scope="module")
def small_blocks() -> Iterator[None]:
    """Blocks of compressed lines are as small as those of the other outputs."""
    with pytest.MonkeyPatch.context() as patch:
        for compression in (Gzip, Zstd):
            patch.setattr(compression, "block_size", BLOCK)
        yield


def written(output: str, compression: str, rounds: int) -> list[tuple[str, tuple[int, ...], bytes]]:
    """The objects of that many rounds: keys, sizes of their parts, and bytes."""
    sections = object_settings(
        format={"converter": "Avro", "output": output, "compression": {"codec": compression}},
        wire_format=WIRE_FORMAT,
        rotation={"flushSize": RECORDS + 1},
    )
    small = {
        "format": with_blocks(sections.format, BLOCK),
        "s3": sections.s3.model_copy(update={"part_size": PART}),
    }
    one = OneWorker(sections.model_copy(update=small), versions=[VERSION])
    size = RECORDS // rounds
    for start in range(0, RECORDS, size):
        one.round(0, VALUES[start : start + size], close=start + size == RECORDS)
    return [(o.key, sizes(o), one.content(o)) for o in one.named]


def sizes(o: ClosedObject) -> tuple[int, ...]:
    return tuple(part.size for part in o.parts)


@pytest.mark.parametrize(("output", "compression"), CASES, ids=[f"{one} {other}" for one, other in CASES])
def test_1_2_and_1000_rounds_write_the_same_bytes_and_parts(output: str, compression: str) -> None:
    ((key, parts, body),) = written(output, compression, 1)
    assert len(body) == sum(parts)
    assert len(parts) > 1
    for rounds in (2, 1_000):
        assert written(output, compression, rounds) == [(key, parts, body)]
