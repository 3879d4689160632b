"""What is rebuilt together, what is reported as lost, and when a driver stops rebuilding."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sink_job.api.errors import TransientError
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.committer import MAX_REBUILD_ATTEMPTS
from sink_job.coordinator.rebuild import Rebuilder
from sink_job.ledger.state import LedgerState, LostObject, OffsetChecksum
from sink_job.tasks.rebuild import MissingRecords, RebuildInput, RebuildResult
from tests.support.synthetic_log import CLOCK_MS, SyntheticLog
from tests.unit.coordinator.claimed_sink import (
    OTHER,
    TP,
    ClaimedSink,
    closed_object,
    open_object,
    read_up_to,
    with_partitions,
)


class Tasks:
    """Rebuilds each object as it is, except those whose first offset is in `missing`."""

    def __init__(self) -> None:
        self.inputs: list[tuple[int, Mapping[TopicPartition, RebuildInput]]] = []
        self.missing: dict[int, MissingRecords] = {}

    def rebuild(
        self, inputs: Mapping[TopicPartition, RebuildInput], state: LedgerState, *, now: int, settings: int
    ) -> dict[TopicPartition, RebuildResult]:
        self.inputs.append((settings, inputs))
        return {
            tp: RebuildResult(
                closed=tuple(o for o in one.closed if o.first not in self.missing),
                open=tuple(o for o in one.open if o.first not in self.missing),
                missing=tuple(self.missing[first] for first in _firsts(one) if first in self.missing),
            )
            for tp, one in inputs.items()
        }


def _firsts(one: RebuildInput) -> list[int]:
    return [o.first for o in one.closed] + [o.first for o in one.open]


class Rebuilds:
    def __init__(self, folder: Path) -> None:
        sink = ClaimedSink(folder, SyntheticLog())
        claimed = sink.claim()
        text = claimed.settings[1]
        self.state = msgspec.structs.replace(claimed, settings={1: text, 2: text.replace('"topics"', '"other"')})
        self.tasks = Tasks()
        dispatcher: Any = self.tasks
        self.rebuilder = Rebuilder(dispatcher)


@pytest.fixture
def rebuilds(tmp_path: Path) -> Rebuilds:
    return Rebuilds(tmp_path)


def lacking(first: int, last: int, found: int) -> MissingRecords:
    count = last - first + 1
    return MissingRecords("p", first, last, OffsetChecksum(found, 3), OffsetChecksum(count, 7), absent=count - found)


def test_closed_objects_are_rebuilt_in_one_job_for_each_settings(rebuilds: Rebuilds) -> None:
    one, two, three = closed_object(TP, 0, 4), closed_object(OTHER, 0, 4), closed_object(TP, 5, 9)
    newer = closed_object(TP, 10, 14, settings=2)
    outcome = rebuilds.rebuilder.closed([one, newer, two, three], rebuilds.state, CLOCK_MS)
    assert rebuilds.tasks.inputs == [
        (1, {TP: RebuildInput(closed=(one, three)), OTHER: RebuildInput(closed=(two,))}),
        (2, {TP: RebuildInput(closed=(newer,))}),
    ]
    assert sorted(o.key for o in outcome.closed) == sorted(o.key for o in (one, two, three, newer))
    assert outcome.lost == []


@pytest.mark.parametrize(("settings", "topics_dir"), [(1, "topics"), (2, "other")])
def test_a_lost_object_has_the_key_of_its_own_settings(
    rebuilds: Rebuilds, settings: int, topics_dir: str, caplog: pytest.LogCaptureFixture
) -> None:
    rebuilds.tasks.missing = {2: lacking(2, 6, found=3)}
    outcome = rebuilds.rebuilder.closed([closed_object(TP, 2, 6, settings=settings)], rebuilds.state, CLOCK_MS)
    key = f"{topics_dir}/log/p/log+0+0000000002.json"
    assert outcome == ([], [LostObject("log", 0, key, "p", 2, 6, OffsetChecksum(2, 4))])
    (message,) = caplog.messages
    assert f"Kafka no longer holds 2 of the 5 records of {key} (offsets 2 to 6)" in message


def test_open_objects_are_rebuilt_under_the_settings_of_their_claim(rebuilds: Rebuilds) -> None:
    old, new = open_object(0, 4), open_object(5, 9, settings=2)
    state = with_partitions(rebuilds.state, {TP: read_up_to(10, old, new), OTHER: read_up_to(10, new)})
    partitions, lost = rebuilds.rebuilder.open({TP: "its upload is gone", OTHER: "it is gone"}, state, CLOCK_MS)
    assert rebuilds.tasks.inputs == [
        (1, {TP: RebuildInput(open=(old,))}),
        (2, {TP: RebuildInput(open=(new,)), OTHER: RebuildInput(open=(new,))}),
    ]
    assert partitions == {TP: read_up_to(10, old, new), OTHER: read_up_to(10, new)}
    assert lost == []


def test_an_open_object_without_records_is_no_longer_open(rebuilds: Rebuilds) -> None:
    rebuilds.tasks.missing = {0: lacking(0, 4, found=0)}
    kept = open_object(5, 9, path="q")
    state = with_partitions(rebuilds.state, {TP: read_up_to(10, open_object(0, 4), kept)})
    partitions, lost = rebuilds.rebuilder.open({TP: "gone"}, state, CLOCK_MS)
    assert partitions == {TP: read_up_to(10, kept)}
    assert [(each.first, each.offsets.count) for each in lost] == [(0, 5)]


def test_a_partition_that_is_lost_after_each_rebuild_ends_the_driver(rebuilds: Rebuilds) -> None:
    state = with_partitions(rebuilds.state, {TP: read_up_to(10, open_object(0, 4))})
    for _ in range(MAX_REBUILD_ATTEMPTS):
        rebuilds.rebuilder.open({TP: "gone"}, state, CLOCK_MS)
    with pytest.raises(
        TransientError, match=f"log-0: gone: its open objects were rebuilt {MAX_REBUILD_ATTEMPTS} times"
    ):
        rebuilds.rebuilder.open({TP: "gone"}, state, CLOCK_MS)


def test_a_round_that_writes_a_partition_begins_its_count_again(rebuilds: Rebuilds) -> None:
    state = with_partitions(rebuilds.state, {TP: read_up_to(10, open_object(0, 4))})
    for _ in range(2 * MAX_REBUILD_ATTEMPTS):
        rebuilds.rebuilder.open({TP: "gone"}, state, CLOCK_MS)
        rebuilds.rebuilder.written([TP, OTHER])
