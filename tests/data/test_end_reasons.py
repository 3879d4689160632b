"""The exit code and reason of a driver's process after store failures, with a real S3 server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from devtools.faults.s3_proxy import Drop, FaultProxy, Hold, Point, S3ErrorReply
from devtools.faults.s3_requests import Predicate, S3Request, kind
from sink_job.coordinator.context import StopCondition
from tests.support.sink_fixture import ForkedDriver, SinkFixture
from tests.support.synthetic_log import SyntheticLog

pytestmark = pytest.mark.data

LOG = SyntheticLog(records=14, value_bytes=100_000)
GIVEN: dict[str, Any] = {"flush_size": 5, "max_records": 2}
ALL = StopCondition(until_caught_up=True, publish_open=True)
FIRST = "topics/log/partition=0/log+0+0000000000.json"
OBJECTS = {
    f"topics/log/partition=0/log+0+{first:010d}.json": list(range(first, min(first + 5, 14))) for first in (0, 5, 10)
}
CONFLICT = S3ErrorReply(409, "ConditionalRequestConflict")


@contextmanager
def started(sink_fixture: SinkFixture, **given: Any) -> Iterator[ForkedDriver]:
    """A driver in its own process, which is killed at the end of the block."""
    driver = sink_fixture.start(LOG, ALL, **{**GIVEN, **given})
    try:
        yield driver
    finally:
        driver.kill()


def expect_exact(sink_fixture: SinkFixture) -> None:
    """The next driver produces the same objects as an undisturbed one."""
    sink_fixture.run(LOG, ALL, **GIVEN)
    assert {key: sink_fixture.offsets(key) for key in sink_fixture.contents()} == OBJECTS
    assert sink_fixture.group() == {"log-0": 14}
    assert sink_fixture.orphans_after(ALL, LOG, GIVEN) == []


def a_record(nth: int) -> Predicate:
    """The put of record `nth`."""
    return kind("PutObject", key=f"/ledger/{nth:020d}")


@pytest.mark.parametrize("nth", [1, 4], ids=["the claim", "a round's record"])
def test_the_next_driver_finishes_a_record_stored_before_an_outage_of_puts(
    sink_fixture: SinkFixture, s3_proxy: FaultProxy, nth: int
) -> None:
    """The reply is lost, and puts fail until the retries end; reads succeed."""
    s3_proxy.when(a_record(nth), Drop(), point="after")
    s3_proxy.when(a_record(nth), Drop(), nth=2, times=None)
    with started(sink_fixture.through(s3_proxy)) as driver:
        assert driver.wait() == 75, driver.message
        assert driver.message.startswith("TransientError: ")
    assert nth in sink_fixture.records()
    s3_proxy.resume()
    expect_exact(sink_fixture)


def test_a_driver_exits_with_3_if_a_claim_follows_its_own_record(
    sink_fixture: SinkFixture, s3_proxy: FaultProxy
) -> None:
    s3_proxy.when(a_record(4), Drop(), point="after")
    hold = Hold()
    rule = s3_proxy.when(a_record(4), hold, nth=2)
    with started(sink_fixture.through(s3_proxy)) as driver:
        rule.wait()
        sink_fixture.run(LOG, ALL, **GIVEN)
        s3_proxy.when(a_record(4), Drop(), times=None)
        hold.release.set()
        assert driver.wait() == 3, driver.message
        assert driver.message.startswith("LedgerFenced: another driver has")
    expect_exact(sink_fixture)


@pytest.mark.parametrize("point", ["before", "after"])
@pytest.mark.parametrize("file", ["a record", "the claim", "an owner", "a snapshot"])
def test_a_persistent_409_is_a_success_if_the_object_is_stored_and_else_transient(
    sink_fixture: SinkFixture, s3_proxy: FaultProxy, file: str, point: Point
) -> None:
    matches = {
        "a record": a_record(4),
        "the claim": a_record(1),
        "an owner": kind("PutObject", key="owner.json"),
        "a snapshot": kind("PutObject", key="/snapshot/"),
    }[file]
    if point == "after":
        s3_proxy.when(matches, Drop(), point="after")
    s3_proxy.when(matches, CONFLICT, nth=1 if point == "before" else 2, times=None if point == "before" else 7)
    with started(sink_fixture.through(s3_proxy), context={"snapshot_every": 3}) as driver:
        assert driver.wait() == (75 if point == "before" else 0), driver.message
    s3_proxy.resume()
    expect_exact(sink_fixture)


def vanish(sink_fixture: SinkFixture, key: str) -> Callable[[S3Request], None]:
    """A fault: the uploads of the object are aborted before the request is forwarded."""
    return lambda request: sink_fixture.abort_uploads_of(key)


def lose(sink_fixture: SinkFixture) -> None:
    """A ledger with a closed object whose upload is lost."""
    with FaultProxy(sink_fixture.endpoint) as proxy:
        proxy.when(kind("CompleteMultipartUpload", key=FIRST), Drop(), times=None)
        with started(sink_fixture.through(proxy)) as driver:
            assert driver.wait() == 75, driver.message
    sink_fixture.abort_uploads_of(FIRST)


@pytest.mark.parametrize(("times", "code"), [(2, 0), (None, 75)])
def test_a_rebuild_is_retried_when_its_upload_vanishes(
    sink_fixture: SinkFixture, s3_proxy: FaultProxy, times: int | None, code: int
) -> None:
    lose(sink_fixture)
    s3_proxy.when(kind("UploadPart", key=FIRST), vanish(sink_fixture, FIRST), times=times)
    with started(sink_fixture.through(s3_proxy)) as driver:
        assert driver.wait() == code, driver.message
        assert driver.message.startswith("TransientError: " if code else "")
    assert [upload.key for upload in sink_fixture.s3.list_uploads(FIRST)] == []
    s3_proxy.resume()
    expect_exact(sink_fixture)


def test_each_of_several_drivers_that_start_at_once_succeeds_or_is_fenced(
    sink_fixture: SinkFixture, s3_proxy: FaultProxy
) -> None:
    hold = Hold()
    rule = s3_proxy.when(lambda request: request.kind == "ListObjectsV2", hold, nth=5)
    with started(sink_fixture.through(s3_proxy)) as slow:
        rule.wait()
        sink_fixture.run(LOG, ALL, **GIVEN)
        hold.release.set()
        assert slow.wait() in (0, 3), slow.message
    expect_exact(sink_fixture)


def test_a_damaged_ledger_file_ends_the_driver_with_7_and_names_the_key(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(LOG, StopCondition(until_caught_up=True), **GIVEN)
    key = max(listed.key for listed in sink_fixture.s3.list("") if "/ledger/" in listed.key)
    body = sink_fixture.content(key)
    sink_fixture.put(key, body[:-20])
    with started(sink_fixture) as driver:
        assert driver.wait() == 7
        assert driver.message.startswith(f"LedgerUnreadable: s3://{sink_fixture.bucket}/{key} cannot be read")
    sink_fixture.put(key, body)
    expect_exact(sink_fixture)


def test_a_folder_marker_in_the_ledger_is_ignored(sink_fixture: SinkFixture) -> None:
    sink_fixture.put("topics/_s3sink/default.log/ledger/", b"")
    expect_exact(sink_fixture)
