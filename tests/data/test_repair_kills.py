"""`s3sink repair` in its own process, killed with SIGKILL at the requests to a real S3 server.

`tests/unit/maintenance/repair` kills in memory, before each request.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from devtools.faults.s3_proxy import FaultProxy, Point
from devtools.faults.s3_requests import Predicate
from sink_job.maintenance.repair.kept_bytes import kept
from sink_job.maintenance.repair.results import RepairOutcome
from tests.data.test_repair import FIRST, GIVEN, LOG, repair, truncate
from tests.support.forked import killed_at
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import SyntheticLog
from tests.support.verify_sink import CAUGHT_UP, ROOT, deep, findings

pytestmark = pytest.mark.data

EFFECTS: dict[str, Predicate] = {
    "the mark of the run": lambda r: r.kind == "PutObject" and "/repair/runs/" in r.key,
    "the probe": lambda r: r.kind == "CompleteMultipartUpload" and r.key != FIRST,
    "a copy of damaged bytes": lambda r: r.kind == "PutObject" and "/repair/damaged/" in r.key,
    "the begin of the upload": lambda r: r.kind == "CreateMultipartUpload" and r.key == FIRST,
    "a part": lambda r: r.kind == "UploadPart" and r.key == FIRST,
    "the completion": lambda r: r.kind == "CompleteMultipartUpload" and r.key == FIRST,
    "a deletion": lambda r: r.kind in ("DeleteObjects", "AbortMultipartUpload"),
}


@pytest.mark.parametrize("point", ["before", "after"])
def test_a_command_killed_at_an_effect_can_be_repeated(
    sink_fixture: SinkFixture, s3_proxy: FaultProxy, point: Point
) -> None:
    sink_fixture.run(LOG, CAUGHT_UP, **GIVEN)
    right, etags = sink_fixture.contents(), sink_fixture.etags()
    work = partial(repair, sink_fixture.through(s3_proxy))
    for effect, matches in EFFECTS.items():
        truncate(sink_fixture)
        sink_fixture.s3.delete([key for key, _ in kept(sink_fixture.s3, ROOT)])  # else there is nothing to copy
        assert killed_at(work, s3_proxy, matches, point, 1), effect
        assert repair(sink_fixture).exit_code == 0
        assert (sink_fixture.contents(), sink_fixture.etags()) == (right, etags), effect
        # The next probe deletes the object of one that was killed, after an hour.
        assert [key for key in sink_fixture.orphans() if "/repair/probe/" not in key] == [], effect
    assert findings(deep(sink_fixture, LOG, **GIVEN)) == []


@pytest.mark.parametrize("point", ["before", "after"])
def test_a_command_that_accepts_losses_is_killed_at_its_claim_and_at_its_record(
    sink_fixture: SinkFixture, s3_proxy: FaultProxy, point: Point
) -> None:
    given: dict[str, Any] = {**GIVEN, "max_records": 10}
    sink_fixture.run(LOG, CAUGHT_UP, **given)
    sink_fixture.s3.delete([FIRST])
    left = SyntheticLog(records=25, value_bytes=700_000, starts_at=5)
    work = partial(repair, sink_fixture.through(s3_proxy), left, accepts=True, **given)
    for nth in (1, 2):
        assert killed_at(work, s3_proxy, lambda r: r.kind == "PutObject" and "/ledger/" in r.key, point, nth)
    (o,) = repair(sink_fixture, left, [FIRST], accepts=True, **given).objects
    assert o.outcome is RepairOutcome.LOSS_ACCEPTED
    assert findings(deep(sink_fixture, left, **given)) == []
    sink_fixture.run(left, CAUGHT_UP, **given)
    assert findings(deep(sink_fixture, left, **given)) == []
    (result,) = sink_fixture.verify(left, **given)
    assert (result.lost, result.records) == (10, 15)
