"""Running connectors with another group than the sink's."""

from __future__ import annotations

from pathlib import Path

from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.kafka_admin import GroupMember
from sink_job.maintenance.position.cases import Case, FoundObject, PartitionFacts, PartitionPosition
from sink_job.maintenance.position.other_connectors import beside, other_connectors
from tests.support.synthetic_log import FileConsumerGroup, SyntheticLog

FACTS = PartitionFacts(TopicPartition("log", 0), None, 0, 100, (FoundObject("k", 0, 5, "e"),))


def test_groups_and_clients_of_connect_are_found_and_other_consumers_are_not(tmp_path: Path) -> None:
    admin = FileConsumerGroup(SyntheticLog(), tmp_path / "group.json")
    admin.active = [
        GroupMember("connect-a", "x", "log"),
        GroupMember("own", "connector-consumer-b-0", "log"),
        GroupMember("own", "connector-consumer-b-1", "log"),
        GroupMember("application", "app-1", "log"),
        GroupMember("connect-mine", "connector-consumer-mine-0", "log"),
        GroupMember("connect-c", "x", "another"),
    ]
    assert other_connectors(admin, "connect-mine", {"log"}) == {"log": ["connect-a", "own"]}
    assert other_connectors(admin, "connect-mine", set()) == {}


def test_a_topic_partition_without_an_offset_does_not_start_beside_a_running_connector() -> None:
    after = PartitionPosition(FACTS, Case.AFTER_OBJECTS, 10, 10)
    found = beside(after, ["connect-a"])
    assert (found.case, found.start, found.after_objects, found.connectors) == (
        Case.FORGOTTEN,
        None,
        10,
        ("connect-a",),
    )
    assert "running connectors read this topic with the groups connect-a" in found.message


def test_a_topic_partition_without_an_object_has_a_note() -> None:
    found = beside(PartitionPosition(FACTS, Case.NEW), [f"connect-{n}" for n in range(7)])
    assert (found.case, found.connectors) == (Case.NEW, ())
    assert found.message.endswith("connect-4 and 2 more: check kafka.groupId")


def test_with_an_offset_other_connectors_do_not_matter() -> None:
    given = PartitionPosition(PartitionFacts(TopicPartition("log", 0), 5, 0, 100), Case.COMMITTED, 5)
    assert beside(given, ["connect-a"]) is given
