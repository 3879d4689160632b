"""A driver with nothing to do: its requests to S3, and how it finds out that another has taken its ledger over."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from sink_job.api.errors import LedgerFenced
from sink_job.api.parser import load_sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator import coordinator
from sink_job.coordinator.context import CoordinatorContext, StopCondition
from sink_job.coordinator.group_offsets import COMMIT_INTERVAL_MS
from sink_job.coordinator.progress import Progress
from sink_job.ledger.ownership import Owner
from sink_job.s3 import Head, Listed, NotFound, PreconditionFailed, PutResult, S3Settings
from tests.support.sink_fixture import manifest
from tests.support.synthetic_log import FileConsumerGroup, InlineEngine, SyntheticLog

NOW = 1_700_000_000_000
HOUR = 3_600_000
LOG = SyntheticLog(records=0)


class MemoryS3:
    """As much of a bucket as a driver needs that has no records."""

    bucket = "archive"
    settings = S3Settings(bucket="archive")
    url = settings.url
    url_of = staticmethod(settings.url_of)

    def __init__(self) -> None:
        self._bodies: dict[str, bytes] = {}
        self.requests: Counter[str] = Counter()

    def put(self, key: str, body: bytes, *, only_if_absent: bool = False) -> PutResult:
        self.requests["put"] += 1
        if only_if_absent and key in self._bodies:
            raise PreconditionFailed(key)
        self._bodies[key] = body
        return PutResult(etag="")

    def get(self, key: str) -> bytes:
        self.requests["get"] += 1
        if key not in self._bodies:
            raise NotFound(key)
        return self._bodies[key]

    def head(self, key: str) -> Head | None:
        body = self._bodies.get(key)
        self.requests["head"] += 1
        self.requests["list"] += body is None  # as the client, which checks the bucket then
        return None if body is None else Head(size=len(body), crc64nvme=None, etag="", last_modified_ms=NOW)

    def list(self, prefix: str) -> Iterator[Listed]:
        self.requests["list"] += 1
        for key in sorted(self._bodies):
            if key.startswith(prefix):
                yield Listed(key=key, size=0, etag="", last_modified_ms=NOW)

    def list_uploads(self, prefix: str) -> Iterable[Any]:
        self.requests["list uploads"] += 1
        return ()

    def delete(self, keys: Iterable[str]) -> None:
        self.requests["delete"] += 1
        for key in keys:
            self._bodies.pop(key, None)


class Interrupted(FileConsumerGroup):
    """A Kafka that does something else between two questions for the log ends, and gives up after many."""

    def __init__(self, path: Path) -> None:
        super().__init__(LOG, path)
        self.asked = 0
        self.limit = 50
        self.commits = 0
        self.meanwhile: Callable[[], object] = lambda: None

    def end_offsets(self, partitions: Sequence[TopicPartition], *, committed: bool = True) -> dict[TopicPartition, int]:
        self.asked += 1
        assert self.asked < self.limit, "the idle driver has not noticed"
        if self.asked == 5:
            self.meanwhile()
        return super().end_offsets(partitions, committed=committed)

    def alter_group_offsets(self, group: str, offsets: Mapping[TopicPartition, int], *, metadata: str = "") -> None:
        self.commits += 1
        super().alter_group_offsets(group, offsets, metadata=metadata)


MakeDriver = Callable[..., coordinator.Coordinator]


@pytest.fixture
def kafka(tmp_path: Path) -> Interrupted:
    return Interrupted(tmp_path / "group.json")


@pytest.fixture
def s3() -> MemoryS3:
    return MemoryS3()


@pytest.fixture
def make_driver(monkeypatch: pytest.MonkeyPatch, kafka: Interrupted, s3: MemoryS3) -> MakeDriver:
    """Makes drivers of one sink, each with an attempt id and a clock."""
    monkeypatch.setattr(coordinator, "connect", lambda settings: s3)
    monkeypatch.setattr(coordinator, "check_store", lambda *_, **__: [])
    sink = load_sink(manifest("archive", "http://127.0.0.1:9", flush_size=5))

    def make(attempt: str, clock: Callable[[], int], **given: Any) -> coordinator.Coordinator:
        settings: Any = None
        context = CoordinatorContext(
            s3=settings,
            admin=kafka,
            engine=InlineEngine(LOG),
            clock=clock,
            owner=Owner("function", sink.namespace, sink.name, sink.sink_id),
            attempt=attempt,
            **given,
        )
        return coordinator.Coordinator(sink, context, StopCondition(), Progress(sink, clock))

    return make


def ticking(start: int) -> Callable[[], int]:
    """A clock that advances by a second with each call."""
    return iter(range(start, start + 10**9, 1_000)).__next__


@pytest.mark.parametrize("ahead", [0, HOUR], ids=["as always", "the ledger's clock is ahead of this host's"])
def test_an_idle_driver_that_was_fenced_ends_and_says_by_whom(
    make_driver: MakeDriver, kafka: Interrupted, ahead: int
) -> None:
    make_driver("first", lambda: NOW + ahead).start()
    idle = make_driver("second", ticking(NOW), head_check_interval_ms=10_000)
    kafka.meanwhile = make_driver("third", lambda: NOW + 2 * HOUR).start
    with pytest.raises(LedgerFenced) as fenced:
        idle.run()
    assert "(record 3, epoch 3, attempt third, of 2023-11-15T00:13:20Z)" in str(fenced.value)


@pytest.mark.parametrize("change", [{}, {"log-0": 3}], ids=["the hourly commit", "another program's offset"])
def test_a_fenced_driver_that_has_not_noticed_it_commits_no_offsets(
    make_driver: MakeDriver, kafka: Interrupted, change: dict[str, int]
) -> None:
    clock = [NOW]
    loop = make_driver("first", lambda: clock[0], head_check_interval_ms=10 * HOUR).start()
    loop.recover()
    make_driver("second", lambda: NOW).start()
    kafka.path.write_text(json.dumps(change))
    clock[0] += loop.context.discovery_interval_ms if change else COMMIT_INTERVAL_MS
    before = kafka.commits
    with pytest.raises(LedgerFenced, match="attempt second"):
        loop.run_once()
    assert kafka.commits == before


def test_an_idle_hour_takes_seven_reads_of_s3(make_driver: MakeDriver, kafka: Interrupted, s3: MemoryS3) -> None:
    clock = [NOW]
    loop = make_driver("only", lambda: clock[0]).start()
    loop.recover()
    s3.requests.clear()
    kafka.limit = 10_000
    loop.context.stop.set()  # no pauses
    for _ in range(HOUR // 1_000):
        clock[0] += 1_000
        assert loop.run_once() is False
    assert dict(s3.requests) == {"get": 7}  # six checks of the head, and one before the hourly commit of all offsets
