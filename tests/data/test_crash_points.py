"""A crash at every point between two outside effects of a round, and every reply lost: the same objects, no litter.

The driver runs in a process of its own over a real S3 server; a proxy kills it, with SIGKILL, before a request is
passed on or after the server has done it and before the reply. Between these two points of every request lie all the
moments at which a crash can leave another state behind (the consumer group's offset is committed between a completion's
reply and the next request). Then the sink is started again without faults.
"""

from __future__ import annotations

import multiprocessing
import signal
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import pytest

from devtools.faults.s3_proxy import Drop, FaultProxy, Kill, Point
from devtools.faults.s3_requests import Predicate
from devtools.s3 import S3Server
from sink_job.coordinator.context import StopCondition
from tests.support.sink_fixture import Place
from tests.support.synthetic_log import FunctionLog

pytestmark = pytest.mark.data

LOG = FunctionLog(records=8, value_bytes=1_800_000, holes=frozenset({3}))
"""Rounds of two records and objects of five: parts, leftovers, completions and what is closed at the end all occur."""
GIVEN: dict[str, Any] = {"flush_size": 5, "max_records": 2, "part_size": "5Mi"}
ALL = StopCondition(until_caught_up=True, publish_open=True)

EFFECTS = {
    "a try-out, an owner or the claim": lambda r: r.kind == "PutObject" and _is_start(r.key),
    "an intent": lambda r: r.kind == "PutObject" and "/intent/" in r.key,
    "the begin of an upload": lambda r: r.kind == "CreateMultipartUpload",
    "a part": lambda r: r.kind == "UploadPart",
    "a staged leftover": lambda r: r.kind == "PutObject" and "/staging/" in r.key,
    "a record": lambda r: r.kind == "PutObject" and "/ledger/" in r.key and not _is_start(r.key),
    "a completion": lambda r: r.kind == "CompleteMultipartUpload",
    "a deletion": lambda r: r.kind in ("DeleteObjects", "AbortMultipartUpload"),
}
"""The outside effects of a round, as predicates of their requests."""


def _is_start(key: str) -> bool:
    return "/probe/" in key or key.endswith(("owner.json", "topics/log/json.json", f"/ledger/{1:020d}.json.gz"))


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__, "sink_job.coordinator.coordinator"])
    return context


@dataclass(frozen=True)
class Undisturbed:
    """A run without faults: its objects, and how many requests of each effect it made."""

    bodies: dict[str, bytes]
    group: dict[str, int]
    counts: dict[str, int]


@pytest.fixture(scope="module")
def undisturbed(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    with FaultProxy(s3.endpoint) as proxy:
        place = Place.new(s3.endpoint, tmp_path_factory.mktemp("undisturbed"))
        through(place, proxy).run(LOG, ALL, **GIVEN)
        counts = {effect: proxy.count(matches) for effect, matches in EFFECTS.items()}
        assert sum(counts.values()) == proxy.count(lambda request: request.mutating), "an effect is missing above"
    return Undisturbed(place.bodies(), place.group(), counts)


def through(place: Place, proxy: FaultProxy) -> Place:
    """The same place, reached through the proxy."""
    return replace(place, settings=replace(place.settings, endpoint=proxy.endpoint))


def run_when_told(place: Place, gate: Connection) -> None:
    """The sink's process: waits until its killer is ready."""
    gate.recv()
    place.run(LOG, ALL, **GIVEN)


def killed_at(
    processes: ForkServerContext, place: Place, proxy: FaultProxy, matches: Predicate, nth: int, point: Point
) -> None:
    """Runs the sink in a process and kills it at the `nth` matching request."""
    gate, other = processes.Pipe()
    process = processes.Process(target=run_when_told, args=(through(place, proxy), other))
    process.start()
    assert process.pid is not None
    proxy.when(matches, Kill(process.pid, signal.SIGKILL, session=False), point=point, nth=nth)
    gate.send(None)
    process.join(120)
    assert process.exitcode == -signal.SIGKILL
    proxy.resume()


def expect_same(place: Place, undisturbed: Undisturbed) -> None:
    assert place.bodies() == undisturbed.bodies
    assert place.group() == undisturbed.group


@pytest.mark.parametrize("point", ["before", "after"])
@pytest.mark.parametrize("effect", EFFECTS)
def test_a_crash_at_any_effect_leaves_the_same_objects_and_no_litter(
    s3: S3Server,
    processes: ForkServerContext,
    undisturbed: Undisturbed,
    tmp_path: Path,
    effect: str,
    point: Point,
) -> None:
    for nth in range(1, undisturbed.counts[effect] + 1):
        folder = tmp_path / str(nth)
        folder.mkdir()
        place = Place.new(s3.endpoint, folder)
        with FaultProxy(s3.endpoint) as proxy:
            killed_at(processes, place, proxy, EFFECTS[effect], nth, point)
            through(place, proxy).run(LOG, ALL, **GIVEN)
        expect_same(place, undisturbed)
        assert place.litter_after(ALL, LOG, GIVEN) == []


@pytest.mark.parametrize("effect", EFFECTS)
def test_a_lost_reply_changes_nothing(s3: S3Server, undisturbed: Undisturbed, tmp_path: Path, effect: str) -> None:
    for nth in range(1, undisturbed.counts[effect] + 1):
        folder = tmp_path / str(nth)
        folder.mkdir()
        place = Place.new(s3.endpoint, folder)
        with FaultProxy(s3.endpoint) as proxy:
            proxy.when(EFFECTS[effect], Drop(), point="after", nth=nth)
            through(place, proxy).run(LOG, ALL, **GIVEN)
        expect_same(place, undisturbed)
        assert place.litter_after(ALL, LOG, GIVEN) == []
