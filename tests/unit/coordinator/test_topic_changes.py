"""What a running driver does about topics and partitions that appear or disappear."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sink_job.api.errors import OwnershipConflict, TopicRecreated
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import CoordinatorContext
from sink_job.coordinator.progress import Progress
from sink_job.coordinator.rounds import Rounds
from sink_job.coordinator.topic_changes import record_topic_changes
from sink_job.coordinator.topic_claims import TopicClaims
from sink_job.ledger import ownership
from sink_job.ledger.ownership import Owner
from sink_job.ledger.state import KafkaIdentity
from tests.support.synthetic_log import CLOCK_MS, InlineEngine, SyntheticLog
from tests.unit.coordinator.claimed_sink import OTHER, TP, ClaimedSink

KAFKA = {"bootstrapServers": "127.0.0.1:9", "groupId": "group", "topicsPattern": "log.*"}
NEW_TOPIC = TopicPartition("logs", 0)


class Running:
    """A driver of the topics `log.*` that has read `log-0` alone."""

    def __init__(self, folder: Path) -> None:
        self.sink = ClaimedSink(folder, SyntheticLog(), spec={"kafka": KAFKA})
        state = self.sink.claim(TP)
        nothing: Any = None
        context = CoordinatorContext(
            s3=nothing,
            admin=self.sink.kafka,
            engine=InlineEngine(SyntheticLog()),
            clock=lambda: CLOCK_MS,
            owner=self.sink.owner,
            attempt="attempt",
        )
        self.claims = TopicClaims(self.sink.s3, self.sink.object_settings, "log", self.sink.owner, take_over=False)
        self.claims.acquire_all(["log"])
        self.rounds = Rounds(
            self.sink.sink,
            context,
            Progress(self.sink.sink, context.clock),
            s3=self.sink.s3,
            ledger=self.sink.ledger,
            discovery=self.sink.discovery,
            clock=nothing,
            state=state,
            wait=lambda: False,
        )
        self.sink.discovery.refresh()

    def sees(self, **log: Any) -> frozenset[str]:
        """Kafka becomes this log; returns the deleted topics."""
        self.sink.kafka.log = SyntheticLog(**log)
        return record_topic_changes(self.sink.discovery, self.claims, self.rounds, now=CLOCK_MS)

    def starts(self) -> dict[TopicPartition, int]:
        return {tp: p.next for tp, p in self.rounds.partitions.items()}


@pytest.fixture
def running(tmp_path: Path) -> Running:
    return Running(tmp_path)


def test_without_a_change_no_record_is_written(running: Running) -> None:
    number = running.rounds.state.number
    assert running.sees() == frozenset()
    assert running.rounds.state.number == number


def test_a_new_partition_is_recorded_from_its_first_offset(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    running.sees(partitions=2, starts_at=4)
    assert running.starts() == {TP: 0, OTHER: 4}
    assert "discovered 1 new partitions: log-1" in caplog.messages
    assert running.rounds.state.kafka == KafkaIdentity("function", {"log": "topic-id"})


def test_a_new_topic_is_claimed_before_it_is_recorded(running: Running) -> None:
    running.sees(other_topics={"logs": "logs-id"})
    assert running.starts() == {TP: 0, NEW_TOPIC: 0}
    assert "topics/_s3sink/topics/logs/json.json" in running.sink.memory.objects


def test_a_new_topic_of_another_sink_is_not_recorded(running: Running) -> None:
    stranger = Owner("elsewhere", "default", "stranger", "stranger")
    ownership.claim_topics(running.sink.s3, running.sink.object_settings, stranger, ["logs"])
    with pytest.raises(OwnershipConflict):
        running.sees(other_topics={"logs": "logs-id"})
    assert running.starts() == {TP: 0}


def test_a_new_topic_continues_after_the_objects_of_its_previous_owner(running: Running) -> None:
    running.claims.continues_at = {NEW_TOPIC: 6}
    running.sees(other_topics={"logs": "logs-id"})
    assert running.starts() == {TP: 0, NEW_TOPIC: 6}


def test_a_deleted_topic_is_returned_once(running: Running, caplog: pytest.LogCaptureFixture) -> None:
    running.sees(other_topics={"logs": "logs-id"})
    assert running.sees() == {"logs"}
    assert "topics deleted in Kafka: logs; publishing what was read of them" in caplog.messages
    assert running.sees() == frozenset()


def test_a_topic_that_was_created_again_ends_the_driver(running: Running) -> None:
    running.sees(partitions=2)
    with pytest.raises(TopicRecreated):
        running.sees(topic_id="second", partitions=3)
    assert set(running.starts()) == {TP, OTHER}
