"""Batches whose texts are too large for one column are written in parts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from sink_job.api.enums import ConverterType
from sink_job.api.parser import load_sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.arrow import columns as arrow_columns
from sink_job.arrow.columns import ColumnTooLarge
from sink_job.ledger.state import SourceRange
from sink_job.rotation.types import ObjectId
from sink_job.writer.record_pipeline import RecordPipeline
from sink_job.writer.row_selection import object_rows
from tests.support.memory_sink import MemorySinkFixture
from tests.support.schema_log import SchemaLog, settings
from tests.support.sink_fixture import manifest

TP = TopicPartition("log", 0)
LOG = SchemaLog(records=20, ids=(1,), converter=ConverterType.CBOR)


@dataclass(frozen=True)
class Everything:
    """An object with all records of the log."""

    id: ObjectId
    sources: tuple[SourceRange, ...] = (SourceRange(0, 20, 0),)


@pytest.fixture
def fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    found = MemorySinkFixture(tmp_path, monkeypatch)
    found.sink = load_sink(manifest("archive", "http://127.0.0.1:9", **settings(LOG, "http://127.0.0.1:9")))
    return found


def test_a_batch_that_is_too_large_is_written_in_parts(
    fixture: MemorySinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_columns, "MAX_BYTES", 100)
    fixture.run(LOG)
    assert list(fixture.offsets().values()) == [list(range(10)), list(range(10, 20))]


class Killed(BaseException):
    """The process ends here."""


def killed_before_a_completion(kind: str, key: str) -> None:
    if kind == "complete":
        raise Killed


def test_objects_of_such_a_batch_are_rebuilt(fixture: MemorySinkFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow_columns, "MAX_BYTES", 100)
    with fixture.faults(killed_before_a_completion), pytest.raises(Killed):
        fixture.run(LOG)
    fixture.s3.uploads.clear()
    fixture.run(LOG)
    assert list(fixture.offsets().values()) == [list(range(10)), list(range(10, 20))]


def test_an_object_gets_all_of_its_rows_in_parts(fixture: MemorySinkFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = RecordPipeline.of(fixture.sink.object_settings(), fixture.sink.spec.errors)
    batch = pa.Table.from_batches(LOG.batches(TP, 0, 20)).combine_chunks().to_batches()[0]
    (path,) = pipeline.prepare(batch, 0, TP).rows.paths

    def rows() -> list[tuple[list[int], bytes]]:
        found = object_rows([Everything(ObjectId(path))], batch, lambda part, clock: pipeline.prepare(part, clock, TP))
        return [(numbers.tolist(), bytes(each.data)) for _, numbers, each in found]

    ((numbers, data),) = rows()
    monkeypatch.setattr(arrow_columns, "MAX_BYTES", 100)
    parts = rows()
    assert len(parts) > 1
    assert [number for part, _ in parts for number in part] == numbers
    assert b"".join(part for _, part in parts) == data


def test_a_record_that_is_too_large_alone_is_an_error(
    fixture: MemorySinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow_columns, "MAX_BYTES", 30)
    with pytest.raises(ColumnTooLarge):
        fixture.run(LOG)
