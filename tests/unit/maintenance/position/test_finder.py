"""What the position of another writer says and records."""

from __future__ import annotations

from dataclasses import replace

import pytest

from sink_job.api.errors import ConfigurationError, LedgerLost
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.first_claim.previous_writer import AcceptedObject
from sink_job.maintenance.position.cases import Case, PartitionFacts, PartitionPosition
from sink_job.maintenance.position.finder import ConnectorPosition

OBJECT = AcceptedObject("k", "log", 1, 10, 19, 10, 5, '"e"')


def partition(
    number: int, case: Case, committed: int | None = 10, start: int | None = None, after: int | None = None
) -> PartitionPosition:
    facts = PartitionFacts(TopicPartition("log", number), committed, 0, 100)
    accepted = (OBJECT,) if case is Case.ACCEPTED else ()
    return PartitionPosition(facts, case, start, after, accepted, "" if case.starts else f"message {number}")


def position(*partitions: PartitionPosition, members: int = 0) -> ConnectorPosition:
    return ConnectorPosition("connect-log", members, "values of JSON", partitions)


def test_the_claim_records_offsets_starts_and_objects() -> None:
    found = position(
        partition(0, Case.COMMITTED, 7, 7), partition(1, Case.ACCEPTED, 10, 20), partition(2, Case.NEW, None)
    )
    previous = found.previous_writer()
    assert previous.offsets == {"log-0": 7, "log-1": 10}
    assert previous.starts == {"log-1": 20}
    assert (previous.comparison, previous.objects) == ("values of JSON", (OBJECT,))
    assert found.exit_code == 0
    assert found.summary() == (
        "consumer group connect-log: 2 of 3 topic-partitions have a committed offset; 1 objects with 10 records beyond "
        "them are accepted (compared by values of JSON)"
    )


def test_the_notes_of_topic_partitions_are_shortened() -> None:
    noted = [replace(partition(n, Case.COMMITTED, 7, 7), message=f"note {n}") for n in range(5)]
    assert position(partition(9, Case.COMMITTED, 7, 7), *noted).notes() == [
        "log-0: note 0",
        "log-1: note 1",
        "log-2: note 2",
        "2 more topic-partitions have notes: see s3sink run --dry-run",
    ]
    assert position(*noted[:1]).notes() == ["log-0: note 0"]


def test_without_an_accepted_object_nothing_was_compared() -> None:
    assert position(partition(0, Case.COMMITTED, 7, 7)).previous_writer().comparison == ""


def test_active_members_are_an_error_with_the_way_to_stop_them() -> None:
    found = position(partition(0, Case.DIFFERENT), members=2)
    with pytest.raises(ConfigurationError, match=r"2 active members.* /connectors/NAME/stop.*--stop-connector"):
        found.previous_writer()
    assert found.exit_code == 7


def test_an_error_names_the_first_topic_partitions_and_counts_the_others() -> None:
    found = position(*(partition(n, Case.DIFFERENT) for n in range(5)))
    with pytest.raises(LedgerLost) as error:
        found.previous_writer()
    text = str(error.value)
    assert "5 topic-partitions cannot continue" in text
    assert "log-0 (Different): message 0; log-1" in text
    assert "; and 2 more." in text
    assert (
        "Move such objects away, or set the group's offsets behind them. s3sink run --from-connector --dry-run" in text
    )
    assert (error.value.exit_code, found.exit_code) == (7, 7)


def test_forgotten_offsets_that_the_objects_show_have_their_own_advice() -> None:
    with pytest.raises(LedgerLost, match=r"If the group is right, .* or start with --start-at-objects"):
        position(partition(0, Case.FORGOTTEN, None, after=20)).previous_writer()
    with pytest.raises(LedgerLost, match="Move such objects away"):
        position(partition(0, Case.FORGOTTEN, None)).previous_writer()
