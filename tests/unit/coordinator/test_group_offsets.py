"""Commits of the group's offsets: what changed, what another program has changed, and all of them once an hour."""

from __future__ import annotations

from pathlib import Path

import pytest

from sink_job.api.errors import LedgerFenced
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.group_offsets import COMMIT_INTERVAL_MS, GroupOffsets
from sink_job.ledger.generations import commit_metadata
from sink_job.ledger.state import LedgerState
from tests.support.synthetic_log import CLOCK_MS, SyntheticLog
from tests.unit.coordinator.claimed_sink import OTHER, TP, ClaimedSink, read_up_to, with_partitions

GONE = TopicPartition("gone", 0)


class Group:
    """A claimed ledger, the group `group` and the clock of the host."""

    def __init__(self, folder: Path) -> None:
        self.sink = ClaimedSink(folder, SyntheticLog(records=20, partitions=2))
        self.claimed = self.sink.claim(TP, OTHER)
        self.now = CLOCK_MS
        self.offsets = GroupOffsets(self.sink.kafka, "group", self.sink.ledger, lambda: self.now)

    def state(self, **committable: int) -> LedgerState:
        """The state with these committable offsets, by the name of the topic-partition (`log_0`)."""
        return with_partitions(
            self.claimed,
            {TopicPartition.parse(name.replace("_", "-")): read_up_to(at) for name, at in committable.items()},
        )

    def committed(self) -> dict[TopicPartition, int]:
        return self.sink.kafka.group_offsets("group", [TP, OTHER])

    def set_by_another_program(self, **offsets: int) -> None:
        given = {TopicPartition.parse(name.replace("_", "-")): offset for name, offset in offsets.items()}
        self.sink.kafka.alter_group_offsets("group", given, metadata=self.metadata)

    @property
    def metadata(self) -> str:
        return commit_metadata(1, self.sink.ledger.url)


@pytest.fixture
def group(tmp_path: Path) -> Group:
    return Group(tmp_path)


def test_a_commit_names_the_generation_and_the_ledger(group: Group) -> None:
    group.offsets.commit(group.state(log_0=5, log_1=7))
    assert group.committed() == {TP: 5, OTHER: 7}
    assert set(group.sink.kafka.group_metadata("group", [TP, OTHER]).values()) == {group.metadata}


def test_only_offsets_that_changed_are_committed(group: Group) -> None:
    group.offsets.commit(group.state(log_0=5, log_1=7))
    group.set_by_another_program(log_0=1, log_1=1)
    group.offsets.commit(group.state(log_0=5, log_1=8))
    assert group.committed() == {TP: 1, OTHER: 8}


def test_a_refresh_commits_what_another_program_has_changed(group: Group) -> None:
    group.offsets.commit(group.state(log_0=5, log_1=7))
    group.set_by_another_program(log_0=1, log_1=1)
    group.offsets.refresh(group.state(log_0=5, log_1=7), [TP])
    assert group.committed() == {TP: 5, OTHER: 1}


def test_a_refresh_replaces_a_commit_of_another_ledger(group: Group) -> None:
    group.sink.kafka.alter_group_offsets("group", {TP: 5}, metadata="generation 1, ledger s3://archive/other/")
    group.offsets.refresh(group.state(log_0=5), [TP])
    assert group.sink.kafka.group_metadata("group", [TP]) == {TP: group.metadata}


def test_a_refresh_of_unchanged_offsets_asks_the_store_for_nothing(group: Group) -> None:
    group.offsets.commit(group.state(log_0=5))
    requests: list[str] = []
    group.sink.memory.fault = lambda call, key: requests.append(call)
    group.offsets.refresh(group.state(log_0=5), [TP])
    assert requests == []


@pytest.mark.parametrize(
    ("passed", "is_due"),
    [(0, False), (COMMIT_INTERVAL_MS - 1, False), (COMMIT_INTERVAL_MS, True), (-COMMIT_INTERVAL_MS, True)],
)
def test_all_offsets_are_committed_again_after_the_interval(group: Group, passed: int, is_due: bool) -> None:
    group.offsets.commit(group.state(log_0=5))
    path = group.sink.kafka.path
    before = path.stat().st_ino
    group.now += passed
    group.offsets.refresh(group.state(log_0=5), [TP])
    assert (path.stat().st_ino != before) == is_due


def test_the_interval_begins_again_with_each_complete_commit(group: Group) -> None:
    group.now += COMMIT_INTERVAL_MS
    group.offsets.refresh(group.state(log_0=5), [TP])
    group.now += COMMIT_INTERVAL_MS - 1
    before = group.sink.kafka.path.stat().st_ino
    group.offsets.refresh(group.state(log_0=5), [TP])
    assert group.sink.kafka.path.stat().st_ino == before


def test_a_fenced_driver_does_not_refresh(group: Group) -> None:
    group.sink.claim(by="another")
    with pytest.raises(LedgerFenced):
        group.offsets.refresh(group.state(log_0=5), [TP])
    assert group.committed() == {}


def test_a_deleted_topic_does_not_keep_the_others_from_being_committed(
    group: Group, caplog: pytest.LogCaptureFixture
) -> None:
    group.offsets.commit(group.state(gone_0=3, log_0=5, log_1=7))
    assert group.committed() == {TP: 5, OTHER: 7}
    assert caplog.messages == [
        "offsets of a topic that no longer exists are not committed; its objects stay in S3: topic gone does not exist"
    ]


def test_a_state_without_partitions_commits_nothing(group: Group) -> None:
    group.offsets.commit(group.state())
    assert not group.sink.kafka.path.exists()
