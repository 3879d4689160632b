"""A fixture that runs a sink without servers: a bucket in memory and a consumer group in a file."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sink_job.api.errors import SinkError
from sink_job.api.parser import load_sink
from sink_job.api.spec import Sink
from sink_job.coordinator import coordinator
from sink_job.coordinator.context import CoordinatorContext, StopCondition
from sink_job.coordinator.coordinator import Coordinator
from sink_job.coordinator.progress import Progress
from sink_job.ledger.first_claim.ledger_place import ledger_root
from sink_job.ledger.ownership import Owner
from sink_job.ledger.session import LedgerAccess
from sink_job.s3 import start_check
from sink_job.writer import task_attempt
from tests.support.memory_s3 import MemoryS3, as_client
from tests.support.sink_fixture import manifest
from tests.support.synthetic_log import CLOCK_MS, FileConsumerGroup, InlineEngine, SyntheticLog

PUBLISH_ALL = StopCondition(until_caught_up=True, publish_open=True)


@cache
def _default_sink() -> Sink:
    """It is immutable, so all fixtures share it."""
    return load_sink(manifest("archive", "http://127.0.0.1:9", flush_size=5, max_records=2))


def error_of(run: Callable[[], object]) -> SinkError | None:
    """The domain error that `run` raises; None if it succeeds."""
    try:
        run()
    except SinkError as error:
        return error
    return None


class MemorySinkFixture:
    """A bucket and a group; drivers of sink `log` with five records per object and two per round."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.s3 = MemoryS3()
        self.group = folder / "group.json"
        for module in (coordinator, task_attempt):
            monkeypatch.setattr(module, "connect", lambda settings: self.s3)
        monkeypatch.setattr(start_check, "lifecycle_warning", lambda s3, root, **_: None)
        self.sink = _default_sink()
        self.root = ledger_root(as_client(self.s3), self.sink.spec.s3.topics_dir, self.sink.sink_id)
        self.owner = Owner("function", self.sink.namespace, self.sink.name, self.sink.sink_id)

    def driver(self, log: SyntheticLog, *, goal: StopCondition = PUBLISH_ALL, **context: Any) -> Coordinator:
        """A driver that is not running yet; `context` are fields of its `CoordinatorContext`."""
        settings: Any = None
        given: dict[str, Any] = {
            "admin": FileConsumerGroup(log, self.group),
            "engine": InlineEngine(log),
            "clock": lambda: CLOCK_MS,
            "attempt": uuid.uuid4().hex,
            "snapshot_every": 3,
            **context,
        }
        world_of = CoordinatorContext(s3=settings, owner=self.owner, **given)
        return Coordinator(self.sink, world_of, goal, Progress(self.sink, given["clock"]))

    def run(self, log: SyntheticLog, *, goal: StopCondition = PUBLISH_ALL, **context: Any) -> None:
        self.driver(log, goal=goal, **context).run()

    def ledger_access(self) -> LedgerAccess:
        """The access of a command to the ledger."""
        s3: Any = self.s3
        return LedgerAccess(s3=s3, root=self.root, owner=self.owner, attempt=uuid.uuid4().hex, clock=lambda: CLOCK_MS)

    @contextmanager
    def faults(self, fault: Callable[[str, str], None]) -> Iterator[None]:
        """Sets the faults of the store inside the block."""
        before, self.s3.fault = self.s3.fault, fault
        try:
            yield
        finally:
            self.s3.fault = before

    def offsets(self) -> dict[str, list[int]]:
        """The visible objects, and the offsets in each."""
        return {
            key: [json.loads(line)["offset"] for line in stored.body.splitlines()]
            for key, stored in sorted(self.s3.objects.items())
            if "/_s3sink/" not in key
        }

    def orphans(self) -> list[str]:
        """The keys of unfinished uploads, staging objects and probe files."""
        uploads = [upload.key for upload in self.s3.uploads.values()]
        return uploads + [key for key in self.s3.objects if "/staging/" in key or "/probe/" in key]
