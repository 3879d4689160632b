"""The checks around the first claim in the place of another writer, on a bucket in memory."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.errors import AccessDenied, ConfigurationError, LedgerLost
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.first_claim.checks import (
    abort_uploads,
    check_first_start,
    check_objects,
    continued,
    objects_of,
    unchecked_claim,
)
from sink_job.ledger.first_claim.previous_writer import AcceptedObject, PreviousWriter
from sink_job.ledger.state import LedgerState, PartitionState, Record
from sink_job.ledger.store import Ledger
from sink_job.ledger.transitions import apply, diff
from tests.support.memory_s3 import MemoryS3
from tests.support.previous_objects import key_of
from tests.unit.rotation.settings import object_settings

TP = TopicPartition("log", 0)
SETTINGS = object_settings()
START = PartitionState.start


def bucket(*firsts: int) -> Any:
    s3 = MemoryS3()
    for first in firsts:
        s3.put(key_of(first), b"%d" % first)
    return s3


def writer(s3: Any, committed: int, *objects: tuple[int, int]) -> PreviousWriter:
    stored = {listed.key: listed for listed in s3.list("")}
    accepted = (
        AcceptedObject(key, "log", 0, first, last, last - first + 1, stored[key].size, stored[key].etag)
        for first, last in objects
        if (key := key_of(first))
    )
    starts = {"log-0": objects[-1][1] + 1} if objects else {}
    return PreviousWriter("group", {"log-0": committed}, starts, "bytes", tuple(accepted))


def claim(previous: PreviousWriter | None) -> Record:
    partitions = {"log-0": diff(None, START(20))}
    settings = SETTINGS.model_dump_json()
    return Record(
        number=1,
        epoch=1,
        attempt="a",
        kind="claim",
        clock=0,
        settings=settings,
        partitions=partitions,
        previous=previous,
    )


def test_topic_partitions_start_behind_accepted_objects_and_others_where_they_were() -> None:
    other = TopicPartition("log", 1)
    previous = PreviousWriter("group", {"log-0": 10, "log-1": 5}, {"log-0": 20})
    starts = continued({TP: START(10), other: START(5)}, previous, {TP: 10, other: 5})
    assert {tp: p.next for tp, p in starts.items()} == {TP: 20, other: 5}


@pytest.mark.parametrize("committed", [{TP: 11}, {}], ids=["changed", "expired"])
def test_other_offsets_than_those_of_the_comparison_are_rejected(committed: dict[TopicPartition, int]) -> None:
    with pytest.raises(ConfigurationError, match="have changed since the objects were compared"):
        continued({TP: START(10)}, PreviousWriter("group", {"log-0": 10}), committed)


def test_the_accepted_objects_and_older_ones_pass() -> None:
    s3 = bucket(0, 10)
    s3.put("topics/log/partition=0/other.txt", b"")
    check_objects(s3, SETTINGS, writer(s3, 10, (10, 19)), {TP: 20}, "advice")


@pytest.mark.parametrize("first", [20, 35, 15])
def test_another_object_from_the_committed_offset_on_is_rejected(first: int) -> None:
    s3 = bucket(0, 10)
    previous = writer(s3, 10, (10, 19))
    s3.put(key_of(first), b"")
    with pytest.raises(LedgerLost, match=rf"{first}\.json appeared after the objects of consumer group group"):
        check_objects(s3, SETTINGS, previous, {TP: 20}, "advice")


def test_many_objects_are_counted() -> None:
    s3 = bucket(*range(20, 30))
    with pytest.raises(LedgerLost, match="and 7 more objects appeared"):
        check_objects(s3, SETTINGS, PreviousWriter("group", {"log-0": 20}), {TP: 20}, "advice")


@pytest.mark.parametrize("body", [None, b"changed"], ids=["deleted", "changed"])
def test_an_accepted_object_that_is_not_the_compared_one_is_rejected(body: bytes | None) -> None:
    s3 = bucket(10)
    previous = writer(s3, 10, (10, 19))
    s3.delete([key_of(10)]) if body is None else s3.put(key_of(10), body)
    with pytest.raises(LedgerLost, match=r"was deleted or changed after it was compared .* Do this"):
        check_objects(s3, SETTINGS, previous, {TP: 20}, "Do this")


def test_the_check_is_repeated_until_the_ledger_has_a_record_beside_claims() -> None:
    s3 = bucket()
    ledger, first = Ledger(s3, "ledger/", "a"), claim(PreviousWriter("group"))
    ledger.append(first)
    state = apply(LedgerState(), first)
    assert unchecked_claim(ledger, state) == first
    second = Record(number=2, epoch=2, attempt="b", kind="claim", clock=0)
    ledger.append(second)
    state = apply(state, second)
    assert unchecked_claim(ledger, state) == first
    third = Record(number=3, epoch=2, attempt="b", kind="round", clock=0)
    assert unchecked_claim(ledger, apply(state, third)) is None
    check_first_start(ledger, apply(state, third))
    with pytest.raises(ConfigurationError, match=r"has nothing but its claim\. Start the sink once"):
        check_first_start(ledger, state)


def test_a_ledger_that_continues_no_other_writer_needs_no_check() -> None:
    ledger, first = Ledger(bucket(), "ledger/", "a"), claim(None)
    ledger.append(first)
    assert unchecked_claim(ledger, apply(LedgerState(), first)) is None


def test_uploads_at_keys_of_the_sink_are_aborted_and_others_stay() -> None:
    s3 = bucket()
    for key in (
        key_of(10),
        key_of(10, partition=7),
        "topics/log/x",
        "topics/other/partition=0/other+0+0000000000.json",
    ):
        s3.create_upload(key)
    assert abort_uploads(Ledger(s3, "ledger/", "a"), LedgerState(number=1), SETTINGS, {TP}) == 1
    assert key_of(10) not in [upload.key for upload in s3.list_uploads("")]
    assert len(list(s3.list_uploads(""))) == 3


def test_an_upload_that_may_not_be_aborted_is_left_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    s3 = bucket()
    s3.create_upload(key_of(10))

    def denied(key: str, upload: str) -> bool:
        raise AccessDenied("not allowed")

    monkeypatch.setattr(s3, "abort", denied)
    assert abort_uploads(Ledger(s3, "ledger/", "a"), LedgerState(number=1), SETTINGS, {TP}) == 0
    assert "an unfinished upload of the previous writer is left: not allowed" in caplog.text


def test_objects_are_those_at_keys_of_the_sink_each_once() -> None:
    s3 = bucket(0, 10)
    s3.put("topics/log/partition=0/log+0+10.json", b"another padding")
    s3.put("topics/_s3sink/x/ledger/1", b"")
    assert [(tp, first) for tp, first, _ in objects_of(s3, SETTINGS, {TP})] == [(TP, 0), (TP, 10)]
