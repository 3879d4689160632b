"""What `s3sink verify` finds in the output of a sink, for tests."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

import msgspec

from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import StopCondition
from sink_job.ledger.state import LedgerState
from sink_job.ledger.store import AuditEntry, Ledger
from sink_job.verify.compare_job import CompareContext, compare
from sink_job.verify.evidence import Evidence, collect_evidence
from sink_job.verify.results import PartitionResult
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import FileConsumerGroup, InlineEngine, SyntheticLog, sink_of_text

CAUGHT_UP = StopCondition(until_caught_up=True, publish_open=True)
LEFT_OPEN = StopCondition(until_caught_up=True)
ROOT = "topics/_s3sink/default.log/"
FIRST = TopicPartition("log", 0)


def evidence(sink_fixture: SinkFixture, log: SyntheticLog, **given: Any) -> Evidence:
    sink = sink_of_text(sink_fixture.manifest(**given))
    return collect_evidence(sink, sink_fixture.s3, FileConsumerGroup(log, sink_fixture.folder / "group.json"))


def shallow(sink_fixture: SinkFixture, log: SyntheticLog | None = None, **given: Any) -> list[PartitionResult]:
    log = log or SyntheticLog(partitions=2)
    return evidence(sink_fixture, log, **{"flush_size": 10, **given}).results()


def deep(sink_fixture: SinkFixture, log: SyntheticLog | None = None, **given: Any) -> list[PartitionResult]:
    log = log or SyntheticLog(partitions=2)
    given = {"flush_size": 10, **given}
    sink = sink_of_text(sink_fixture.manifest(**given))
    found = evidence(sink_fixture, log, **given)
    context = CompareContext(
        s3=sink_fixture.settings,
        admin=FileConsumerGroup(log, sink_fixture.folder / "group.json"),
        engine=InlineEngine(log),
    )
    return compare(found, found.results(), context, sink.spec.errors)


def findings(results: list[PartitionResult]) -> list[tuple[str, str, int]]:
    return [(str(v.topic_partition), finding.type, finding.offset) for v in results for finding in v.findings]


def key_of(sink_fixture: SinkFixture, partition: int, first: int) -> str:
    (key,) = (key for key in sink_fixture.contents() if f"+{partition}+{first:010d}." in key)
    return key


def take_snapshot(sink_fixture: SinkFixture) -> LedgerState:
    ledger = Ledger(sink_fixture.s3, ROOT, "test")
    return ledger.snapshot(ledger.load())


def rewrite_published(sink_fixture: SinkFixture, change: Callable[[AuditEntry], AuditEntry | None]) -> None:
    """Changes lines of the published list; `None` drops a line."""
    for listed in list(sink_fixture.s3.list(f"{ROOT}published/")):
        lines = [
            msgspec.json.decode(line, type=AuditEntry)
            for line in gzip.decompress(sink_fixture.s3.get(listed.key)).splitlines()
        ]
        kept = [changed for line in lines if (changed := change(line)) is not None]
        sink_fixture.s3.put(listed.key, gzip.compress(b"".join(msgspec.json.encode(line) + b"\n" for line in kept)))


Tamper = Callable[[SinkFixture, str, Callable[[bytes], bytes]], None]
