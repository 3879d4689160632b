"""`s3sink repair` on a bucket in memory: every kind of damage, kills at every request, and two commands at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

import pytest
from msgspec.structs import replace

from sink_job.api.errors import AccessDenied, ConfigurationError, TransientError
from sink_job.ledger.store import Ledger
from sink_job.maintenance.repair.repairer import discard_damaged
from sink_job.maintenance.repair.results import RepairOutcome, RepairReport, Source
from sink_job.s3 import NoSuchUpload
from tests.support.memory_s3 import MemoryS3
from tests.support.repair_sink import KEYS, LOG, WRITES, RepairFixture
from tests.support.synthetic_log import SyntheticLog

FIRST, SECOND, THIRD = KEYS


class Killed(BaseException):
    """The process is killed at this request."""


def delete(fixture: RepairFixture) -> None:
    fixture.sink.s3.delete([FIRST])


def truncate(fixture: RepairFixture) -> None:
    fixture.sink.s3.put(FIRST, fixture.right[FIRST][:-7])


def empty(fixture: RepairFixture) -> None:
    fixture.sink.s3.put(FIRST, b"")


def overwrite(fixture: RepairFixture) -> None:
    fixture.sink.s3.put(FIRST, fixture.right[FIRST][::-1])


def overwrite_with_an_older_object(fixture: RepairFixture) -> None:
    fixture.sink.s3.put(FIRST, fixture.right[SECOND])


DAMAGES: list[Callable[[RepairFixture], None]] = [delete, truncate, empty, overwrite, overwrite_with_an_older_object]


@pytest.fixture(params=["repaired", "versioned"])
def sink(request: pytest.FixtureRequest) -> RepairFixture:
    fixture: RepairFixture = request.getfixturevalue(request.param)
    return fixture


def test_a_restored_object_gets_the_tags_with_its_offsets(sink: RepairFixture) -> None:
    sink.sink.s3.has_offset_tags = True
    delete(sink)
    sink.repair()
    assert sink.sink.s3.tags == {FIRST: (0, 4, 5)}


@pytest.mark.parametrize("damage", DAMAGES)
def test_an_object_gets_its_recorded_bytes_again(sink: RepairFixture, damage: Callable[[RepairFixture], None]) -> None:
    damage(sink)
    assert sink.findings() != []
    report = sink.repair()
    (restored,) = report.objects
    source = Source.VERSION if sink.sink.s3.keeps_history else Source.KAFKA
    assert (restored.key, restored.outcome, restored.source) == (FIRST, RepairOutcome.RESTORED, source)
    assert report.exit_code == 0
    assert sink.objects() == sink.right
    assert sink.findings() == []
    assert sink.sink.s3.uploads == {}


@pytest.mark.parametrize("damage", DAMAGES[1:])
def test_the_damaged_bytes_are_kept_until_they_are_discarded(
    sink: RepairFixture, damage: Callable[[RepairFixture], None]
) -> None:
    damage(sink)
    damaged = sink.objects()[FIRST]
    (restored,) = sink.repair().objects
    assert restored.kept is not None
    assert sink.below_ledger("repair/") == {restored.kept: damaged}
    s3: Any = sink.sink.s3
    assert discard_damaged(s3, sink.sink.root, dry_run=True) == (1, len(damaged))
    assert discard_damaged(s3, sink.sink.root, [SECOND]) == (0, 0)
    assert sink.below_ledger("repair/") == {restored.kept: damaged}
    assert discard_damaged(s3, sink.sink.root, [FIRST]) == (1, len(damaged))
    assert sink.below_ledger("repair/") == {}


def writes_of(fixture: RepairFixture, run: Callable[[], RepairReport]) -> list[tuple[str, str]]:
    """The writing requests of a call."""
    requests: list[tuple[str, str]] = []
    with fixture.sink.faults(lambda call, key: requests.append((call, key))):
        run()
    return [(call, key) for call, key in requests if call in WRITES]


def test_an_undamaged_bucket_is_not_written_to(sink: RepairFixture) -> None:
    assert writes_of(sink, sink.repair) == []
    assert writes_of(sink, lambda: sink.repair(KEYS)) == []


def test_right_objects_beside_a_damaged_one_are_not_written(sink: RepairFixture) -> None:
    truncate(sink)
    keys = {key for _, key in writes_of(sink, sink.repair)}
    assert keys.isdisjoint({SECOND, THIRD})


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_dry_run_names_the_source_and_writes_nothing(
    sink: RepairFixture, damage: Callable[[RepairFixture], None]
) -> None:
    damage(sink)
    assert writes_of(sink, lambda: sink.repair(dry_run=True)) == []
    (planned,) = sink.repair(dry_run=True).objects
    source = Source.VERSION if sink.sink.s3.keeps_history else Source.KAFKA
    assert (planned.outcome, planned.source) == (RepairOutcome.RESTORABLE, source)


def test_only_the_named_object_is_repaired(sink: RepairFixture) -> None:
    sink.sink.s3.delete([FIRST, SECOND])
    (restored,) = sink.repair([SECOND]).objects
    assert restored.key == SECOND
    assert FIRST not in sink.objects()


def test_the_bytes_of_a_named_object_are_compared_although_the_store_reports_the_right_checksum(
    repaired: RepairFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = repaired.sink.s3.head(FIRST)
    repaired.sink.s3.objects[FIRST].body = repaired.right[FIRST][::-1]
    head = MemoryS3.head
    damaged = repaired.sink.s3.objects[FIRST]

    def unaware(self: MemoryS3, key: str) -> Any:
        return right if self.objects.get(key) is damaged else head(self, key)

    monkeypatch.setattr(MemoryS3, "head", unaware)
    assert repaired.repair().objects == ()
    (restored,) = repaired.repair([FIRST]).objects
    assert restored.outcome is RepairOutcome.RESTORED
    assert repaired.objects() == repaired.right


def test_a_key_that_the_ledger_does_not_list_is_rejected(repaired: RepairFixture) -> None:
    with pytest.raises(ConfigurationError, match="--key topics/log/other: the ledger of this sink lists no visible"):
        repaired.repair(["topics/log/other"])


# -- what cannot be restored -------------------------------------------------------------------------------------------


def test_an_object_whose_records_kafka_has_deleted_is_reported_and_nothing_is_changed(repaired: RepairFixture) -> None:
    truncate(repaired)
    before = repaired.saved()
    report = repaired.repair(log=SyntheticLog(records=12, starts_at=3))
    (left,) = report.objects
    assert (left.outcome, report.exit_code) == (RepairOutcome.NOT_RESTORABLE, 5)
    assert "the records from there to offset 4 are left, those at offsets 0 to 2 would be lost" in left.message
    repaired.restore(before)
    assert repaired.objects()[FIRST] == repaired.right[FIRST][:-7]


def test_an_object_with_compacted_records_is_reported_and_the_others_are_restored(repaired: RepairFixture) -> None:
    repaired.sink.s3.delete(KEYS)
    report = repaired.repair(log=SyntheticLog(records=12, gaps=frozenset({6, 7})))
    assert [o.outcome for o in report.objects] == [
        RepairOutcome.RESTORED,
        RepairOutcome.NOT_RESTORABLE,
        RepairOutcome.RESTORED,
    ]
    assert "Kafka holds 3 of its 5 records: 2 would be lost" in report.objects[1].message
    assert repaired.objects() == {key: body for key, body in repaired.right.items() if key != SECOND}
    assert repaired.sink.s3.uploads == {}


def test_a_topic_that_was_created_again_restores_nothing(repaired: RepairFixture) -> None:
    repaired.sink.s3.delete([FIRST])
    report = repaired.repair(log=SyntheticLog(records=12, topic_id="another"))
    assert "the topic was deleted or created again" in report.objects[0].message
    assert report.exit_code == 5


def test_records_of_another_topic_with_the_same_offsets_replace_nothing(repaired: RepairFixture) -> None:
    repaired.sink.s3.delete([FIRST])
    report = repaired.repair(log=SyntheticLog(records=12, value_bytes=90))
    assert "writes other bytes for them" in report.objects[0].message
    assert FIRST not in repaired.objects()
    assert repaired.sink.s3.uploads == {}


def test_an_older_version_restores_what_kafka_no_longer_holds(versioned: RepairFixture) -> None:
    overwrite(versioned)
    report = versioned.repair(log=SyntheticLog(records=12, starts_at=12))
    assert [o.source for o in report.objects] == [Source.VERSION]
    assert versioned.objects() == versioned.right


def test_objects_that_a_lifecycle_rule_has_removed_are_left_alone(repaired: RepairFixture) -> None:
    repaired.sink.s3.delete([FIRST])
    report = repaired.repair(removed_before=1 << 50)
    assert (report.objects, report.removed) == ((), 1)
    assert FIRST not in repaired.objects()


# -- kills, and two commands at once -----------------------------------------------------------------------------------


def requests_of(fixture: RepairFixture) -> int:
    """The number of requests of a repair."""
    count = 0

    def counted(call: str, key: str) -> None:
        nonlocal count
        count += 1

    with fixture.sink.faults(counted):
        fixture.repair()
    return count


def at_each_request(fixture: RepairFixture, act: Callable[[], None]) -> Iterator[int]:
    """Runs a repair for each of its requests; `act` is called before this request. Each starts with the same bucket."""
    before = fixture.saved()
    total = requests_of(fixture)
    for number in range(total):
        fixture.restore(before)
        seen = 0

        def fault(call: str, key: str, number: int = number) -> None:
            nonlocal seen
            seen += 1
            if seen == number + 1:
                act()

        with fixture.sink.faults(fault):
            yield number


@pytest.mark.parametrize("damage", [delete, truncate, overwrite_with_an_older_object])
def test_a_command_killed_at_any_request_can_be_repeated(
    sink: RepairFixture, damage: Callable[[RepairFixture], None]
) -> None:
    damage(sink)

    def kill() -> None:
        raise Killed

    tried = 0
    for _ in at_each_request(sink, kill):
        tried += 1
        with pytest.raises(Killed):
            sink.repair()
        with sink.sink.faults(lambda call, key: None):
            assert {**sink.objects(), FIRST: b""} == {**sink.right, FIRST: b""}
            sink.repair()
            assert sink.objects() == sink.right
            assert sink.findings() == []
            assert sink.sink.s3.uploads == {}
    assert tried > 20


def test_after_a_killed_command_the_next_one_puts_the_tags_with_offsets(sink: RepairFixture) -> None:
    sink.sink.s3.has_offset_tags = True
    delete(sink)
    killed_before_tags = False

    def kill() -> None:
        raise Killed

    for _ in at_each_request(sink, kill):
        sink.sink.s3.tags.clear()
        with pytest.raises(Killed):
            sink.repair()
        killed_before_tags |= FIRST in sink.sink.s3.objects and FIRST not in sink.sink.s3.tags
        with sink.sink.faults(lambda call, key: None):
            sink.repair()
        assert sink.sink.s3.tags == {FIRST: (0, 4, 5)}
    assert killed_before_tags


@pytest.mark.parametrize("damage", [delete, truncate])
def test_two_commands_at_once_leave_the_recorded_bytes(
    sink: RepairFixture, damage: Callable[[RepairFixture], None]
) -> None:
    damage(sink)

    def other() -> None:
        with sink.sink.faults(lambda call, key: None):
            assert sink.repair().exit_code == 0

    for _ in at_each_request(sink, other):
        assert sink.repair().exit_code == 0
        assert sink.objects() == sink.right
        assert sink.sink.s3.uploads == {}


def test_an_object_of_another_program_is_not_replaced_by_a_completion(repaired: RepairFixture) -> None:
    truncate(repaired)
    numbers = count()

    def replace_always(call: str, key: str) -> None:
        if (call, key) == ("complete", FIRST):
            repaired.sink.s3.fault = lambda *_: None
            repaired.sink.s3.put(FIRST, f"of another program {next(numbers)}".encode())
            repaired.sink.s3.fault = replace_always

    with repaired.sink.faults(replace_always), pytest.raises(TransientError, match="5 times in a row"):
        repaired.repair()
    assert repaired.objects()[FIRST].startswith(b"of another program")
    assert repaired.sink.s3.uploads == {}


def test_an_upload_that_a_drivers_clean_up_aborts_is_started_again(sink: RepairFixture) -> None:
    delete(sink)
    aborted: list[str] = []

    def once(call: str, key: str) -> None:
        if (call, key) == ("upload_part", FIRST) and not aborted:
            aborted.extend(sink.sink.s3.uploads)
            sink.sink.s3.uploads.clear()

    with sink.sink.faults(once):
        assert sink.repair().exit_code == 0
    assert aborted
    assert sink.objects() == sink.right


def test_after_an_offset_reset_nothing_is_completed(repaired: RepairFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    delete(repaired)
    catch_up = Ledger.catch_up
    monkeypatch.setattr(Ledger, "catch_up", lambda self, state: replace(catch_up(self, state), generation=2))
    with pytest.raises(TransientError, match="an offset reset has started generation 2"):
        repaired.repair()
    assert FIRST not in repaired.objects()


def test_a_store_that_ignores_if_match_replaces_nothing(
    repaired: RepairFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete = MemoryS3.complete

    def lenient(self: MemoryS3, key: str, *given: Any, if_match: str | None = None) -> str:
        return complete(self, key, *given, if_match=if_match and self.objects[key].etag)

    monkeypatch.setattr(MemoryS3, "complete", lenient)
    truncate(repaired)
    (left,) = repaired.repair().objects
    assert "the store ignores If-Match" in left.message
    assert repaired.objects()[FIRST] == repaired.right[FIRST][:-7]
    repaired.sink.s3.delete([FIRST])
    assert repaired.repair().exit_code == 0
    assert repaired.objects() == repaired.right


def test_an_upload_that_is_always_gone_is_a_transient_error(repaired: RepairFixture) -> None:
    delete(repaired)

    def gone(call: str, key: str) -> None:
        if (call, key) == ("upload_part", FIRST):
            raise NoSuchUpload(key, key)

    with repaired.sink.faults(gone), pytest.raises(TransientError, match="aborted its upload, 5 times in a row"):
        repaired.repair()
    assert repaired.repair(log=LOG).exit_code == 0
    assert repaired.sink.s3.uploads == {}


def test_a_completion_that_the_store_rejects_each_time_ends_with_its_error(repaired: RepairFixture) -> None:
    delete(repaired)

    def rejected(call: str, key: str) -> None:
        if (call, key) == ("complete", FIRST):
            raise ConfigurationError("the store rejected the request: InvalidRequest")

    with repaired.sink.faults(rejected), pytest.raises(ConfigurationError, match="InvalidRequest"):
        repaired.repair()
    assert repaired.sink.s3.uploads == {}
    assert repaired.repair().exit_code == 0


def test_a_completion_without_permission_ends_at_once(repaired: RepairFixture) -> None:
    delete(repaired)
    completions: list[str] = []

    def denied(call: str, key: str) -> None:
        if (call, key) == ("complete", FIRST):
            completions.append(key)
            raise AccessDenied("s3:PutObject is not allowed")

    with repaired.sink.faults(denied), pytest.raises(AccessDenied):
        repaired.repair()
    assert len(completions) == 1
