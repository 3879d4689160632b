"""Objects that are written again from Kafka: the same records or none, and what is missing."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import msgspec
import pytest

from sink_job.ledger.state import ClosedObject, OpenObject
from sink_job.tasks.rebuild import RebuildResult
from tests.support.synthetic_log import SyntheticLog
from tests.unit.writer.tasks import Tasks


@dataclass(frozen=True)
class MovedLog(SyntheticLog):
    """A log whose records at the offsets `moved` have another path than they had."""

    moved: frozenset[int] = field(default=frozenset())

    def value(self, partition: int, offset: int) -> bytes:
        return super().value(partition, offset + 1 if offset in self.moved else offset)


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> Tasks:
    """Two paths, and an object for each five records of both."""
    return Tasks(monkeypatch, MovedLog(records=30, paths=2), paths=True)


def written(tasks: Tasks, end: int) -> tuple[tuple[ClosedObject, ...], tuple[OpenObject, ...]]:
    """The closed and the open objects of the records up to `end`, whose uploads and staged bytes are gone."""
    result = tasks.write(end)
    tasks.memory.uploads.clear()
    tasks.memory.objects.clear()
    return result.closed, result.state.open


def kept(o: ClosedObject) -> ClosedObject:
    """What a rebuild does not change."""
    return msgspec.structs.replace(o, upload="", parts=())


def test_a_closed_object_has_the_same_records_under_another_upload(tasks: Tasks) -> None:
    closed, _ = written(tasks, 10)
    assert [(o.path, o.offsets.count) for o in closed] == [
        ("kind=k0", 3), ("kind=k1", 2), ("kind=k1", 3), ("kind=k0", 2),
    ]  # fmt: skip
    result = tasks.rebuild(closed=closed)
    assert [kept(o) for o in result.closed] == [kept(o) for o in closed]
    assert {o.upload for o in result.closed} == set(tasks.memory.uploads)
    assert [tasks.content(o) for o in result.closed] == [[0, 2, 4], [1, 3], [5, 7, 9], [6, 8]]
    assert result.missing == ()


def test_one_object_is_rebuilt_without_the_others_of_its_offsets(tasks: Tasks) -> None:
    closed, _ = written(tasks, 10)
    (rebuilt,) = tasks.rebuild(closed=closed[1:2]).closed
    assert tasks.content(rebuilt) == [1, 3]


def test_an_open_object_is_staged_again_and_continues(tasks: Tasks) -> None:
    _, open_ = written(tasks, 8)
    assert [(o.path, o.offsets.count) for o in open_] == [("kind=k1", 2), ("kind=k0", 1)]
    result = tasks.rebuild(open=open_)
    assert [(o.state, o.offsets) for o in result.open] == [(o.state, o.offsets) for o in open_]
    assert all(extent.name in tasks.memory.objects for o in result.open for extent in o.staged)
    tasks.state = msgspec.structs.replace(tasks.state, open=result.open)
    assert [tasks.content(o) for o in tasks.write(10).closed] == [[5, 7, 9], [6, 8]]


def without(tasks: Tasks, start: int) -> None:
    """Kafka has deleted the records before `start`."""
    tasks.log = replace(tasks.log, starts_at=start)


def counts(result: RebuildResult) -> list[tuple[str, int, int, int, bool]]:
    """Path, selected records, expected ones, absent offsets, and whether it is a loss, of each incomplete object."""
    return [(m.path, m.found.count, m.expected.count, m.absent, m.is_loss) for m in result.missing]


def test_without_a_record_no_object_is_rebuilt(tasks: Tasks) -> None:
    closed, open_ = written(tasks, 8)
    without(tasks, 3)
    result = tasks.rebuild(closed=closed, open=open_)
    assert (result.closed, result.open) == ((), ())
    assert counts(result) == [("kind=k0", 1, 3, 3, True), ("kind=k1", 1, 2, 2, True)]


def test_partial_objects_have_the_remaining_records_under_the_key_of_the_first_of_them(tasks: Tasks) -> None:
    closed, _ = written(tasks, 5)
    without(tasks, 3)
    result = tasks.rebuild(closed=closed, partial=True)
    assert [tasks.content(o) for o in result.closed] == [[4], [3]]
    assert [(o.first, o.last, o.offsets.count) for o in result.closed] == [(4, 4, 1), (3, 3, 1)]
    assert [o.key.rsplit("+", 1)[1] for o in result.closed] == ["0000000004.json", "0000000003.json"]
    assert len(result.missing) == 2


def test_a_partial_object_without_any_record_left_is_not_rebuilt(tasks: Tasks) -> None:
    closed, open_ = written(tasks, 7)
    without(tasks, 6)
    result = tasks.rebuild(closed=closed, open=open_, partial=True)
    assert result.closed == ()
    assert [(o.path, o.first, o.count) for o in result.open] == [("kind=k0", 6, 1)]
    assert [(path, found) for path, found, *_ in counts(result)] == [("kind=k0", 0), ("kind=k1", 0), ("kind=k1", 0)]


@pytest.mark.parametrize("partial", [False, True])
def test_other_records_at_the_offsets_are_no_loss_and_nothing_is_rebuilt(tasks: Tasks, partial: bool) -> None:
    closed, _ = written(tasks, 5)
    tasks.log = MovedLog(records=30, paths=2, moved=frozenset({2}))
    result = tasks.rebuild(closed=closed, partial=partial)
    assert result.closed == ()
    assert counts(result)[0] == ("kind=k0", 2, 3, 0, False)


def test_a_record_more_than_before_is_an_error_too(tasks: Tasks) -> None:
    closed, _ = written(tasks, 5)
    tasks.log = MovedLog(records=30, paths=2, moved=frozenset({1}))
    result = tasks.rebuild(closed=closed, partial=True)
    assert result.closed == ()
    assert counts(result) == [("kind=k0", 4, 3, 0, False), ("kind=k1", 1, 2, 0, False)]


def test_libraries_that_select_records_are_named_if_they_differ(tasks: Tasks) -> None:
    closed, _ = written(tasks, 5)
    without(tasks, 1)
    (same,) = tasks.rebuild(closed=closed[:1]).missing
    tasks.object_settings = tasks.object_settings.model_copy(update={"rules": ("a library of last year",)})
    (other,) = tasks.rebuild(closed=closed[:1]).missing
    assert (same.other_rules, same.is_loss) == ((), True)
    assert other.other_rules[0] == "a library of last year"
    assert not other.is_loss


def test_an_upload_that_disappears_during_the_rebuild_is_reported_with_all_that_were_started(tasks: Tasks) -> None:
    closed, _ = written(tasks, 10)

    def vanish(call: str, key: str) -> None:
        if call == "upload_part" and key == closed[2].key:
            tasks.memory.uploads = {i: u for i, u in tasks.memory.uploads.items() if u.key != key}

    tasks.memory.fault = vanish
    result = tasks.rebuild(closed=closed)
    assert result.lost is not None
    assert (result.closed, result.missing) == ((), ())
    assert {key for key, _ in result.started_uploads} == {o.key for o in closed}
