"""What `s3sink run --from-connector --dry-run` prints."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.first_claim.previous_writer import AcceptedObject
from sink_job.maintenance.position.cases import Case, FoundObject, PartitionFacts, PartitionPosition
from sink_job.maintenance.position.finder import ConnectorPosition
from sink_job.maintenance.position.output import output
from tests.support.sink_fixture import manifest
from tests.support.synthetic_log import sink_of_text

SINK = sink_of_text(manifest("archive", "http://127.0.0.1:9", flush_size=10))
OBJECTS = tuple(FoundObject(f"topics/log/k{n}", n, 5, '"e"') for n in (10, 20))


def partition(number: int, case: Case, committed: int | None, **given: Any) -> PartitionPosition:
    facts = PartitionFacts(
        TopicPartition("log", number), committed, 0, 100, given.pop("objects", ()), given.pop("uploads", 0)
    )
    return PartitionPosition(facts, case, **given)


def lines(*partitions: PartitionPosition, members: int = 0, stop_url: str | None = None) -> list[str]:
    return list(output(SINK, ConnectorPosition("connect-log", members, "values of JSON", partitions), stop_url))


def test_a_table_has_a_row_for_each_topic_partition_and_accepted_objects_follow() -> None:
    accepted = AcceptedObject("topics/log/k20", "log", 1, 20, 24, 5, 5, '"e"')
    shown = lines(
        partition(0, Case.COMMITTED, 7, start=7),
        partition(1, Case.ACCEPTED, 20, start=25, after_objects=25, objects=OBJECTS, uploads=2, accepted=(accepted,)),
        partition(2, Case.NEW, None),
    )
    assert shown == [
        "PARTITION  COMMITTED  LOG_START  LOG_END  AFTER_OBJECTS  BEYOND  UPLOADS  START  CASE",
        "log-0              7          0      100              -       0        0      7  Committed",
        "log-1             20          0      100             25       1        2     25  Accepted",
        "log-2              -          0      100              -       0        0      -  New",
        "",
        "consumer group connect-log: 0 active members",
        "log-1: s3://archive/topics/log/k20: offsets 20 to 24, 5 records, equal to Kafka's (values of JSON)",
        "2 unfinished uploads at keys of this sink are aborted after the first claim",
        "The sink would start. Nothing was changed.",
    ]


def test_a_difference_has_both_ways_out_as_commands() -> None:
    shown = lines(partition(0, Case.DIFFERENT, 10, objects=OBJECTS, message="topics/log/k10: it differs"))
    assert shown[4:] == [
        "log-0: topics/log/k10: it differs",
        "  either move away 2 objects, whose records are then read from Kafka:",
        "    aws s3 mv s3://archive/topics/log/k10 s3://archive/previous-writer/topics/log/k10 "
        "--endpoint-url http://127.0.0.1:9",
        "    aws s3 mv s3://archive/topics/log/k20 s3://archive/previous-writer/topics/log/k20 "
        "--endpoint-url http://127.0.0.1:9",
        "  or keep them and set the offset behind them; OFFSET is the first offset that is in no object:",
        "    kafka-consumer-groups.sh --bootstrap-server 127.0.0.1:9 --group group --topic log:0 --reset-offsets "
        "--to-offset OFFSET --execute",
        "The sink would not start: 1 topic-partitions need a decision. Nothing was changed.",
    ]


@pytest.mark.parametrize(
    "kafka",
    [
        pytest.param({"properties": {"security.protocol": "SSL"}}, id="properties"),
        pytest.param({"login": {"type": "Scram512", "credentials": {"secret": "kafka-login"}}}, id="login"),
    ],
)
def test_a_command_for_brokers_with_a_login_names_a_file_for_it(kafka: dict[str, Any]) -> None:
    given = {"bootstrapServers": "127.0.0.1:9", "topics": ["log"], "groupId": "group", **kafka}
    secured = sink_of_text(manifest("archive", "http://127.0.0.1:9", flush_size=10, spec={"kafka": given}))
    found = ConnectorPosition("g", 0, "", (partition(0, Case.AHEAD, 200),))
    assert any(
        "127.0.0.1:9 --command-config client.properties --group" in line for line in output(secured, found, None)
    )


def test_many_objects_are_counted() -> None:
    objects = tuple(FoundObject(f"k{n}", n, 5, '"e"') for n in range(10, 35))
    assert "    … and 5 more" in lines(partition(0, Case.NOT_COMPARED, 10, objects=objects, message="x"))


def test_forgotten_offsets_have_the_offset_that_the_objects_show() -> None:
    shown = lines(partition(0, Case.FORGOTTEN, None, objects=OBJECTS, after_objects=25, message="no offset"))
    assert "  start with --start-at-objects, or set the offset:" in shown
    assert any("--to-offset 25 --execute" in line for line in shown)


SET = (
    "    kafka-consumer-groups.sh --bootstrap-server 127.0.0.1:9 --group group --topic log:0 "
    "--reset-offsets --to-offset"
)


def test_records_before_the_offset_that_are_in_no_object_have_both_ways_out() -> None:
    shown = lines(partition(0, Case.AHEAD_OF_OBJECTS, 18, uncovered=10, message="it ends before offset 10"))
    assert shown[4:] == [
        "log-0: it ends before offset 10",
        "  if the group and the place of the objects are right, either set the offset back: the records are read from",
        "  Kafka:",
        f"{SET} 10 --execute",
        "  or leave these records out of all objects: start at the committed offsets, without a comparison:",
        "    s3sink run SINK.yaml",
        "The sink would not start: 1 topic-partitions need a decision. Nothing was changed.",
    ]


def test_an_unknown_end_of_the_objects_is_left_to_the_user_and_later_objects_are_moved_away() -> None:
    shown = lines(partition(0, Case.AHEAD_OF_OBJECTS, 18, objects=OBJECTS, message="it has 3 records"))
    assert "  Kafka; OFFSET is the first offset that is in no object:" in shown
    assert f"{SET} OFFSET --execute" in shown
    assert "  or leave these records out of all objects: move away 1 objects behind the offset, and" in shown
    (move,) = [line for line in shown if "aws s3 mv" in line]
    assert "topics/log/k20" in move


def test_a_record_between_objects_without_an_offset_has_both_ways_out() -> None:
    shown = lines(partition(0, Case.FORGOTTEN, None, objects=OBJECTS, uncovered=5, message="between"))
    assert f"{SET} 5 --execute" in shown
    assert f"{SET} OFFSET --execute" in shown
    assert not [line for line in shown if "--start-at-objects" in line]


def test_what_was_not_checked_is_said_once() -> None:
    found = ConnectorPosition("g", 0, "", (partition(0, Case.COMMITTED, 7, start=7),), "with partitioner Field")
    shown = [line for line in output(SINK, found, None) if line.startswith("Not checked")]
    assert shown == [
        "Not checked: whether all records before the committed offsets are in objects (with partitioner Field). Check "
        "that kafka.groupId is the connector's group"
    ]


def test_a_running_connector_with_another_group_may_be_the_one_of_the_objects() -> None:
    shown = lines(
        partition(0, Case.FORGOTTEN, None, objects=OBJECTS, after_objects=25, connectors=("connect-b",), message="b")
    )
    assert "  if one of these groups is the connector's, set kafka.groupId to it; else set the offset:" in shown
    assert f"{SET} 25 --execute" in shown
    assert not [line for line in shown if "--start-at-objects" in line]


def test_no_command_changes_objects_or_offsets_of_a_connector_that_still_runs() -> None:
    shown = lines(
        partition(0, Case.FORGOTTEN, None, objects=OBJECTS, after_objects=25, message="no offset"),
        partition(1, Case.DIFFERENT, 10, objects=OBJECTS, message="it differs"),
        members=1,
    )
    assert not [line for line in shown if "aws s3 mv" in line or "--reset-offsets" in line]
    assert {"log-0: no offset", "log-1: it differs"} <= set(shown)


@pytest.mark.parametrize(
    ("stop_url", "command"),
    [
        (None, "curl -X PUT 'http://HOST:8083/connectors/log/stop'"),
        ("http://user:password@w:83/connectors/a%20b", "curl -X PUT 'http://w:83/connectors/a%20b/stop'"),
    ],
)
def test_active_members_have_the_command_that_stops_the_connector(stop_url: str | None, command: str) -> None:
    shown = lines(partition(0, Case.COMMITTED, 7, start=7), members=2, stop_url=stop_url)
    assert f"  {command}" in shown
    assert shown[-1].startswith("The sink would not start: the group has active members. A connector commits its")
    assert "password" not in "".join(shown)
