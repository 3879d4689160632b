"""Tables of which objects do not exist any more when they are registered."""

from __future__ import annotations

import re

import pytest
from pyiceberg.table.update import SetPropertiesUpdate

from sink_job.api.errors import AccessDenied, TableNotRegistered, TablePositionMissing, TransientError
from sink_job.s3 import NotFound
from sink_job.tables.catalogs import CommitUnknown
from sink_job.tables.files import ObjectGone
from sink_job.tables.missing import skipped
from sink_job.tables.plan import Acceptance, Request
from sink_job.tables.position import position_in, position_property
from sink_job.tables.registrations.topic_table import RegistrationOutcome
from tests.support.table_sink import BEGIN, NAME, SINK_ID, TableSink
from tests.unit.tables.test_auditor import audited

CONTINUE = Request()


@pytest.fixture
def skipping(table_sink: TableSink) -> TableSink:
    """A sink whose tables leave missing objects out."""
    table_sink.options["skips_missing"] = True
    return table_sink


def vanish(sink: TableSink, *numbers: int) -> dict[str, object]:
    """Removes objects by their numbers in the order of keys; returns what was removed."""
    keys = sink.objects()
    return {keys[each]: sink.s3.objects.pop(keys[each]) for each in numbers}


def counts(outcome: RegistrationOutcome) -> tuple[int, int, int]:
    """Objects that were added and skipped, and all that the table lacks."""
    total = 0 if outcome.position is None or outcome.position.skipped is None else outcome.position.skipped.objects
    return outcome.objects, outcome.skipped, total


def expect_proof(sink: TableSink, count: int) -> None:
    """The table has each object that exists once, and verify --table knows the others."""
    assert sink.files() == list(sink.objects())
    found = audited(sink)
    assert (list(found.findings), found.skipped) == ([], count)


# -- skipping --------------------------------------------------------------------------------------------------------


def test_an_object_that_does_not_exist_is_left_out_and_counted(skipping: TableSink) -> None:
    skipping.write(40)
    vanish(skipping, 1, 2)
    assert counts(skipping.register()) == (2, 2, 2)
    expect_proof(skipping, 2)
    skipping.write(60)
    assert counts(skipping.register(CONTINUE)) == (2, 0, 2)
    skipping.write(80)
    vanish(skipping, 4)
    assert counts(skipping.register(CONTINUE)) == (1, 1, 3)
    expect_proof(skipping, 3)


def test_the_position_moves_when_all_new_objects_are_gone(skipping: TableSink) -> None:
    skipping.write(20)
    before = skipping.register()
    skipping.write(40)
    vanish(skipping, 2, 3)
    outcome = skipping.register(CONTINUE)
    assert before.position is not None
    assert outcome.position is not None
    assert outcome.position.record > before.position.record
    assert outcome.position.snapshot == skipping.table().metadata.current_snapshot_id != before.position.snapshot
    assert counts(skipping.register(CONTINUE)) == (0, 0, 2)
    expect_proof(skipping, 2)


