"""Every answer of S3 to every request of a driver: it ends well or with a code that says what to do, and the next
driver makes the same objects."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sink_job.coordinator.context import StopCondition
from sink_job.maintenance.discard_open import discard_open
from sink_job.s3 import (
    ChecksumMismatch,
    Conflict,
    EntityTooSmall,
    InvalidPart,
    NoSuchUpload,
    NotFound,
    PreconditionFailed,
    S3Outcome,
)
from tests.support.memory_sink import MemorySinkFixture, error_of
from tests.support.synthetic_log import SyntheticLog

LOG = SyntheticLog(records=12)
OBJECTS = {
    f"topics/log/partition=0/log+0+{first:010d}.json": list(range(first, min(first + 5, 12))) for first in (0, 5, 10)
}
KNOWN = (3, 7, 75)
"""Fenced; unsuitable, or a gap in the ledger; try again."""
OUTCOMES = [
    PreconditionFailed, Conflict, NotFound, NoSuchUpload, InvalidPart, EntityTooSmall, ChecksumMismatch
]  # fmt: skip
REQUESTS = {
    "the put of a probe": ("put", "/probe/"),
    "the put of an owner": ("put", "owner.json"),
    "the put of a topic's owner": ("put", "/topics/log/"),
    "the put of the first claim": ("put", f"/ledger/{1:020d}"),
    "the put of a record": ("put", f"/ledger/{4:020d}"),
    "the put of a snapshot": ("put", "/snapshot/"),
    "the put of a published list": ("put", "/published/"),
    "the put of an intent": ("put", "/intent/"),
    "the put of a staging object": ("put", "/staging/"),
    "the get of a record": ("get", "/ledger/"),
    "the get of a snapshot": ("get", "/snapshot/"),
    "the get of an intent": ("get", "/intent/"),
    "the get of an owner": ("get", "owner.json"),
    "the get of a staged remainder": ("get_range", "/staging/"),
    "the head of a record": ("head", "/ledger/"),
    "the head of an object": ("head", "log+0+"),
    "the listing of the ledger": ("list", "/ledger/"),
    "the listing of staging objects": ("list", "/staging/"),
    "the listing of uploads": ("list_uploads", ""),
    "the deletion of a staging object": ("delete", "/staging/"),
    "the deletion of a record": ("delete", "/ledger/"),
    "the beginning of an upload": ("create_upload", "log+0+"),
    "a part": ("upload_part", "log+0+"),
    "a completion": ("complete", "log+0+"),
    "an abort": ("abort", "log+0+"),
}


class Answers:
    """The store's fault: `outcome` to the `times` first requests of this kind, or to all of them."""

    def __init__(self, call: str, key: str, outcome: type[S3Outcome], times: int | None) -> None:
        self._call = call
        self._key = key
        self._outcome = outcome
        self._left = times

    def __call__(self, call: str, key: str) -> None:
        if call != self._call or self._key not in key or self._left == 0:
            return
        if self._left is not None:
            self._left -= 1
        raise self._outcome(f"s3://archive/{key}: {call}: by the test", key, self._outcome.__name__)


@pytest.fixture
def sink_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    return MemorySinkFixture(tmp_path, monkeypatch)


def ends_with_a_known_code(
    sink_fixture: MemorySinkFixture,
    request_: str,
    outcome: type[S3Outcome],
    action: Callable[[], object],
    *,
    times: int | None = None,
) -> None:
    """Runs `action` while the store answers the request with `outcome`; a driver without faults runs afterwards."""
    call, key = REQUESTS[request_]
    with sink_fixture.faults(Answers(call, key, outcome, times)):
        error = error_of(action)
    assert error is None or error.exit_code in KNOWN, error
    sink_fixture.run(LOG)


@pytest.mark.parametrize("times", [1, None], ids=["once", "always"])
@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("request_", REQUESTS)
def test_whatever_the_store_answers_the_driver_ends_with_a_known_code_and_the_next_one_is_exact(
    sink_fixture: MemorySinkFixture, request_: str, outcome: type[S3Outcome], times: int | None
) -> None:
    ends_with_a_known_code(sink_fixture, request_, outcome, lambda: sink_fixture.run(LOG), times=times)
    assert sink_fixture.offsets() == OBJECTS
    assert sink_fixture.orphans() == []


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("request_", REQUESTS)
def test_whatever_the_store_answers_a_driver_that_takes_over_ends_with_a_known_code(
    sink_fixture: MemorySinkFixture, request_: str, outcome: type[S3Outcome]
) -> None:
    sink_fixture.run(SyntheticLog(records=8), goal=StopCondition(until_caught_up=True))
    ends_with_a_known_code(sink_fixture, request_, outcome, lambda: sink_fixture.run(LOG))
    assert sink_fixture.offsets() == OBJECTS
    assert sink_fixture.orphans() == []


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("request_", REQUESTS)
def test_whatever_the_store_answers_a_command_ends_with_a_known_code(
    sink_fixture: MemorySinkFixture, request_: str, outcome: type[S3Outcome]
) -> None:
    sink_fixture.run(SyntheticLog(records=8), goal=StopCondition(until_caught_up=True))
    ends_with_a_known_code(sink_fixture, request_, outcome, lambda: discard_open(sink_fixture.ledger_access()))
    assert sorted(offset for offsets in sink_fixture.offsets().values() for offset in offsets) == list(range(12))
