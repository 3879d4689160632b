"""The field ids of Parquet objects in a ledger."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any, cast
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.errors import ConfigurationError, LedgerUnreadable, TransientError
from sink_job.ledger import files as ledger_files
from sink_job.ledger.schemas.field_ids import FieldIdsSeed, LedgerFieldIds, SeedTable, field_ids_key
from sink_job.s3 import Conflict, PreconditionFailed, S3Client
from tests.support.memory_s3 import MemoryS3

ROOT = "topics/_s3sink/flights/"


@pytest.fixture
def s3() -> MemoryS3:
    return MemoryS3()


def process(s3: MemoryS3) -> LedgerFieldIds:
    """The ids as a new process finds them."""
    ids = LedgerFieldIds(cast("S3Client", s3), ROOT)
    ids._cache = {}
    return ids


def stored(s3: MemoryS3, topic: str = "log") -> dict[str, Any]:
    """The ids in the files of a topic, by the first id of each file."""
    prefix = f"{ROOT}field-ids/{topic}/"
    files = {key.removeprefix(prefix): each.body for key, each in sorted(s3.objects.items()) if key.startswith(prefix)}
    return {name: json.loads(body)["ids"] for name, body in files.items()}


def test_the_first_schema_of_a_topic_has_ids_from_1_in_its_order(s3: MemoryS3) -> None:
    process(s3).add("log", ["b", "a", "a.element"])
    assert stored(s3) == {"0000000001.json": {"b": 1, "a": 2, "a.element": 3}}
    assert process(s3).find("log", ["a"]) == {"b": 1, "a": 2, "a.element": 3}


def test_a_new_path_has_the_next_free_id_and_known_ones_keep_theirs(s3: MemoryS3) -> None:
    process(s3).add("log", ["a", "b"])
    process(s3).add("log", ["c", "b", "d"])
    assert stored(s3) == {"0000000001.json": {"a": 1, "b": 2}, "0000000003.json": {"c": 3, "d": 4}}


def test_a_path_that_was_removed_and_added_again_keeps_its_id(s3: MemoryS3) -> None:
    for paths in (["a", "b"], ["b", "c"], ["a", "b", "c"]):
        process(s3).add("log", paths)
    assert process(s3).find("log", ["a", "b", "c"]) == {"a": 1, "b": 2, "c": 3}
    assert len(stored(s3)) == 2


def test_each_topic_has_its_own_ids(s3: MemoryS3) -> None:
    process(s3).add("log", ["a"])
    process(s3).add("other", ["b", "a"])
    assert process(s3).find("other", ["a"])["a"] == 2
    assert process(s3).find("log", ["a"])["a"] == 1


def test_a_process_needs_no_request_for_ids_that_it_knows(s3: MemoryS3) -> None:
    one = process(s3)
    one.add("log", ["a", "b"])
    s3.objects.clear()
    one.add("log", ["b"])
    assert one.find("log", ["a"])["a"] == 1
    assert not s3.objects


def test_ids_that_another_process_added_later_are_found(s3: MemoryS3) -> None:
    one = process(s3)
    one.add("log", ["a"])
    process(s3).add("log", ["b"])
    assert one.find("log", ["b"])["b"] == 2


def test_all_ids_of_a_topic_are_read(s3: MemoryS3) -> None:
    one = process(s3)
    assert one.all("log") == {}
    for path in ("a", "b", "c"):
        process(s3).add("log", [path])
    assert one.all("log") == process(s3).all("log") == {"a": 1, "b": 2, "c": 3}


def test_a_path_without_an_id_is_reported_with_the_missing_file(s3: MemoryS3) -> None:
    process(s3).add("log", ["a"])
    key = field_ids_key(ROOT, "log", 2)
    with pytest.raises(LedgerUnreadable, match=f"{key} cannot be read .it does not exist, and the field b has no id"):
        process(s3).find("log", ["a", "b"])


def test_a_conflict_without_another_file_is_transient(s3: MemoryS3) -> None:
    def fault(call: str, key: str) -> None:
        if call == "put":
            raise Conflict("another put is in progress")

    s3.fault = fault
    with pytest.raises(TransientError, match="another put is in progress"):
        process(s3).add("log", ["a"])


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ({"a": 2}, "its ids do not ascend from 1"),
        ({"a": 1, "b": 3}, "its ids do not ascend from 1"),
        ({}, "its ids do not ascend from 1"),
    ],
)
def test_a_file_with_other_ids_is_not_used(s3: MemoryS3, ids: dict[str, int], message: str) -> None:
    s3.put(field_ids_key(ROOT, "log", 1), json.dumps({"ids": ids, "format": 1}).encode())
    with pytest.raises(LedgerUnreadable, match=message):
        process(s3).find("log", ["a"])


def test_a_file_that_assigns_a_second_id_is_not_used(s3: MemoryS3) -> None:
    process(s3).add("log", ["a"])
    s3.put(field_ids_key(ROOT, "log", 2), b'{"ids": {"a": 2}, "format": 1}')
    with pytest.raises(LedgerUnreadable, match="the field a has another id already"):
        process(s3).find("log", ["a", "b"])


def test_a_file_of_another_format_is_rejected(s3: MemoryS3) -> None:
    s3.put(field_ids_key(ROOT, "log", 1), b'{"ids": {"a": 1}, "format": 2}')
    with pytest.raises(ConfigurationError, match="ledger format 2"):
        process(s3).find("log", ["a"])


# -- tasks at the same time, and faults --------------------------------------------------------------------------------

PATHS = st.lists(st.sampled_from("abcdef"), min_size=1, max_size=4, unique=True)
FAULTS = ("none", "none", "kill before", "kill after", "lost reply", "conflict", "conflict after")


class Killed(Exception):
    """The task ends here."""


class Interleaved(MemoryS3):
    """Before each request of a task, other tasks may run. Puts have faults."""

    def __init__(self, draw: Callable[[Any], Any]) -> None:
        super().__init__()
        self.draw = draw
        self.depth = 0
        self.added: dict[str, int] = {}
        """The paths of the tasks that succeeded, with their ids."""

    def task(self) -> None:
        """A task with a memory of its own. Afterwards all of its paths have an id, which never changes."""
        paths = self.draw(PATHS)
        ids = process(self)
        try:
            ids.add("log", paths)
        except (Killed, TransientError):
            return
        for path in paths:
            assert self.added.setdefault(path, ids.find("log", paths)[path]) == ids.find("log", paths)[path]

    def others(self) -> None:
        if self.depth < 3 and self.draw(st.booleans()):
            self.depth += 1
            self.task()
            self.depth -= 1

    def get(self, key: str) -> bytes:
        self.others()
        return super().get(key)

    def put(self, key: str, body: Any, **given: Any) -> Any:
        self.others()
        fault = self.draw(st.sampled_from(FAULTS))
        if fault == "kill before":
            raise Killed
        if fault == "conflict":
            raise Conflict("another put is in progress")
        answer = super().put(key, body, **given)
        if fault == "kill after":
            raise Killed
        if fault == "lost reply":
            raise PreconditionFailed("the repeated request", key)
        if fault == "conflict after":
            raise Conflict("another put is in progress")
        return answer


def one_after_the_other(call: Callable[[str], object], keys: Collection[str]) -> list[object]:
    """Reads in the order of the keys: the test chooses what happens between two of them."""
    return [call(key) for key in keys]


@given(st.data())
def test_ids_of_tasks_at_the_same_time_agree_whatever_happens_to_their_puts(data: st.DataObject) -> None:
    s3 = Interleaved(data.draw)
    with patch.object(ledger_files, "together", one_after_the_other):
        for _ in range(data.draw(st.integers(1, 4))):
            s3.task()
    files = stored(s3)
    ids = [(path, number) for each in files.values() for path, number in each.items()]
    assert [number for _, number in ids] == [*range(1, len(ids) + 1)]
    assert len(dict(ids)) == len(ids)
    assert [*files] == [f"{min(each.values()):010}.json" for each in files.values()]
    assert s3.added.items() <= dict(ids).items()


# -- ids of tables -----------------------------------------------------------------------------------------------------

SEED = FieldIdsSeed({"b": 7, "a": 2, "a.element": 5}, 9, (SeedTable("lake.log", "uuid", 4),))


def test_a_topic_without_ids_takes_those_of_a_table_and_new_paths_have_later_ones(s3: MemoryS3) -> None:
    assert not process(s3).has_any("log")
    assert process(s3).seed("log", SEED)
    process(s3).add("log", ["b", "c", "a", "d"])
    assert process(s3).find("log", ["a", "d"]) == {"b": 7, "a": 2, "a.element": 5, "c": 9, "d": 10}
    assert [*stored(s3)] == ["0000000001.json", "0000000009.json"]
    assert process(s3).has_any("log")
    assert process(s3).seeded_by("log") == SEED.tables


def test_a_topic_with_ids_keeps_them(s3: MemoryS3) -> None:
    process(s3).add("log", ["a"])
    before = stored(s3)
    assert not process(s3).seed("log", SEED)
    assert stored(s3) == before
    assert process(s3).has_any("log")
    assert process(s3).seeded_by("log") == ()
    assert process(s3).seeded_by("other") == ()


def test_a_table_without_columns_is_remembered(s3: MemoryS3) -> None:
    assert process(s3).seed("log", FieldIdsSeed({}, 2, SEED.tables))
    process(s3).add("log", ["a"])
    assert process(s3).find("log", ["a"]) == {"a": 2}
    assert process(s3).seeded_by("log") == SEED.tables


def test_a_conflict_while_a_topic_takes_ids_is_transient(s3: MemoryS3) -> None:
    def fault(call: str, key: str) -> None:
        raise Conflict("another put is in progress")

    s3.fault = fault
    with pytest.raises(TransientError, match="another put is in progress"):
        process(s3).seed("log", SEED)


@pytest.mark.parametrize(
    ("ids", "following"),
    [({"a": 1, "b": 1}, 5), ({"a": 5}, 5), ({"a": 0}, 5), ({}, 1), ({"a": 3}, 0)],
)
def test_a_file_with_impossible_ids_of_a_table_is_not_used(s3: MemoryS3, ids: dict[str, int], following: int) -> None:
    body = json.dumps({"ids": ids, "format": 1, "next": following, "tables": []}).encode()
    s3.put(field_ids_key(ROOT, "log", 1), body)
    with pytest.raises(LedgerUnreadable, match=f"its ids are not different ones, or {following} is not free"):
        process(s3).find("log", ["a"])


def test_only_the_first_file_has_ids_of_a_table(s3: MemoryS3) -> None:
    process(s3).add("log", ["a"])
    body = json.dumps({"ids": {"b": 7}, "format": 1, "next": 9, "tables": []}).encode()
    s3.put(field_ids_key(ROOT, "log", 2), body)
    with pytest.raises(LedgerUnreadable, match="its ids do not ascend from 2"):
        process(s3).find("log", ["b"])


@given(st.data())
def test_ids_of_a_table_that_come_while_tasks_add_some_change_none(data: st.DataObject) -> None:
    s3 = Interleaved(data.draw)
    with patch.object(ledger_files, "together", one_after_the_other):
        for _ in range(data.draw(st.integers(1, 4))):
            if data.draw(st.booleans()):
                with suppress(Killed, TransientError):
                    process(s3).seed("log", SEED)
            s3.task()
    ids = {path: number for each in stored(s3).values() for path, number in each.items()}
    assert len({*ids.values()}) == len(ids)
    assert s3.added.items() <= ids.items()
    assert "next" not in json.loads(s3.objects[field_ids_key(ROOT, "log", 1)].body) or SEED.ids.items() <= ids.items()
