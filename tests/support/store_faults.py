"""Faults of the bucket in memory, for drivers that copy a log of twelve records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sink_job.api.errors import SinkError, TransientError
from tests.support.memory_s3 import MemoryS3
from tests.support.memory_sink import MemorySinkFixture, error_of
from tests.support.synthetic_log import SyntheticLog

LOG = SyntheticLog(records=12)
FIRST = "topics/log/partition=0/log+0+0000000000.json"
OBJECTS = {
    f"topics/log/partition=0/log+0+{first:010d}.json": list(range(first, min(first + 5, 12))) for first in (0, 5, 10)
}
"""The objects of the log, and the offsets in each."""


class Once:
    """A fault: at the first of these requests `happens` is called, then the request is done."""

    def __init__(self, call: str, key: str, happens: Callable[[str], object]) -> None:
        self._call = call
        self._key = key
        self._happens = happens
        self._done = False

    def __call__(self, call: str, key: str) -> None:
        if not self._done and call == self._call and self._key in key:
            self._done = True
            self._happens(key)


def fail(call: str, key: str, error: type[SinkError]) -> Callable[[str, str], None]:
    """A fault: each of these requests is answered with the error."""

    def fault(asked: str, at: str) -> None:
        if asked == call and key in at:
            raise error(f"{asked} {at}: by the test")

    return fault


def stored_then(monkeypatch: pytest.MonkeyPatch, s3: MemoryS3, key: str, error: type[SinkError]) -> None:
    """The first put of `key` is done and answered with the error."""
    put = s3.put

    def first(at: str, body: Any, **given: Any) -> Any:
        done = put(at, body, **given)
        if key in at:
            monkeypatch.setattr(s3, "put", put)
            raise error(f"{at}: by the test")
        return done

    monkeypatch.setattr(s3, "put", first)


def pending(sink_fixture: MemorySinkFixture) -> None:
    """A ledger that names an object which is not visible."""
    with sink_fixture.faults(fail("complete", FIRST, TransientError)):
        assert isinstance(error_of(lambda: sink_fixture.run(LOG)), TransientError)
