"""Objects that are written again from Kafka's records."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from sink_job.api.errors import DataLoss
from sink_job.maintenance.repair.damage import Suspect
from sink_job.maintenance.repair.kafka_source import KafkaReader
from tests.support.repair_sink import KEYS, LOG, RepairFixture
from tests.support.synthetic_log import FileConsumerGroup, InlineEngine, SyntheticLog

FIRST, SECOND, THIRD = KEYS


def suspects(repaired: RepairFixture) -> list[Suspect]:
    return [Suspect(o, 1) for o in sorted(repaired.evidence().current.published, key=lambda o: o.first)]


def test_the_uploads_have_the_recorded_parts(repaired: RepairFixture) -> None:
    found = repaired.source(repaired.evidence()).upload(repaired.reader(), suspects(repaired))
    assert found.reasons == {}
    assert set(found.content) == set(KEYS)
    for suspect in suspects(repaired):
        parts = [(p.number, p.etag, p.crc, p.size) for p in found.content[suspect.o.key].parts]
        assert parts == [(p.number, p.etag, p.crc, p.size) for p in suspect.o.parts]


def test_an_object_without_its_records_does_not_prevent_the_others(repaired: RepairFixture) -> None:
    log = SyntheticLog(records=12, gaps=frozenset({1}))
    found = repaired.source(repaired.evidence()).upload(repaired.reader(log), suspects(repaired))
    assert set(found.content) == {SECOND, THIRD}
    assert "1 would be lost" in found.reasons[FIRST]
    assert {upload.key for upload in repaired.sink.s3.uploads.values()} == {SECOND, THIRD}


def test_records_that_retention_deletes_during_the_read_are_a_reason(repaired: RepairFixture) -> None:
    class Retention(FileConsumerGroup):
        asked = 0

        def beginning_offsets(self, partitions: Any) -> dict[Any, int]:
            self.asked += 1
            return dict.fromkeys(partitions, 0 if self.asked == 1 else 3)

    class Deleted(InlineEngine):
        def run(self, **given: Any) -> dict[Any, bytes]:
            raise DataLoss("offsets from 0 are no longer in Kafka")

    reader = KafkaReader(Retention(LOG, repaired.sink.group), Deleted(LOG))
    found = repaired.source(repaired.evidence()).upload(reader, suspects(repaired))
    assert set(found.reasons) == {FIRST}
    assert found.content == {}


def test_a_lost_upload_has_neither_content_nor_a_reason(repaired: RepairFixture) -> None:
    def clear(call: str, key: str) -> None:
        if call == "upload_part":
            repaired.sink.s3.uploads.clear()

    with repaired.sink.faults(clear):
        found = repaired.source(repaired.evidence()).upload(repaired.reader(), suspects(repaired))
    assert (found.content, found.reasons) == ({}, {})


@pytest.mark.parametrize("log", [SyntheticLog(records=12, value_bytes=120)])
def test_other_bytes_are_aborted_and_have_a_reason(repaired: RepairFixture, log: SyntheticLog) -> None:
    found = repaired.source(repaired.evidence()).upload(repaired.reader(log), suspects(repaired))
    reasons: Mapping[str, str] = found.reasons
    assert set(reasons) == set(KEYS)
    assert repaired.sink.s3.uploads == {}