def test_a_table_is_created_with_the_first_object_that_exists(skipping: TableSink) -> None:
    for records in (10, 20, 30):
        skipping.write(records)
    gone = vanish(skipping, 0, 1, 2)
    assert counts(skipping.register(limit=1)) == (0, 3, 0)
    assert skipping.catalog.load(NAME) is None
    skipping.write(40)
    outcome = skipping.register(limit=1)
    assert (outcome.created, counts(outcome)) == (True, (1, 3, 3))
    skipping.s3.objects.update(gone)  # type: ignore[arg-type]
    assert len(audited(skipping).findings) == 0


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_many_missing_objects_are_proved_without_their_keys(
    skipping: TableSink, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    monkeypatch.setattr(skipped, "MAX_KEYS", 1)
    for records in (20, 40, 60, 80):
        skipping.write(records)
    vanish(skipping, 0, 2, 3, 7)
    assert counts(skipping.register(limit=limit)) == (4, 4, 4)
    expect_proof(skipping, 4)


# -- what is not skipped ---------------------------------------------------------------------------------------------


def test_without_skip_the_key_is_in_the_error(table_sink: TableSink) -> None:
    table_sink.write(20)
    (key,) = vanish(table_sink, 1)
    with pytest.raises(ObjectGone, match=f"{re.escape(key)} does not exist any more.*onMissing: Skip"):
        table_sink.register()


def test_an_object_that_differs_from_the_ledger_is_not_skipped(skipping: TableSink) -> None:
    skipping.write(20)
    stored = skipping.s3.objects[skipping.objects()[1]]
    whole = stored.body
    for body in (b"", whole[:-9], b"x" * len(whole)):
        stored.body = body
        with pytest.raises(TableNotRegistered, match="is not as the ledger says"):
            skipping.register()
    assert skipping.catalog.load(NAME) is None


@pytest.mark.parametrize(
    "reply",
    [AccessDenied("403"), TransientError("503"), NotFound("416", code="InvalidRange"), NotFound("404", code="404")],
    ids=["403", "503", "416", "404 of a proxy"],
)
def test_another_reply_than_that_of_a_missing_key_skips_nothing(skipping: TableSink, reply: Exception) -> None:
    skipping.write(20)
    key = skipping.objects()[1]

    def fail(call: str, at: str) -> None:
        if call == "get_range" and at == key:
            raise reply

    skipping.s3.fault = fail
    with pytest.raises((TableNotRegistered, AccessDenied, TransientError)):
        skipping.register()
    assert skipping.catalog.load(NAME) is None


def test_an_object_that_is_lost_after_its_registration_is_found_among_skipped_ones(skipping: TableSink) -> None:
    """With the keys of all skipped objects the finding is of the lost one alone."""
    skipping.write(40)
    vanish(skipping, 0, 1)
    skipping.register()
    lost = skipping.objects()[0]
    _remove_file(skipping, lost)
    assert [each.path.removeprefix("s3://archive/") for each in audited(skipping).findings] == [lost]
    name = skipped.skipped_property(SINK_ID)
    skipping.iceberg.commit_table(skipping.table(), (), (SetPropertiesUpdate(updates={name: "[1"}),))
    findings = audited(skipping).findings
    assert len(findings) == 3
    assert "was registered without 2 objects, and it lacks others, too" in findings[0].message


def _remove_file(sink: TableSink, key: str) -> None:
    table = sink.table()
    snapshot = table.current_snapshot()
    assert snapshot is not None
    with table.transaction() as transaction, transaction.update_snapshot().overwrite() as overwrite:
        for manifest in snapshot.manifests(table.io):
            for entry in manifest.fetch_manifest_entry(table.io):
                if entry.data_file.file_path.endswith(key):
                    overwrite.delete_data_file(entry.data_file)


# -- kills, lost replies, changes by others --------------------------------------------------------------------------


@pytest.mark.parametrize("effect", range(6))
def test_a_registration_that_is_killed_at_any_effect_counts_each_missing_object_once(
    skipping: TableSink, effect: int
) -> None:
    skipping.write(40)
    vanish(skipping, 1)
    with skipping.killed_at(effect):
        skipping.register()
    skipping.register()
    expect_proof(skipping, 1)
    skipping.write(80)
    vanish(skipping, 3, 4, 5, 6)  # all that are new
    with skipping.killed_at(effect):
        skipping.register(CONTINUE)
    skipping.register(CONTINUE)
    expect_proof(skipping, 5)
    memory, position = skipping.memory(), position_in(skipping.table().properties, SINK_ID)
    assert memory is not None
    assert position is not None
    assert memory.skipped == position.skipped


def test_a_delayed_commit_without_files_has_no_effect(skipping: TableSink) -> None:
    """It moves the position like any other one, so only one of both can be applied."""
    skipping.write(20)
    skipping.register()
    skipping.write(40)
    vanish(skipping, 2, 3)
    skipping.catalog.holds = True
    with pytest.raises(TransientError):
        skipping.register(CONTINUE)
    skipping.catalog.holds = False
    skipping.write(60)
    skipping.register(CONTINUE)
    for land in skipping.catalog.held:
        with pytest.raises(Exception, match=r"CommitRejected|Requirement failed|updated"):
            land()
    expect_proof(skipping, 2)


def test_a_lost_reply_counts_nothing_twice(skipping: TableSink) -> None:
    skipping.write(40)
    vanish(skipping, 1)

    def lose() -> None:
        skipping.catalog.after = lambda: None
        raise CommitUnknown("the reply was lost")

    skipping.catalog.after = lose
    skipping.register()
    expect_proof(skipping, 1)


def test_what_was_skipped_is_known_after_the_position_was_removed(skipping: TableSink) -> None:
    skipping.write(40)
    vanish(skipping, 1)
    skipping.register()
    with skipping.table().transaction() as transaction:
        transaction.remove_properties(position_property(SINK_ID))
    skipping.write(60)
    with pytest.raises(TablePositionMissing):
        skipping.register(CONTINUE)
    skipping.register(Request(accepted=frozenset({Acceptance.POSITION_MISSING})))
    expect_proof(skipping, 1)


# -- objects that exist again ----------------------------------------------------------------------------------------


@pytest.fixture
def moved_back(skipping: TableSink, monkeypatch: pytest.MonkeyPatch) -> TableSink:
    """A table without four objects, two of which exist again, and objects that are new."""
    monkeypatch.setattr(skipped, "MAX_KEYS", 2)
    for records in (20, 40, 60):
        skipping.write(records)
    gone = vanish(skipping, 0, 1, 3, 5)
    skipping.register()
    keys = list(gone)
    skipping.s3.objects.update({key: gone[key] for key in (keys[1], keys[3])})  # type: ignore[misc]
    skipping.write(80)
    return skipping


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_objects_that_exist_again_are_added_from_the_beginning(moved_back: TableSink, limit: int) -> None:
    assert counts(moved_back.register(BEGIN, limit=limit)) == (4, 0, 2)
    expect_proof(moved_back, 2)
    assert moved_back.register(BEGIN).commits == 0
    assert moved_back.memory() is not None


def test_without_from_beginning_they_stay_out(moved_back: TableSink) -> None:
    assert counts(moved_back.register(CONTINUE)) == (2, 0, 4)
    assert len(moved_back.files()) == 4
    assert list(audited(moved_back).findings) == []


def test_a_registration_from_the_beginning_that_is_killed_adds_nothing_twice(moved_back: TableSink) -> None:
    for effect in range(6):
        with moved_back.killed_at(effect):
            moved_back.register(BEGIN, limit=1)
    moved_back.register(BEGIN)
    expect_proof(moved_back, 2)


def test_a_delayed_addition_of_returned_objects_has_no_effect(moved_back: TableSink) -> None:
    moved_back.register(CONTINUE)
    moved_back.catalog.holds = True
    with pytest.raises(TransientError):
        moved_back.register(BEGIN)
    moved_back.catalog.holds = False
    moved_back.register(BEGIN)
    for land in moved_back.catalog.held:
        with pytest.raises(Exception, match=r"CommitRejected|Requirement failed|updated"):
            land()
    expect_proof(moved_back, 2)


def test_a_registration_that_has_read_less_of_the_ledger_adds_none_of_them(moved_back: TableSink) -> None:
    """Another one has moved the position meanwhile, and remembered it."""
    older = moved_back.registration()
    moved_back.write(100)
    moved_back.register(CONTINUE)
    assert older.run(BEGIN).commits == 0
    moved_back.register(BEGIN)
    expect_proof(moved_back, 2)


def test_they_stay_out_where_other_files_are_missing_too(moved_back: TableSink) -> None:
    """As after a compaction: a missing file may be in the table in another form."""
    _remove_file(moved_back, moved_back.files()[0])
    with pytest.raises(TableNotRegistered, match="4 objects were skipped, and it is not certain which"):
        moved_back.register(BEGIN)
    assert moved_back.register(CONTINUE).objects == 2
