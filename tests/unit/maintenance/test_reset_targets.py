"""Resolution of reset requests to start offsets."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.errors import InvalidSpec
from sink_job.api.sections.operator_sections import OffsetResetSpec
from sink_job.api.topic_partition import TopicPartition
from sink_job.maintenance.reset_targets import LogBounds, ResetContext, request_digest, resolve_targets

A, B, OLD = TopicPartition("log", 0), TopicPartition("log", 1), TopicPartition("old", 0)
CONTEXT = ResetContext(
    logs=LogBounds(first={A: 10, B: 0}, end={A: 100, B: 50}),
    at={A: 70, B: 60},
    reached={A: 40, B: 30, OLD: 7},
    now=1_000,
)


def starts(to: str, **given: Any) -> dict[TopicPartition, int]:
    return resolve_targets(OffsetResetSpec.model_validate({"nonce": "n", "to": to, **given}), CONTEXT)


def test_earliest_is_the_first_offset_that_kafka_holds() -> None:
    assert starts("Earliest") == {A: 10, B: 0, OLD: 7}


def test_latest_is_the_offset_after_the_last_readable_record() -> None:
    assert starts("Latest") == {A: 100, B: 50, OLD: 7}


def test_a_timestamp_after_the_last_readable_record_resolves_to_the_end() -> None:
    assert starts("Timestamp", timestamp=500) == {A: 70, B: 50, OLD: 7}


def test_partitions_that_are_not_in_the_request_keep_their_offset() -> None:
    assert starts("Offsets", partitions=[{"topic": "log", "partition": 1, "offset": 5}]) == {A: 40, B: 5, OLD: 7}


def test_all_errors_of_a_request_are_reported_together() -> None:
    partitions = [
        {"topic": "other", "partition": 0, "offset": 0},
        {"topic": "log", "partition": 2, "offset": 0},
        {"topic": "log", "partition": 0, "offset": 9},
    ]
    with pytest.raises(InvalidSpec) as rejected:
        starts("Offsets", partitions=partitions)
    assert rejected.value.errors == (
        "spec.offsets.reset.partitions[0].topic: this sink does not read other; it reads log",
        "spec.offsets.reset.partitions[1].partition: 2 does not exist; log has partitions 0 to 1",
        "spec.offsets.reset.partitions[2].offset: 9 is not between 10 and 100, the bounds of the log of log-0",
    )


def test_a_timestamp_in_the_future_is_rejected() -> None:
    with pytest.raises(InvalidSpec, match="is in the future"):
        starts("Timestamp", timestamp=1_001)


# -- request digests ---------------------------------------------------------------------------------------------------


def request(**given: Any) -> OffsetResetSpec:
    return OffsetResetSpec.model_validate({"nonce": "n", "to": "Offsets", **given})


def at(*offsets: int) -> list[dict[str, Any]]:
    return [{"topic": "log", "partition": n, "offset": offset} for n, offset in enumerate(offsets)]


def test_the_digest_depends_on_the_meaning_of_the_whole_request() -> None:
    one = request_digest(request(partitions=at(1, 2)))
    assert one == request_digest(request(partitions=at(1, 2)[::-1], onExisting="Fail"))
    others = [request(partitions=at(1, 3)), request(partitions=at(1, 2), onExisting="NewPrefix"), request(to="Latest")]
    assert one not in {request_digest(each) for each in others}
