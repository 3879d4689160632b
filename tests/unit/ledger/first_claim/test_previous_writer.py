"""What the first claim keeps of the writer before the sink."""

from __future__ import annotations

import msgspec

from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.first_claim.previous_writer import AcceptedObject, PreviousWriter
from sink_job.ledger.state import Record

TP = TopicPartition("log", 0)
OBJECT = AcceptedObject("k", "log", 0, 10, 19, 10, 100, '"e"')


def test_objects_are_checked_from_the_lowest_of_offset_start_and_first_object() -> None:
    assert PreviousWriter("g", {"log-0": 12}, objects=(OBJECT,)).checked_from(TP, 20) == 10
    assert PreviousWriter("g", {"log-0": 8}, objects=(OBJECT,)).checked_from(TP, 20) == 8
    assert PreviousWriter("g").checked_from(TP, 20) == 20
    assert PreviousWriter("g", objects=(OBJECT,)).checked_from(TopicPartition("log", 1), 3) == 3


def test_a_claim_keeps_it_and_a_claim_without_one_has_no_such_field() -> None:
    previous = PreviousWriter("g", {"log-0": 10}, {"log-0": 20}, "bytes", (OBJECT,))
    claim = Record(number=1, epoch=1, attempt="a", kind="claim", clock=0, previous=previous)
    assert msgspec.json.decode(msgspec.json.encode(claim), type=Record) == claim
    assert b"previous" not in msgspec.json.encode(msgspec.structs.replace(claim, previous=None))
