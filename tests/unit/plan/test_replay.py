"""A driver over a sample: objects, the reasons for which they close, and requests."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from sink_job.plan.replay import Replay, replay
from sink_job.plan.sample import Sample
from sink_job.rotation.types import CloseReason
from tests.unit.plan.samples import MINUTE, START, partition, sample, sink

HOURLY = {"type": "Hourly", "timezone": "UTC", "timestampExtractor": "Record"}


def _replay(given: Sample, **sections: Any) -> Replay:
    return replay(sink(**sections), given, registry=None, cores=1)


def _reasons(found: Replay) -> dict[CloseReason | None, int]:
    return dict(Counter(each.reason for each in found.closed))


def test_every_record_of_the_sample_is_in_one_object() -> None:
    found = _replay(sample({0: partition([1_000 * n for n in range(250)]), 1: partition([0] * 30)}))
    objects = [*found.closed, *found.open]
    assert sum(each.records for each in objects) == 280
    offsets = [o for each in objects if each.tp.partition == 0 for o in range(each.first, each.last + 1)]
    assert sorted(offsets) == list(range(250))


EVERY_REASON: dict[CloseReason, tuple[list[int], dict[str, Any], int]] = {
    CloseReason.FLUSH_SIZE: ([1_000 * n for n in range(250)], {"rotation": {"flushSize": 100}}, 2),
    CloseReason.MAX_BYTES: ([1_000 * n for n in range(50)], {"rotation": {"maxBytes": 200}}, 3),
    CloseReason.MAX_OPEN_TIME: ([0], {"rotation": {"flushSize": 100, "maxOpenTime": "2m"}}, 1),
    CloseReason.SCHEDULE_INTERVAL: ([0], {"rotation": {"scheduleInterval": "5m"}}, 1),
    CloseReason.INTERVAL: ([0, 6 * MINUTE], {"rotation": {"interval": "5m"}, "partitioner": HOURLY}, 1),
    CloseReason.PATH_CHANGE: ([0, -60 * MINUTE], {"rotation": {"interval": "5h"}, "partitioner": HOURLY}, 1),
}


@pytest.mark.parametrize(
    ("reason", "scope"),
    [
        (reason, scope)
        for reason in EVERY_REASON
        for scope in ("Partition", "Object")
        if (reason, scope) != (CloseReason.PATH_CHANGE, "Object")  # no path change closes an object there
    ],
)
def test_an_object_has_the_setting_that_closed_it(reason: CloseReason, scope: str) -> None:
    stamps, sections, closed = EVERY_REASON[reason]
    sections = {**sections, "rotation": {**sections["rotation"], "scope": scope}}
    assert _reasons(_replay(sample({0: partition(stamps)}), **sections)) == {reason: closed}


def test_one_path_too_many_closes_the_others() -> None:
    values: list[bytes | None] = [b'{"kind":"a"}', b'{"kind":"b"}', b'{"kind":"c"}']
    found = _replay(
        sample({0: partition([0, 1, 2], values)}),
        rotation={"flushSize": 100, "maxOpenObjects": 2},
        partitioner={"type": "Field", "fields": ["kind"]},
    )
    assert _reasons(found) == {CloseReason.MAX_OPEN_OBJECTS: 2}
    assert found.peak_open["t"] == 1


def test_times_of_an_object_are_those_of_its_records_and_of_its_publication() -> None:
    found = _replay(sample({0: partition([2_000, 3_000, 30_000])}), rotation={"flushSize": 3})
    (only,) = found.closed
    assert (only.opened, only.last_arrival) == (START + 2_000, START + 30_000)
    assert only.visible is not None
    assert START + 30_000 <= only.visible <= START + 41_000


def test_requests_are_those_of_the_driver_without_its_start() -> None:
    found = _replay(sample({0: partition([0] * 100)}), rotation={"flushSize": 100})
    assert found.requests["CompleteMultipartUpload"] == 1
    assert found.requests["CreateMultipartUpload"] == 1
    assert found.requests["PutObject"] == 3  # as in bench/README.md, "Requests of a round"


def test_a_record_that_cannot_be_written_ends_nothing_and_is_counted() -> None:
    values: list[bytes | None] = [b"{}", b"no JSON", None, b"{}"]
    found = _replay(sample({0: partition([0, 1, 2, 3], values)}))
    assert sum(found.rejected_count.values()) == 2
    assert [each.offset for each in found.rejected.values()] == [1]
    assert sum(each.records for each in found.open) == 2


def test_settings_that_need_a_real_bucket_do_not_matter() -> None:
    s3 = {
        "bucket": "planned",
        "region": "eu-central-1",
        "credentials": {"secret": "missing"},
        "encryption": {"type": "Kms", "kmsKey": "arn:aws:kms:eu-central-1:1:key/a"},
        "offsetTags": True,
    }
    found = _replay(sample({0: partition([0] * 100)}), s3=s3)
    assert found.requests["PutObjectTagging"] == 1


def test_a_long_sample_has_fewer_polls() -> None:
    found = _replay(sample({0: partition([0, 29 * 86_400_000])}, minutes=30 * 1440), rounds={"maxDelay": "1h"})
    assert found.tick > 100_000
    assert sum(each.records for each in found.open) == 2


def test_filtered_records_are_counted_and_in_no_object() -> None:
    given = sample({0: partition([0, 1, 2], [b'{"kind":"a"}', b'{"kind":"b"}', b'{"kind":"a"}'])})
    transforms = [{"type": "Filter", "when": {"field": "kind", "values": ["b"]}}]
    found = replay(sink(rotation={"flushSize": 2}, transforms=transforms), given, registry=None, cores=1)
    assert (sum(found.filtered.values()), sum(found.records.values()), len(found.closed)) == (1, 2, 1)
