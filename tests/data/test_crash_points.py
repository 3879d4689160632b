"""A crash between any two external effects of a round, and each lost reply: the same objects, no orphans.

The driver runs in its own process with a real S3 server. A proxy kills it with SIGKILL, either before it forwards a
request, or after the server has executed the request and before the reply. These two points of every request cover all
states that a crash can leave: the consumer group's offset is committed between a completion's reply and the next
request. Then the sink starts again without faults.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from devtools.faults.s3_proxy import Drop, FaultProxy, Point
from devtools.s3 import S3Server
from sink_job.coordinator.context import StopCondition
from tests.support.forked import killed_at
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import SyntheticLog

pytestmark = pytest.mark.data

LOG = SyntheticLog(records=8, value_bytes=1_800_000, gaps=frozenset({3}))
"""Rounds of two records and objects of five: parts, staged remainders, completions and closes at the end all occur."""
GIVEN: dict[str, Any] = {"flush_size": 5, "max_records": 2, "part_size": "5Mi"}
ALL = StopCondition(until_caught_up=True, publish_open=True)

EFFECTS = {
    "a probe, an owner or the claim": lambda r: r.kind == "PutObject" and _is_start(r.key),
    "an intent": lambda r: r.kind == "PutObject" and "/intent/" in r.key,
    "the begin of an upload": lambda r: r.kind == "CreateMultipartUpload",
    "a part": lambda r: r.kind == "UploadPart",
    "a staged remainder": lambda r: r.kind == "PutObject" and "/staging/" in r.key,
    "a record": lambda r: r.kind == "PutObject" and "/ledger/" in r.key and not _is_start(r.key),
    "a completion": lambda r: r.kind == "CompleteMultipartUpload",
    "a deletion": lambda r: r.kind in ("DeleteObjects", "AbortMultipartUpload"),
}
"""The external effects of a round, as predicates of their requests."""


def _is_start(key: str) -> bool:
    return "/probe/" in key or key.endswith(("owner.json", "topics/log/json.json", f"/ledger/{1:020d}.json.gz"))


@dataclass(frozen=True)
class Undisturbed:
    """A run without faults: its objects, and the number of requests of each effect."""

    contents: dict[str, bytes]
    group: dict[str, int]
    counts: dict[str, int]


@pytest.fixture(scope="module")
def undisturbed(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    with FaultProxy(s3.endpoint) as proxy:
        sink_fixture = SinkFixture.new(s3.endpoint, tmp_path_factory.mktemp("undisturbed"))
        through(sink_fixture, proxy).run(LOG, ALL, **GIVEN)
        counts = {effect: proxy.count(matches) for effect, matches in EFFECTS.items()}
        assert sum(counts.values()) == proxy.count(lambda request: request.mutating), "an effect is missing above"
    return Undisturbed(sink_fixture.contents(), sink_fixture.group(), counts)


def through(sink_fixture: SinkFixture, proxy: FaultProxy) -> SinkFixture:
    """The same sink behind the proxy."""
    return sink_fixture.through(proxy)


def expect_same(sink_fixture: SinkFixture, undisturbed: Undisturbed) -> None:
    assert sink_fixture.contents() == undisturbed.contents
    assert sink_fixture.group() == undisturbed.group


def expect_same_after_kills(
    s3: S3Server,
    undisturbed: Undisturbed,
    folder: Path,
    log: SyntheticLog,
    given: Mapping[str, Any],
    effect: str,
    point: Point,
) -> None:
    """Kills a driver at each occurrence of an effect, each time in a new bucket, and expects that the next one leaves
    what an undisturbed one leaves, and no orphans."""
    for nth in range(1, undisturbed.counts[effect] + 1):
        own = folder / str(nth)
        own.mkdir()
        sink_fixture = SinkFixture.new(s3.endpoint, own)
        with FaultProxy(s3.endpoint) as proxy:
            work = partial(through(sink_fixture, proxy).run, log, ALL, **given)
            assert killed_at(work, proxy, EFFECTS[effect], point, nth)
            through(sink_fixture, proxy).run(log, ALL, **given)
        expect_same(sink_fixture, undisturbed)
        assert sink_fixture.orphans_after(ALL, log, given) == []


@pytest.mark.parametrize("point", ["before", "after"])
@pytest.mark.parametrize("effect", EFFECTS)
def test_a_crash_at_any_effect_leaves_the_same_objects_and_no_orphans(
    s3: S3Server,
    undisturbed: Undisturbed,
    tmp_path: Path,
    effect: str,
    point: Point,
) -> None:
    expect_same_after_kills(s3, undisturbed, tmp_path, LOG, GIVEN, effect, point)


@pytest.mark.parametrize("effect", EFFECTS)
def test_a_lost_reply_changes_nothing(s3: S3Server, undisturbed: Undisturbed, tmp_path: Path, effect: str) -> None:
    for nth in range(1, undisturbed.counts[effect] + 1):
        folder = tmp_path / str(nth)
        folder.mkdir()
        sink_fixture = SinkFixture.new(s3.endpoint, folder)
        with FaultProxy(s3.endpoint) as proxy:
            proxy.when(EFFECTS[effect], Drop(), point="after", nth=nth)
            through(sink_fixture, proxy).run(LOG, ALL, **GIVEN)
        expect_same(sink_fixture, undisturbed)
        assert sink_fixture.orphans_after(ALL, LOG, GIVEN) == []
