"""A driver that is killed while it gives up records that Kafka no longer holds: the next one comes to the same end."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator
from dataclasses import replace
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import pytest

from devtools.faults.s3_proxy import FaultProxy, Kill, Point
from devtools.faults.s3_requests import Predicate
from devtools.s3 import S3Server
from sink_job.coordinator.context import StopCondition
from tests.support.crash_points import end_before_publishing
from tests.support.sink_fixture import Place
from tests.support.synthetic_log import FunctionLog

pytestmark = pytest.mark.data

BEFORE = FunctionLog(records=8, value_bytes=1_800_000)
HELD = replace(BEFORE, starts_at=1, holes=frozenset({4, 6}))
"""Objects of three records: of the first its first record is gone, of the second one in its middle, and of the open one
its first."""
GIVEN: dict[str, Any] = {"flush_size": 3, "part_size": "5Mi", "spec": {"onDataLoss": "Continue"}}
ALL = StopCondition(until_caught_up=True, publish_open=True)
LEFT = {1: [1, 2], 3: [3, 5], 7: [7]}
"""The objects in the end, by their first offsets."""

EFFECTS: dict[str, Predicate] = {
    "the begin of an upload": lambda r: r.kind == "CreateMultipartUpload" and "/_s3sink/" not in r.key,
    "a record": lambda r: r.kind == "PutObject" and "/ledger/" in r.key,
    "a completion": lambda r: r.kind == "CompleteMultipartUpload" and "/_s3sink/" not in r.key,
    "a staged remainder": lambda r: r.kind == "PutObject" and "/staging/" in r.key,
}


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "sink_job.coordinator.coordinator"])
    return context


def run_when_told(place: Place, gate: Connection) -> None:
    """The sink's process: waits until its killer is ready."""
    gate.recv()
    place.run(HELD, ALL, **GIVEN)


def killed_at(
    processes: ForkServerContext, place: Place, proxy: FaultProxy, rule: tuple[Predicate, Point, int]
) -> bool:
    """Runs the sink in a process that is killed at the `nth` such request; returns whether there was one."""
    matches, point, nth = rule
    gate, other = processes.Pipe()
    process = processes.Process(target=run_when_told, args=(place.through(proxy), other))
    process.start()
    assert process.pid is not None
    proxy.when(matches, Kill(process.pid, signal.SIGKILL, session=False), point=point, nth=nth)
    gate.send(None)
    process.join(120)
    proxy.resume()
    return process.exitcode == -signal.SIGKILL


def places(s3: S3Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """Sinks whose named and open objects are all gone."""
    number = 0
    while True:
        number += 1
        here = folder / str(number)
        here.mkdir()
        place = Place.new(s3.endpoint, here)
        end_before_publishing(place, monkeypatch, BEFORE, **{**GIVEN, "spec": {}})
        place.delete_staging()
        place.abort_uploads_of("topics/log/")
        yield place


@pytest.mark.parametrize("point", ["before", "after"])
@pytest.mark.parametrize("effect", EFFECTS)
def test_a_driver_that_is_killed_while_it_gives_records_up_leaves_the_same_objects_and_the_same_loss(
    s3: S3Server,
    processes: ForkServerContext,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    effect: str,
    point: Point,
) -> None:
    for nth, place in enumerate(places(s3, tmp_path, monkeypatch), 1):
        with FaultProxy(s3.endpoint) as proxy:
            was_killed = killed_at(processes, place, proxy, (EFFECTS[effect], point, nth))
        place.run(HELD, ALL, **GIVEN)
        found = {f"topics/log/partition=0/log+0+{first:010d}.json": offsets for first, offsets in LEFT.items()}
        assert {key: place.offsets(key) for key in place.bodies()} == found
        assert place.group() == {"log-0": 8}
        (verdict,) = place.verify(HELD, **GIVEN)
        assert (verdict.findings, verdict.lost, verdict.records, verdict.gaps) == ((), 3, 5, 3)
        assert place.litter_after(ALL, HELD, GIVEN) == []
        if not was_killed:
            assert nth > 1, "the effect occurs"
            return
