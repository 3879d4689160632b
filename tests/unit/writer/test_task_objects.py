"""The objects of a topic-partition in one task: those of the ledger, and those that the task opens and closes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
import pytest

from sink_job.formats.spill_buffer import SpillPool
from sink_job.ledger.state import OpenObject, SourceRange
from sink_job.rotation.types import ObjectId, OpenObjectState
from sink_job.writer.partition_writer import WriteTask
from sink_job.writer.task_objects import TaskObjects
from tests.support.synthetic_log import SyntheticLog
from tests.unit.writer.tasks import TP, Tasks, rows_of

A, B = ObjectId("a"), ObjectId("b")


@pytest.fixture
def tasks(monkeypatch: pytest.MonkeyPatch) -> Tasks:
    return Tasks(monkeypatch, SyntheticLog())


class OneTask:
    """The objects of one task attempt, and the attempt."""

    def __init__(self, tasks: Tasks, spill: SpillPool, inherited: Iterable[OpenObject], **parameters: int) -> None:
        self.attempt = WriteTask(tasks.parameters(**parameters))
        self.objects = TaskObjects(self.attempt, TP, spill, inherited)
        self.calls: list[tuple[str, str]] = []
        tasks.memory.fault = lambda call, key: self.calls.append((call, key))

    def stage(self, *states: OpenObjectState) -> tuple[OpenObject, ...]:
        staged = self.objects.stage({state.id: state for state in states}, 0, ())
        self.attempt.close()
        return staged


@pytest.fixture
def spill() -> Iterator[SpillPool]:
    with SpillPool(1 << 20) as pool:
        yield pool


def state(path: str, first: int, last: int) -> OpenObjectState:
    count = last - first + 1
    return OpenObjectState(path=path, first=first, last=last, count=count, size=count, opened_at=0)


def inherited(tasks: Tasks, spill: SpillPool) -> OpenObject:
    """An object that an earlier task has left open, with the bytes `xy`."""
    one = OneTask(tasks, spill, ())
    one.objects.append(A, rows_of([b"x", b"y"]), ())
    (o,) = one.stage(state("a", 0, 1))
    return o


def test_an_object_that_gets_no_rows_stays_as_it_is_without_a_request(tasks: Tasks, spill: SpillPool) -> None:
    before = inherited(tasks, spill)
    one = OneTask(tasks, spill, [before])
    assert one.stage(before.state) == (before,)
    assert one.calls == []
    assert one.objects.uploaded() == (0, 0)
    assert one.objects.started_uploads() == ()


def test_an_object_of_the_ledger_is_closed_with_its_staged_bytes(tasks: Tasks, spill: SpillPool) -> None:
    before = inherited(tasks, spill)
    one = OneTask(tasks, spill, [before])
    one.objects.close([before.state])
    (closed,) = one.objects.closed_objects(0, ())
    (part,) = closed.parts
    assert tasks.memory.uploads[closed.upload].parts == {part.number: b"xy"}
    assert (closed.first, closed.last, closed.bytes, closed.crc) == (0, 1, 2, part.crc)
    assert (closed.offsets, closed.sources) == (before.offsets, before.sources)
    assert one.objects.started_uploads() == ((closed.key, closed.upload),)
    assert one.stage() == ()


def test_an_object_keeps_the_key_of_its_first_offset_in_each_task(tasks: Tasks, spill: SpillPool) -> None:
    before = inherited(tasks, spill)
    one = OneTask(tasks, spill, [before])
    one.objects.append(A, rows_of([b"z"], first=2), ())
    one.objects.close([state("a", 0, 2)])
    (closed,) = one.objects.closed_objects(0, ())
    assert closed.key.endswith("log+0+0000000000.json")
    assert closed.sources == (SourceRange(0, 3, 0),)


def test_a_path_that_opens_again_after_a_close_is_another_object(tasks: Tasks, spill: SpillPool) -> None:
    one = OneTask(tasks, spill, ())
    one.objects.append(A, rows_of([b"x"]), ())
    one.objects.close([state("a", 0, 0)])
    one.objects.append(A, rows_of([b"y"], first=1), ())
    one.objects.close([state("a", 1, 1)])
    closed = one.objects.closed_objects(0, ())
    assert [o.key.rsplit("+", 1)[1] for o in closed] == ["0000000000.json", "0000000001.json"]
    assert len({o.upload for o in closed}) == 2
    assert one.objects.uploaded() == (2, 2)


def test_closed_objects_are_in_the_order_of_closing(tasks: Tasks, spill: SpillPool) -> None:
    one = OneTask(tasks, spill, ())
    one.objects.append(A, rows_of([b"x"]), ())
    one.objects.append(B, rows_of([b"y"], first=1), ())
    one.objects.close([state("b", 1, 1), state("a", 0, 0)])
    assert [o.path for o in one.objects.closed_objects(0, ())] == ["b", "a"]


def test_encoded_sizes_are_those_of_all_open_objects(tasks: Tasks, spill: SpillPool) -> None:
    before = inherited(tasks, spill)
    one = OneTask(tasks, spill, [before])
    one.objects.append(B, rows_of([b"123"], first=2), ())
    sizes = one.objects.encoded()
    assert {id_: each.blocks for id_, each in sizes.items()} == {A: 2, B: 3}
    one.objects.append(A, rows_of([b"4567"], first=3), ())
    assert one.objects.encoded()[A].blocks == 6
    one.objects.close([state("b", 2, 2)])
    assert one.objects.encoded().keys() == {A}


def test_an_object_of_other_settings_gets_no_rows(tasks: Tasks, spill: SpillPool) -> None:
    before = inherited(tasks, spill)
    one = OneTask(tasks, spill, [before], settings_record=2)
    with pytest.raises(AssertionError, match="written under one number of settings"):
        one.objects.append(A, rows_of([b"z"], first=2), ())


def test_records_that_the_rotation_did_not_count_are_noticed(tasks: Tasks, spill: SpillPool) -> None:
    one = OneTask(tasks, spill, ())
    one.objects.append(A, rows_of([b"x", b"y"]), ())
    with pytest.raises(AssertionError, match="the rotation counts the appended records"):
        one.stage(msgspec.structs.replace(state("a", 0, 1), count=3))
