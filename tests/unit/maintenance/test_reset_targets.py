"""Where a request about offsets leads."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.errors import InvalidSpec
from sink_job.api.operator_sections import OffsetResetSpec
from sink_job.api.topic_partition import TopicPartition
from sink_job.maintenance.reset_targets import LogBounds, ResetContext, request_digest, resolve_targets

A, B, OLD = TopicPartition("log", 0), TopicPartition("log", 1), TopicPartition("old", 0)
PLACES = ResetContext(
    logs=LogBounds(first={A: 10, B: 0}, end={A: 100, B: 50}),
    at={A: 70, B: 60},
    reached={A: 40, B: 30, OLD: 7},
    now=1_000,
)


def starts(to: str, **given: Any) -> dict[TopicPartition, int]:
    return resolve_targets(OffsetResetSpec.model_validate({"nonce": "n", "to": to, **given}), PLACES)


def test_earliest_is_the_first_offset_that_kafka_holds() -> None:
    assert starts("Earliest") == {A: 10, B: 0, OLD: 7}


def test_latest_is_behind_the_last_that_a_reader_gets() -> None:
    assert starts("Latest") == {A: 100, B: 50, OLD: 7}


def test_a_time_behind_what_a_reader_gets_is_the_end() -> None:
    assert starts("Timestamp", timestamp=500) == {A: 70, B: 50, OLD: 7}


def test_what_is_not_named_goes_on_where_it_is() -> None:
    assert starts("Offsets", partitions=[{"topic": "log", "partition": 1, "offset": 5}]) == {A: 40, B: 5, OLD: 7}


def test_every_mistake_is_told_at_once() -> None:
    wrong = [
        {"topic": "other", "partition": 0, "offset": 0},
        {"topic": "log", "partition": 2, "offset": 0},
        {"topic": "log", "partition": 0, "offset": 9},
    ]
    with pytest.raises(InvalidSpec) as refused:
        starts("Offsets", partitions=wrong)
    assert refused.value.mistakes == (
        "spec.offsets.reset.partitions[0].topic: this sink does not read other; it reads log",
        "spec.offsets.reset.partitions[1].partition: log has the partitions 0 to 1, no 2",
        "spec.offsets.reset.partitions[2].offset: 9 is not between 10 and 100, where the log of log-0 begins and ends",
    )


def test_a_time_to_come_is_refused() -> None:
    with pytest.raises(InvalidSpec, match="is in the future"):
        starts("Timestamp", timestamp=1_001)


# -- which request it is -----------------------------------------------------------------------------------------------


def asked(**given: Any) -> OffsetResetSpec:
    return OffsetResetSpec.model_validate({"nonce": "n", "to": "Offsets", **given})


def at(*offsets: int) -> list[dict[str, Any]]:
    return [{"topic": "log", "partition": n, "offset": offset} for n, offset in enumerate(offsets)]


def test_a_request_is_known_by_all_of_it_and_by_what_it_means() -> None:
    one = request_digest(asked(partitions=at(1, 2)))
    assert one == request_digest(asked(partitions=at(1, 2)[::-1], onExisting="Fail"))
    others = [asked(partitions=at(1, 3)), asked(partitions=at(1, 2), onExisting="NewPrefix"), asked(to="Latest")]
    assert one not in {request_digest(each) for each in others}
