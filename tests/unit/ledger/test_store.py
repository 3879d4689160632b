"""The ledger in a bucket: what is read back, whose record is at a number, and what is deleted."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sink_job.api.errors import ConfigurationError, LedgerFenced, LedgerUnreadable, TransientError
from sink_job.ledger.state import LedgerState, Record
from sink_job.ledger.store import Intent, Ledger, record_name
from sink_job.ledger.transitions import apply
from sink_job.s3 import Conflict, NotFound, S3Outcome
from tests.support.memory_s3 import MemoryS3
from tests.support.memory_sink import MemorySinkFixture, error_of
from tests.support.store_faults import LOG, OBJECTS, Once, fail, stored_then
from tests.unit.ledger.states import TP, at, claim, closed_object, open_at, round_

ROOT = "sink/"


@pytest.fixture
def sink_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    return MemorySinkFixture(tmp_path, monkeypatch)


def test_a_driver_whose_record_was_stored_before_the_outage_is_not_fenced_by_it(
    sink_fixture: MemorySinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_then(monkeypatch, sink_fixture.s3, f"/ledger/{4:020d}", TransientError)
    error = error_of(lambda: sink_fixture.run(LOG))
    assert type(error) is TransientError
    sink_fixture.run(LOG)
    assert sink_fixture.offsets() == OBJECTS


def ledger(s3: MemoryS3, attempt: str) -> Ledger:
    store: Any = s3
    return Ledger(store, "sink/", attempt)


def record(number: int, attempt: str) -> Record:
    return Record(number=number, epoch=number, attempt=attempt, kind="claim", clock=0)


@pytest.mark.parametrize("above", [["ours", "theirs"], [None, "theirs"], ["theirs"]], ids=str)
def test_a_record_of_another_attempt_anywhere_above_the_state_fences(above: list[str | None]) -> None:
    s3 = MemoryS3()
    state = LedgerState()
    for number, attempt in enumerate(["ours", *above], 1):
        if attempt is not None:
            ledger(s3, attempt).append(record(number, attempt))
        if number == 1:
            state = apply(state, record(1, "ours"))
    with pytest.raises(LedgerFenced, match="attempt theirs"):
        ledger(s3, "ours").check_owner(state)


@pytest.mark.parametrize("above", [[], ["ours"]], ids=str)
def test_without_a_record_of_another_attempt_no_driver_is_fenced(above: list[str]) -> None:
    s3 = MemoryS3()
    for number, attempt in enumerate(["ours", *above], 1):
        ledger(s3, attempt).append(record(number, attempt))
    ledger(s3, "ours").check_owner(apply(LedgerState(), record(1, "ours")))
    ledger(s3, "ours").check_head(apply(LedgerState(), record(1, "ours")))


def test_a_conflict_over_the_drivers_own_record_is_a_success(
    sink_fixture: MemorySinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored_then(monkeypatch, sink_fixture.s3, f"/ledger/{4:020d}", Conflict)
    sink_fixture.run(LOG)
    assert sink_fixture.offsets() == OBJECTS


def test_a_conflict_over_the_record_of_another_driver_fences(sink_fixture: MemorySinkFixture) -> None:
    def meanwhile(key: str) -> None:
        sink_fixture.run(LOG)
        raise Conflict(key, key)

    with sink_fixture.faults(Once("put", f"/ledger/{4:020d}", meanwhile)):
        assert isinstance(error_of(lambda: sink_fixture.run(LOG)), LedgerFenced)
    assert sink_fixture.offsets() == OBJECTS


@pytest.mark.parametrize("file", ["/ledger/", "/snapshot/", "owner.json", "/topics/log/json.json"])
def test_a_conflict_over_nothing_is_worth_trying_again(sink_fixture: MemorySinkFixture, file: str) -> None:
    with sink_fixture.faults(fail("put", file, Conflict)):
        error = error_of(lambda: sink_fixture.run(LOG))
    assert isinstance(error, TransientError)
    assert not isinstance(error, S3Outcome)
    sink_fixture.run(LOG)
    assert sink_fixture.offsets() == OBJECTS


@pytest.mark.parametrize("file", ["/snapshot/", "owner.json", "/topics/log/json.json"])
def test_a_conflict_over_what_the_driver_has_written_itself_is_a_success(
    sink_fixture: MemorySinkFixture, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    stored_then(monkeypatch, sink_fixture.s3, file, Conflict)
    sink_fixture.run(LOG)
    assert sink_fixture.offsets() == OBJECTS


# -- reading ---------------------------------------------------------------------------------------------------------


def written(s3: MemoryS3, *records: Record) -> LedgerState:
    """The state after these records, which are in the ledger."""
    state = LedgerState()
    for each in records:
        ledger(s3, each.attempt).append(each)
        state = apply(state, each)
    return state


def rounds(last: int) -> list[Record]:
    """A claim and rounds up to this number."""
    return [claim(), *(round_(number, partitions={str(TP): at(number)}) for number in range(2, last + 1))]


def test_a_ledger_without_records_is_empty_and_does_not_exist() -> None:
    s3 = MemoryS3()
    assert ledger(s3, "me").load() == LedgerState()
    assert not ledger(s3, "me").exists()
    written(s3, claim())
    assert ledger(s3, "me").exists()


def test_the_state_is_that_of_all_records() -> None:
    s3 = MemoryS3()
    state = written(s3, *rounds(9))
    assert ledger(s3, "other").load() == state
    assert state.number == 9


def test_the_state_is_that_of_the_snapshot_and_the_records_after_it() -> None:
    s3 = MemoryS3()
    one = ledger(s3, "me")
    state = one.snapshot(written(s3, *rounds(4)))
    for each in rounds(6)[4:]:
        one.append(each)
        state = apply(state, each)
    assert one.load() == state


def test_a_gap_is_named_with_the_ways_to_continue() -> None:
    s3 = MemoryS3()
    written(s3, *rounds(5))
    s3.delete([ROOT + record_name(3)])
    with pytest.raises(ConfigurationError, match=r"the ledger s3://archive/sink/ has a gap: .* Restore .* sinkId"):
        ledger(s3, "me").load()


def test_records_that_another_driver_deletes_meanwhile_are_looked_for_in_its_snapshot() -> None:
    s3 = MemoryS3()
    state = written(s3, *rounds(5))

    def meanwhile(key: str) -> None:
        one = ledger(s3, "me")
        one.snapshot(state)
        s3.delete([ROOT + record_name(number) for number in (2, 3)])

    s3.fault = Once("get", record_name(2), meanwhile)
    assert ledger(s3, "other").load().number == 5


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (gzip.compress(msgspec.json.encode(claim(7))), "it contains number 7"),
        (gzip.compress(b"{"), "sink/ledger/"),
        (b"text", "sink/ledger/"),
    ],
    ids=["another number", "no JSON", "not compressed"],
)
def test_a_damaged_record_is_named_with_its_key(content: bytes, problem: str) -> None:
    s3 = MemoryS3()
    s3.put(ROOT + record_name(1), content)
    with pytest.raises(LedgerUnreadable, match=record_name(1)) as error:
        ledger(s3, "me").load()
    assert problem in str(error.value)


def test_a_record_that_does_not_fit_the_previous_one_is_named() -> None:
    s3 = MemoryS3()
    one = ledger(s3, "me")
    damaged = msgspec.structs.replace(at(5, 0, open_at("a", 0)), kept=())
    for each in (claim(), round_(2, partitions={str(TP): damaged})):
        one.append(each)
    with pytest.raises(LedgerUnreadable, match="it does not fit the previous one"):
        one.load()


def test_catching_up_reads_the_records_after_the_state_without_a_listing() -> None:
    s3 = MemoryS3()
    records = rounds(6)
    written(s3, *records)
    state = LedgerState()
    for each in records[:3]:
        state = apply(state, each)
    calls: list[str] = []
    s3.fault = lambda call, key: calls.append(call)
    assert ledger(s3, "me").catch_up(state).number == 6
    assert set(calls) == {"get"}


def test_without_a_later_record_catching_up_lists_the_ledger() -> None:
    s3 = MemoryS3()
    state = written(s3, *rounds(3))
    assert ledger(s3, "me").catch_up(state) == state


def test_claims_are_listed_in_order_without_those_that_a_user_has_deleted() -> None:
    s3 = MemoryS3()
    state = written(s3, claim(), claim(2, epoch=2), claim(3, epoch=3))
    assert [each.number for each in ledger(s3, "me").claims(state)] == [1, 2, 3]
    s3.delete([ROOT + record_name(2)])
    assert [each.number for each in ledger(s3, "me").claims(state)] == [1, 3]


# -- who owns it -----------------------------------------------------------------------------------------------------


def test_the_number_of_another_attempt_is_fenced_and_the_same_record_is_not() -> None:
    s3 = MemoryS3()
    ledger(s3, "theirs").append(record(1, "theirs"))
    ledger(s3, "theirs").append(record(1, "theirs"))
    with pytest.raises(LedgerFenced, match="attempt theirs, epoch 1"):
        ledger(s3, "ours").append(record(1, "ours"))


def test_a_record_that_was_deleted_after_its_put_fences() -> None:
    s3 = MemoryS3()
    written(s3, claim())
    s3.fault = Once("get", record_name(1), lambda key: s3.delete([key]))
    with pytest.raises(LedgerFenced):
        ledger(s3, "other").append(record(1, "other"))


def test_a_record_of_another_version_fences() -> None:
    s3 = MemoryS3()
    state = written(s3, claim())
    newer = msgspec.to_builtins(round_(2)) | {"format": 99}
    s3.put(ROOT + record_name(2), gzip.compress(msgspec.json.encode(newer)))
    with pytest.raises(LedgerFenced, match="another version of s3sink has taken over the ledger"):
        ledger(s3, "me").check_owner(state)


def test_the_error_of_a_fenced_driver_names_the_other_one_and_its_time() -> None:
    s3 = MemoryS3()
    state = written(s3, claim())
    ledger(s3, "theirs").append(Record(2, 2, "theirs", "claim", clock=1_700_000_000_999))
    with pytest.raises(LedgerFenced) as fenced:
        ledger(s3, "me").check_head(state)
    assert "(record 2, epoch 2, attempt theirs, of 2023-11-14T22:13:20Z)" in str(fenced.value)
    assert "another deployment uses the same bucket, topicsDir and sinkId" in str(fenced.value)


def test_the_time_of_a_record_is_that_of_the_store_and_a_deleted_one_fences() -> None:
    s3 = MemoryS3()
    written(s3, claim())
    one = ledger(s3, "me")
    head = s3.head(one.key_of(1))
    assert head is not None
    assert one.record_time(1) == head.last_modified_ms
    with pytest.raises(LedgerFenced, match="record 2 of s3://archive/sink/ was deleted"):
        one.record_time(2)


# -- snapshots, the published log and intents ------------------------------------------------------------------------


def published(s3: MemoryS3, last: int) -> LedgerState:
    """A ledger with one object in each record from 2 on, and a snapshot at each third record."""
    one, state = ledger(s3, "me"), LedgerState()
    for number in range(1, last + 1):
        name = closed_object(number, number, path=f"p{number}", record=number)
        previous = closed_object(number - 1, number - 1, path=f"p{number - 1}").key
        each = claim() if number == 1 else round_(
            number, partitions={str(TP): at(number)}, closed=[name], acknowledged=[previous] if number > 2 else []
        )  # fmt: skip
        one.append(each)
        state = apply(state, each)
        if number % 3 == 0:
            state = one.snapshot(state)
    return state


def test_the_published_log_has_each_acknowledged_object_once_in_files_and_state() -> None:
    s3 = MemoryS3()
    state = published(s3, 8)
    lines = ledger(s3, "me").published(state)
    assert [line.object.path for line in lines if line.object] == [f"p{number}" for number in range(2, 8)]
    assert ledger(s3, "other").published(ledger(s3, "other").load()) == lines


def test_a_missing_file_of_the_published_log_is_named_with_what_to_restore() -> None:
    s3 = MemoryS3()
    state = published(s3, 8)
    (first, *_) = [key for key in s3.objects if "/published/" in key]
    s3.delete([first])
    with pytest.raises(ConfigurationError, match=r"published/ has no file that ends at record 3\. Restore that object"):
        ledger(s3, "me").published(state)


def test_a_snapshot_deletes_covered_records_but_no_claim_and_none_with_an_object_that_is_not_visible() -> None:
    s3 = MemoryS3()
    state = published(s3, 12)
    numbers = sorted(int(key.split("/")[2].split(".")[0]) for key in s3.objects if "/ledger/" in key)
    assert numbers[0] == 1
    assert 2 not in numbers
    assert set(range(state.number - 2, state.number + 1)) <= set(numbers)
    assert ledger(s3, "me").load() == state


@pytest.mark.parametrize("error", [Conflict, None])
def test_a_snapshot_that_the_store_does_not_write_is_worth_trying_again(error: type[Exception] | None) -> None:
    s3 = MemoryS3()
    state = written(s3, *rounds(3))
    if error is None:
        assert ledger(s3, "me").snapshot(state) == ledger(s3, "me").snapshot(state), "its reply was lost"
        return
    s3.fault = fail("put", "/snapshot/", Conflict)
    with pytest.raises(TransientError) as raised:
        ledger(s3, "me").snapshot(state)
    assert not isinstance(raised.value, S3Outcome)


def intent(epoch: int, sequence: int) -> Intent:
    return Intent(epoch, sequence, round=sequence, clock=0, ranges={str(TP): (0, sequence)})


def test_of_each_epoch_the_newest_intent_covers_the_previous_ones() -> None:
    s3 = MemoryS3()
    one = ledger(s3, "me")
    for epoch, sequence in ((1, 1), (1, 2), (1, 10), (2, 1)):
        one.write_intent(intent(epoch, sequence))
    stored, superseded = one.intents()
    assert [each.intent for each in stored] == [intent(1, 10), intent(2, 1)]
    assert len(superseded) == 2
    assert all("-0000000001" in key or "-0000000002" in key for key in superseded)


def test_an_intent_that_another_driver_deletes_meanwhile_is_omitted() -> None:
    s3 = MemoryS3()
    one = ledger(s3, "me")
    one.write_intent(intent(1, 1))
    one.write_intent(intent(2, 1))
    s3.fault = Once("get", "intent/", lambda key: s3.delete([key]))
    assert [each.intent.epoch for each in one.intents()[0]] == [2]


def test_a_record_that_does_not_exist_is_not_found() -> None:
    with pytest.raises(NotFound):
        ledger(MemoryS3(), "me").record(1)
