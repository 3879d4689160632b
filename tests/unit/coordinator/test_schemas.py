"""A sink with `schemaCompatibility: Separate`: kills at each effect on the store, and lost uploads and remainders.

The converter is the one for JSON; values with odd offsets have the second version of a schema.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sink_job.api.enums import SchemaCompatibility
from sink_job.connect.schema import Schema, SchemaType
from sink_job.converters.base import BatchSource, Converted, SchemaColumn
from sink_job.coordinator.context import StopCondition
from sink_job.coordinator.schemas import schema_changes
from sink_job.json.converter import JsonConverter
from sink_job.writer import record_pipeline, task_attempt
from tests.support.memory_sink import MemorySinkFixture
from tests.support.synthetic_log import SyntheticLog

LOG = SyntheticLog(records=12)
VERSIONS = [Schema(SchemaType.STRUCT, name="Flight", version=version) for version in (1, 2)]
OBJECTS = {0: [0, 2, 4], 1: [1, 3], 5: [5, 7, 9], 6: [6, 8], 10: [10], 11: [11]}
"""With five records per rotation: the objects by first offset."""


class Killed(BaseException):
    """The process ends here."""


class TwoVersions:
    """Values with odd offsets have the second version of a schema."""

    def __init__(self, fields: tuple[str, ...]) -> None:
        self._json = JsonConverter(("offset", *fields))

    def convert(self, values: pa.BinaryArray, source: BatchSource) -> Converted:
        converted = self._json.convert(values, source)
        codes = np.array([offset % 2 for offset in converted.fields["offset"] if isinstance(offset, int)], np.int32)
        return dataclasses.replace(converted, schemas=SchemaColumn(codes, VERSIONS))


@pytest.fixture
def sink_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MemorySinkFixture]:
    def converter_for(choice: object, fields: tuple[str, ...], **given: Any) -> TwoVersions:
        return TwoVersions(fields)

    task_attempt._shaped.cache_clear()
    monkeypatch.setattr(record_pipeline, "converter_for", converter_for)
    yield fresh(tmp_path, monkeypatch)
    task_attempt._shaped.cache_clear()


def fresh(folder: Path, monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    """Another sink and bucket."""
    fixture = MemorySinkFixture(folder, monkeypatch)
    spec = fixture.sink.spec.model_copy(update={"schema_compatibility": SchemaCompatibility.SEPARATE})
    fixture.sink = fixture.sink.model_copy(update={"spec": spec})
    return fixture


def contents(fixture: MemorySinkFixture) -> dict[str, bytes]:
    return {key: stored.body for key, stored in fixture.s3.objects.items() if "/_s3sink/" not in key}


def kill_at(number: int) -> Callable[[str, str], None]:
    """A fault: the process ends before its call `number` that changes the bucket."""
    left = [number]

    def fault(call: str, key: str) -> None:
        if call in CHANGES:
            left[0] -= 1
            if left[0] == 0:
                raise Killed

    return fault


CHANGES = {"put", "create_upload", "upload_part", "complete", "delete", "abort"}


def test_two_alternating_versions_have_one_object_each_per_rotation(sink_fixture: MemorySinkFixture) -> None:
    sink_fixture.run(LOG)
    assert {offsets[0]: offsets for offsets in sink_fixture.offsets().values()} == OBJECTS


def test_a_kill_at_each_effect_leaves_the_same_objects(
    sink_fixture: MemorySinkFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = SyntheticLog(records=6)
    sink_fixture.run(log)
    expected, killed = contents(sink_fixture), 0
    for number in range(1, 200):
        folder = tmp_path / str(number)
        folder.mkdir()
        fixture = fresh(folder, monkeypatch)
        with fixture.faults(kill_at(number)):
            try:
                fixture.run(log)
            except Killed:
                killed += 1
        fixture.run(log)
        assert contents(fixture) == expected, number
        assert fixture.orphans() == [], number
        if killed < number:
            break
    assert 10 < killed < 199


def test_a_driver_warns_of_objects_that_changes_of_schema_close(
    sink_fixture: MemorySinkFixture, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(schema_changes, "MAX_CHANGES", 0)
    spec = sink_fixture.sink.spec.model_copy(update={"schema_compatibility": SchemaCompatibility.NONE})
    sink_fixture.sink = sink_fixture.sink.model_copy(update={"spec": spec})
    sink_fixture.run(dataclasses.replace(LOG, records=6))
    assert "log-0: the schema changed between" in caplog.text


def test_lost_remainders_are_rebuilt_with_the_records_of_their_schema(sink_fixture: MemorySinkFixture) -> None:
    sink_fixture.run(dataclasses.replace(LOG, records=9), goal=StopCondition(until_caught_up=True))
    staged = [key for key in sink_fixture.s3.objects if "/staging/" in key]
    assert staged
    sink_fixture.s3.delete(staged)
    sink_fixture.run(LOG)
    assert {offsets[0]: offsets for offsets in sink_fixture.offsets().values()} == OBJECTS
    assert sink_fixture.orphans() == []


def test_lost_uploads_of_closed_objects_are_rebuilt_with_the_records_of_their_schema(
    sink_fixture: MemorySinkFixture,
) -> None:
    def fault(call: str, key: str) -> None:
        if call == "complete":
            raise Killed

    with sink_fixture.faults(fault), pytest.raises(Killed):
        sink_fixture.run(LOG)
    sink_fixture.s3.uploads.clear()
    sink_fixture.run(LOG)
    assert {offsets[0]: offsets for offsets in sink_fixture.offsets().values()} == OBJECTS
