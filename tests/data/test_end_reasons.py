"""The exit code and the reason with which a driver's process ends when the store fails it, over a real S3 server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from devtools.faults.s3_proxy import Answer, Drop, FaultProxy, Hold, Point
from devtools.faults.s3_requests import Predicate, Request, kind
from sink_job.coordinator.context import StopCondition
from tests.support.sink_fixture import Forked, Place
from tests.support.synthetic_log import FunctionLog

pytestmark = pytest.mark.data

LOG = FunctionLog(records=14, value_bytes=100_000)
GIVEN: dict[str, Any] = {"flush_size": 5, "max_records": 2}
ALL = StopCondition(until_caught_up=True, publish_open=True)
FIRST = "topics/log/partition=0/log+0+0000000000.json"
OBJECTS = {
    f"topics/log/partition=0/log+0+{first:010d}.json": list(range(first, min(first + 5, 14))) for first in (0, 5, 10)
}
CONFLICT = Answer(409, "ConditionalRequestConflict")


@contextmanager
def started(place: Place, **given: Any) -> Iterator[Forked]:
    """A driver in a process, which does not outlive the block."""
    driver = place.start(LOG, ALL, **{**GIVEN, **given})
    try:
        yield driver
    finally:
        driver.kill()


def expect_exact(place: Place) -> None:
    """The next driver makes what an undisturbed one would have made."""
    place.run(LOG, ALL, **GIVEN)
    assert {key: place.offsets(key) for key in place.bodies()} == OBJECTS
    assert place.group() == {"log-0": 14}
    assert place.litter_after(ALL, LOG, GIVEN) == []


def a_record(nth: int) -> Predicate:
    """The put of record `nth`."""
    return kind("PutObject", key=f"/ledger/{nth:020d}")


@pytest.mark.parametrize("nth", [1, 4], ids=["the claim", "a round's record"])
def test_a_driver_whose_record_was_stored_before_an_outage_of_puts_ends_with_75_and_the_next_one_finishes_it(
    place: Place, s3_proxy: FaultProxy, nth: int
) -> None:
    """Its reply is lost, and no put answers for longer than is tried; reading works."""
    s3_proxy.when(a_record(nth), Drop(), point="after")
    s3_proxy.when(a_record(nth), Drop(), nth=2, times=None)
    with started(place.through(s3_proxy)) as driver:
        assert driver.wait() == 75, driver.told
        assert driver.told.startswith("TransientError: ")
    assert nth in place.records()
    s3_proxy.resume()
    expect_exact(place)


def test_a_driver_whose_own_record_was_followed_by_another_ones_claim_ends_with_3(
    place: Place, s3_proxy: FaultProxy
) -> None:
    s3_proxy.when(a_record(4), Drop(), point="after")
    hold = Hold()
    rule = s3_proxy.when(a_record(4), hold, nth=2)
    with started(place.through(s3_proxy)) as driver:
        rule.wait()
        place.run(LOG, ALL, **GIVEN)
        s3_proxy.when(a_record(4), Drop(), times=None)
        hold.release.set()
        assert driver.wait() == 3, driver.told
        assert driver.told.startswith("LedgerFenced: another driver has")
    expect_exact(place)


@pytest.mark.parametrize("point", ["before", "after"])
@pytest.mark.parametrize("file", ["a record", "the claim", "an owner", "a snapshot"])
def test_a_409_that_persists_is_worth_trying_again_where_nothing_is_stored_and_a_success_where_it_is(
    place: Place, s3_proxy: FaultProxy, file: str, point: Point
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
    with started(place.through(s3_proxy), world={"snapshot_every": 3}) as driver:
        assert driver.wait() == (75 if point == "before" else 0), driver.told
    s3_proxy.resume()
    expect_exact(place)


def vanish(place: Place, key: str) -> Callable[[Request], None]:
    """A fault: the uploads of the object are gone before the request is passed on."""
    return lambda request: place.abort_uploads_of(key)


def lose(place: Place) -> None:
    """A ledger that names an object whose upload is gone."""
    with FaultProxy(place.endpoint) as proxy:
        proxy.when(kind("CompleteMultipartUpload", key=FIRST), Drop(), times=None)
        with started(place.through(proxy)) as driver:
            assert driver.wait() == 75, driver.told
    place.abort_uploads_of(FIRST)


@pytest.mark.parametrize(("times", "code"), [(2, 0), (None, 75)])
def test_an_upload_that_vanishes_while_its_object_is_made_again_is_tried_again_a_few_times(
    place: Place, s3_proxy: FaultProxy, times: int | None, code: int
) -> None:
    lose(place)
    s3_proxy.when(kind("UploadPart", key=FIRST), vanish(place, FIRST), times=times)
    with started(place.through(s3_proxy)) as driver:
        assert driver.wait() == code, driver.told
        assert driver.told.startswith("TransientError: " if code else "")
    assert [upload.key for upload in place.s3.list_uploads(FIRST)] == []
    s3_proxy.resume()
    expect_exact(place)


def test_of_drivers_that_start_a_sink_at_once_each_ends_well_or_fenced(place: Place, s3_proxy: FaultProxy) -> None:
    hold = Hold()
    rule = s3_proxy.when(lambda request: request.kind == "ListObjectsV2", hold, nth=5)
    with started(place.through(s3_proxy)) as slow:
        rule.wait()
        place.run(LOG, ALL, **GIVEN)
        hold.release.set()
        assert slow.wait() in (0, 3), slow.told
    expect_exact(place)


def test_a_damaged_file_of_the_ledger_ends_the_driver_with_7_and_its_key(place: Place) -> None:
    place.run(LOG, StopCondition(until_caught_up=True), **GIVEN)
    key = max(listed.key for listed in place.s3.list("") if "/ledger/" in listed.key)
    body = place.body(key)
    place.put(key, body[:-20])
    with started(place) as driver:
        assert driver.wait() == 7
        assert driver.told.startswith(f"LedgerUnreadable: s3://{place.bucket}/{key} cannot be read")
    place.put(key, body)
    expect_exact(place)


def test_a_folder_marker_in_the_ledger_is_ignored(place: Place) -> None:
    place.put("topics/_s3sink/default.log/ledger/", b"")
    expect_exact(place)
