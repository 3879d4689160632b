"""Which topics a sink reads, and from which offset on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from sink_job.api.errors import ConfigurationError, TopicNotFound, TopicRecreated
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.topic_discovery import TopicDiscovery
from sink_job.ledger.state import KafkaIdentity, PartitionState
from tests.support.synthetic_log import FileConsumerGroup, SyntheticLog
from tests.unit.coordinator.claimed_sink import OTHER, TP, ClaimedSink

LOG = SyntheticLog(records=20, partitions=2, starts_at=3, other_topics={"logs": "logs-id", "other": "other-id"})
KNOWN = KafkaIdentity("function", {"log": "topic-id", "logs": "logs-id", "other": "other-id"})


def new_sink(folder: Path, log: SyntheticLog = LOG, **kafka: Any) -> ClaimedSink:
    kafka = {"bootstrapServers": "127.0.0.1:9", "groupId": "group", **(kafka or {"topics": ["log"]})}
    return ClaimedSink(folder, log, spec={"kafka": kafka})


@pytest.mark.parametrize(
    ("kafka", "topics"),
    [
        ({"topics": ["log"]}, {"log"}),
        ({"topics": ["logs", "log"]}, {"log", "logs"}),
        ({"topicsPattern": "log.*"}, {"log", "logs"}),
        ({"topicsPattern": "lo"}, set()),
    ],
)
def test_the_topics_are_those_that_the_manifest_lists_or_matches(
    tmp_path: Path, kafka: dict[str, Any], topics: set[str]
) -> None:
    discovery = new_sink(tmp_path, **kafka).discovery
    assert set(discovery.refresh()) == topics
    assert discovery.current == topics


def test_the_current_topics_are_those_of_the_last_refresh(tmp_path: Path) -> None:
    sink = new_sink(tmp_path, topicsPattern="log.*")
    sink.discovery.refresh()
    sink.kafka.log = SyntheticLog()
    sink.discovery.discover()
    assert sink.discovery.current == {"log", "logs"}
    sink.discovery.refresh()
    assert sink.discovery.current == {"log"}


def test_a_listed_topic_that_does_not_exist_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(TopicNotFound, match="missing"):
        new_sink(tmp_path, topics=["log", "missing"]).discovery.discover()


def test_the_ids_are_those_of_the_cluster_and_the_topics(tmp_path: Path) -> None:
    discovery = new_sink(tmp_path, topicsPattern="log.*").discovery
    assert discovery.topic_ids(discovery.discover()) == KafkaIdentity(
        "function", {"log": "topic-id", "logs": "logs-id"}
    )


def test_a_topic_that_was_created_again_is_not_the_same(tmp_path: Path) -> None:
    discovery = new_sink(tmp_path).discovery
    discovery.check_same_topics(KNOWN)
    with pytest.raises(TopicRecreated, match="its id was first and is topic-id"):
        discovery.check_same_topics(KafkaIdentity("function", {"log": "first"}))


def test_a_topic_that_no_longer_exists_was_the_same(tmp_path: Path) -> None:
    new_sink(tmp_path, topics=["missing"]).discovery.check_same_topics(KafkaIdentity("function", {"missing": "first"}))


@pytest.mark.parametrize(
    ("topic", "kafka", "known", "why"),
    [
        ("gone", {"topics": ["log"]}, KNOWN, "topic gone was deleted in Kafka"),
        ("gone", {"topicsPattern": "gone"}, None, "topic gone was deleted in Kafka"),
        ("gone", {"topics": ["gone"]}, KNOWN, None),
        ("other", {"topics": ["log"]}, KNOWN, None),
        ("other", {"topics": ["log"]}, None, None),
        (
            "other",
            {"topics": ["log"]},
            KafkaIdentity("function", {"other": "first"}),
            "topic other was deleted and re-created",
        ),
        ("other", {"topicsPattern": "other"}, KafkaIdentity("function", {"other": "first"}), None),
        ("other", {"topicsPattern": "other"}, KafkaIdentity("function", {}), None),
    ],
    ids=[
        "not in the manifest",
        "matched by the manifest",
        "listed: an error of its own",
        "exists",
        "exists, no ids",
        "created again",
        "created again and read: an error of its own",
        "exists, no id",
    ],
)
def test_a_topic_is_deleted_if_the_one_in_the_ledger_no_longer_exists(
    tmp_path: Path, topic: str, kafka: dict[str, Any], known: KafkaIdentity | None, why: str | None
) -> None:
    tp = TopicPartition(topic, 0)
    assert new_sink(tmp_path, **kafka).discovery.deleted([tp], known) == ({tp: why} if why else {})


def test_new_partitions_start_at_the_first_offset_of_their_log(tmp_path: Path) -> None:
    sink = new_sink(tmp_path)
    topics = sink.discovery.discover()
    assert sink.discovery.new_partitions(sink.claim(), topics) == {
        TP: PartitionState.start(3),
        OTHER: PartitionState.start(3),
    }
    assert sink.discovery.new_partitions(sink.claim(TP), topics) == {OTHER: PartitionState.start(3)}
    assert sink.discovery.new_partitions(sink.claim(OTHER), topics) == {}


@pytest.mark.parametrize(
    ("starting", "group", "continues_at", "offset"),
    [
        ("Earliest", {}, {}, 3),
        ("Latest", {}, {}, 20),
        ("Earliest", {TP: 7}, {}, 7),
        ("Latest", {TP: 0}, {}, 0),
        ("Earliest", {}, {TP: 5}, 5),
        ("Latest", {}, {TP: 5}, 5),
        ("Earliest", {TP: 4}, {TP: 5}, 5),
        ("Earliest", {TP: 6}, {TP: 5}, 6),
        ("Earliest", {}, {OTHER: 5}, 3),
    ],
)
def test_a_sink_without_a_ledger_starts_at_the_groups_offset_but_not_inside_of_objects(
    tmp_path: Path,
    starting: str,
    group: Mapping[TopicPartition, int],
    continues_at: Mapping[TopicPartition, int],
    offset: int,
) -> None:
    sink = new_sink(tmp_path, topics=["log"], startingOffsets=starting)
    sink.kafka.alter_group_offsets("group", group)
    starts = sink.discovery.initial_offsets({TP: PartitionState.start(3)}, continues_at)
    assert starts == {TP: PartitionState.start(offset)}


def test_a_group_with_members_ends_the_start(tmp_path: Path) -> None:
    sink = new_sink(tmp_path)
    sink.discovery.check_no_members()
    sink.kafka.members = 1
    with pytest.raises(ConfigurationError, match="consumer group group has 1 active members"):
        sink.discovery.check_no_members()


class Kafka(FileConsumerGroup):
    """Has log sizes, and at read_committed an end of the log that is 5 offsets lower."""

    sizes: Mapping[TopicPartition, int] | None = None

    def end_offsets(self, partitions: Sequence[TopicPartition], *, committed: bool = True) -> dict[TopicPartition, int]:
        return {tp: end - 5 * committed for tp, end in super().end_offsets(partitions).items()}

    def log_sizes(self, topics: Sequence[str]) -> Any:
        return self.sizes


def new_discovery(folder: Path, log: SyntheticLog = LOG, **kafka: Any) -> tuple[TopicDiscovery, Kafka]:
    admin = Kafka(log, folder / "group.json")
    return TopicDiscovery(new_sink(folder, log, topics=["log"], **kafka).sink, admin), admin


@pytest.mark.parametrize(("level", "end"), [("ReadCommitted", 15), ("ReadUncommitted", 20)])
def test_the_log_end_is_the_last_stable_offset_at_read_committed(tmp_path: Path, level: str, end: int) -> None:
    discovery, _ = new_discovery(tmp_path, isolationLevel=level)
    assert discovery.end_offsets([TP]) == {TP: end}


@pytest.mark.parametrize(
    ("sizes", "record_bytes"),
    [
        (None, {}),
        ({}, {}),
        ({TP: 0}, {}),
        ({TP: 1200}, {TP: 100.0}),
        ({TP: 6}, {TP: 1.0}),
        ({TP: 1200, OTHER: 2400}, {TP: 100.0, OTHER: 200.0}),
    ],
)
def test_the_average_size_of_a_record_follows_from_the_size_of_the_log(
    tmp_path: Path, sizes: dict[TopicPartition, int] | None, record_bytes: dict[TopicPartition, float]
) -> None:
    discovery, admin = new_discovery(tmp_path)
    admin.sizes = sizes
    assert discovery.record_bytes([TP, OTHER]) == record_bytes


def test_an_empty_log_has_no_average_size_of_a_record(tmp_path: Path) -> None:
    discovery, admin = new_discovery(tmp_path, SyntheticLog(records=8, starts_at=3))
    admin.sizes = {TP: 100}
    assert discovery.record_bytes([TP]) == {}
