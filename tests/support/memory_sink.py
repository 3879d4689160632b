"""Somewhere to run a sink without servers: a bucket in memory and a consumer group in a file."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sink_job.api.errors import SinkError
from sink_job.api.spec import load_sink
from sink_job.coordinator import coordinator
from sink_job.coordinator.context import CoordinatorContext, StopCondition
from sink_job.coordinator.coordinator import Coordinator
from sink_job.coordinator.progress import Progress
from sink_job.ledger.ownership import Owner, ledger_root
from sink_job.ledger.session import LedgerAccess
from sink_job.writer import task_attempt
from tests.support.memory_s3 import MemoryS3
from tests.support.sink_fixture import manifest
from tests.support.synthetic_log import CLOCK_MS, FileGroup, FunctionEngine, FunctionLog

ALL = StopCondition(until_caught_up=True, publish_open=True)


def ended_by(run: Callable[[], object]) -> SinkError | None:
    """The domain error that ended `run`, if one did."""
    try:
        run()
    except SinkError as error:
        return error
    return None


class MemoryPlace:
    """One bucket and one group; drivers of sink `log`, whose objects hold five records and whose rounds read two."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.s3 = MemoryS3()
        self.group = folder / "group.json"
        for module in (coordinator, task_attempt):
            monkeypatch.setattr(module, "connect", lambda settings: self.s3)
        monkeypatch.setattr(coordinator, "lifecycle_warning", lambda s3, root: None)
        self.sink = load_sink(manifest("archive", "http://127.0.0.1:9", flush_size=5, max_records=2))
        self.root = ledger_root(self.sink.spec.s3.topics_dir, self.sink.sink_id)
        self.owner = Owner("function", self.sink.namespace, self.sink.name, self.sink.sink_id)

    def driver(self, log: FunctionLog, *, goal: StopCondition = ALL, **world: Any) -> Coordinator:
        """A driver that is not running yet; `world` are fields of its World."""
        settings: Any = None
        given: dict[str, Any] = {
            "admin": FileGroup(log, self.group),
            "engine": FunctionEngine(log),
            "clock": lambda: CLOCK_MS,
            "attempt": uuid.uuid4().hex,
            "snapshot_every": 3,
            **world,
        }
        world_of = CoordinatorContext(s3=settings, owner=self.owner, **given)
        return Coordinator(self.sink, world_of, goal, Progress(self.sink, given["clock"]))

    def run(self, log: FunctionLog, *, goal: StopCondition = ALL, **world: Any) -> None:
        self.driver(log, goal=goal, **world).run()

    def hands(self) -> LedgerAccess:
        """What a command takes the ledger with."""
        s3: Any = self.s3
        return LedgerAccess(s3=s3, root=self.root, owner=self.owner, attempt=uuid.uuid4().hex, clock=lambda: CLOCK_MS)

    @contextmanager
    def faults(self, fault: Callable[[str, str], None]) -> Iterator[None]:
        """The store's answers inside the block."""
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

    def remainder(self) -> list[str]:
        """Unfinished uploads, staging objects and files of try-outs."""
        uploads = [upload.key for upload in self.s3.uploads.values()]
        return uploads + [key for key in self.s3.objects if "/staging/" in key or "/probe/" in key]
