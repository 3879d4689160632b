"""Marks of runs, and the uploads of runs that were killed."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.maintenance.repair.run_marks import MAX_AGE_MS, RunMarks, UnfinishedRuns
from tests.support.memory_s3 import MemoryS3

ROOT = "topics/_s3sink/sink/"


@pytest.fixture
def s3() -> Any:
    return MemoryS3()


def test_a_mark_has_the_keys_of_a_run_until_its_end(s3: Any) -> None:
    own, other = RunMarks(s3, ROOT, "own"), RunMarks(s3, ROOT, "other")
    assert other.unfinished() == UnfinishedRuns(frozenset(), [])
    own.write(["b", "a"])
    assert other.unfinished() == UnfinishedRuns(frozenset({"a", "b"}), [])
    own.delete()
    assert other.unfinished() == UnfinishedRuns(frozenset(), [])
    assert s3.objects == {}


def test_a_mark_that_is_older_than_a_day_has_expired(s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    RunMarks(s3, ROOT, "killed").write(["a"])
    now = s3.server_now_ms()
    monkeypatch.setattr(s3, "server_now_ms", lambda: now + MAX_AGE_MS + 1)
    marks = RunMarks(s3, ROOT, "own")
    unfinished = marks.unfinished()
    assert unfinished == UnfinishedRuns(frozenset({"a"}), [f"{ROOT}repair/runs/killed.json"])
    marks.delete(unfinished.expired)
    assert s3.objects == {}


def test_a_mark_that_cannot_be_read_names_no_keys(s3: Any) -> None:
    s3.put(f"{ROOT}repair/runs/foreign.json", b"[1, 2")
    assert RunMarks(s3, ROOT, "own").unfinished().keys == frozenset()


def test_uploads_at_exactly_the_keys_and_of_copies_are_aborted(s3: Any) -> None:
    aborted = [s3.create_upload("a"), s3.create_upload(f"{ROOT}repair/damaged/a/etag")]
    kept = [s3.create_upload("a.longer"), s3.create_upload("b"), s3.create_upload(f"{ROOT}staging/x")]
    named = s3.create_upload("a")
    RunMarks(s3, ROOT, "own").abort_uploads(["a"], {named})
    assert set(s3.uploads) == {*kept, named}
    assert set(s3.uploads).isdisjoint(aborted)
