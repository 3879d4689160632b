"""A driver is killed while it records the loss of records; the next one reaches the same result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from devtools.faults.s3_proxy import FaultProxy, Point
from devtools.faults.s3_requests import Predicate
from devtools.s3 import S3Server
from sink_job.coordinator.context import StopCondition
from tests.support.crash_points import crash_before_publishing
from tests.support.forked import killed_at
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import SyntheticLog

pytestmark = pytest.mark.data

BEFORE = SyntheticLog(records=8, value_bytes=1_800_000)
HELD = replace(BEFORE, starts_at=1, gaps=frozenset({4, 6}))
"""Three records per object. The first object has lost its first record, the second one its middle record, the open one
its first."""
GIVEN: dict[str, Any] = {"flush_size": 3, "part_size": "5Mi", "spec": {"onDataLoss": "Continue"}}
ALL = StopCondition(until_caught_up=True, publish_open=True)
LEFT = {1: [1, 2], 3: [3, 5], 7: [7]}
"""The resulting objects, by their first offsets."""

EFFECTS: dict[str, Predicate] = {
    "the begin of an upload": lambda r: r.kind == "CreateMultipartUpload" and "/_s3sink/" not in r.key,
    "a record": lambda r: r.kind == "PutObject" and "/ledger/" in r.key,
    "a completion": lambda r: r.kind == "CompleteMultipartUpload" and "/_s3sink/" not in r.key,
    "a staged remainder": lambda r: r.kind == "PutObject" and "/staging/" in r.key,
}


def sinks_with_lost_bytes(s3: S3Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SinkFixture]:
    """Sinks whose closed and open objects have all lost their bytes."""
    number = 0
    while True:
        number += 1
        here = folder / str(number)
        here.mkdir()
        sink_fixture = SinkFixture.new(s3.endpoint, here)
        crash_before_publishing(sink_fixture, monkeypatch, BEFORE, **{**GIVEN, "spec": {}})
        sink_fixture.delete_staging()
        sink_fixture.abort_uploads_of("topics/log/")
        yield sink_fixture


@pytest.mark.parametrize("point", ["before", "after"])
@pytest.mark.parametrize("effect", EFFECTS)
def test_a_driver_killed_while_it_records_a_loss_leaves_the_same_objects_and_loss(
    s3: S3Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    effect: str,
    point: Point,
) -> None:
    for nth, sink_fixture in enumerate(sinks_with_lost_bytes(s3, tmp_path, monkeypatch), 1):
        with FaultProxy(s3.endpoint) as proxy:
            work = partial(sink_fixture.through(proxy).run, HELD, ALL, **GIVEN)
            was_killed = killed_at(work, proxy, EFFECTS[effect], point, nth)
        sink_fixture.run(HELD, ALL, **GIVEN)
        found = {f"topics/log/partition=0/log+0+{first:010d}.json": offsets for first, offsets in LEFT.items()}
        assert {key: sink_fixture.offsets(key) for key in sink_fixture.contents()} == found
        assert sink_fixture.group() == {"log-0": 8}
        (verdict,) = sink_fixture.verify(HELD, **GIVEN)
        assert (verdict.findings, verdict.lost, verdict.records, verdict.gaps) == ((), 3, 5, 3)
        assert sink_fixture.orphans_after(ALL, HELD, GIVEN) == []
        if not was_killed:
            assert nth > 1, "the effect occurs"
            return
