"""Two drivers of one sink: one goes on, the other is fenced, and what they have made is exact. Two sinks in one place:
the second is refused.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from devtools import bucket_listing
from devtools.faults.s3_proxy import Drop, FaultProxy, Hold, Point, Rule
from devtools.faults.s3_requests import Predicate, kind
from devtools.kafka import KafkaBroker
from devtools.processes import wait_until
from devtools.s3 import S3Server
from devtools.sink_process import Sink, local_spec, manifest
from devtools.topics import Topics
from sink_job.api.errors import LedgerFenced, OwnershipConflict
from sink_job.coordinator.context import StopCondition
from sink_job.coordinator.coordinator import Coordinator
from tests.conftest import SinkFactory
from tests.support.sink_fixture import Forked, Place, Ticking
from tests.support.synthetic_log import FunctionLog

pytestmark = pytest.mark.data

LOG = FunctionLog(records=14, value_bytes=1_800_000, holes=frozenset({3}))
"""Rounds of two records and objects of five: parts, leftovers and completions occur in most of them."""
GIVEN: dict[str, Any] = {"flush_size": 5, "max_records": 2, "part_size": "5Mi"}
ALL = StopCondition(until_caught_up=True, publish_open=True)
SNAPSHOTS = {"snapshot_every": 2}


@pytest.fixture(scope="module")
def undisturbed(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Where one driver has done it all alone."""
    place = Place.new(s3.endpoint, tmp_path_factory.mktemp("undisturbed"))
    place.run(LOG, ALL, **GIVEN)
    return place


@pytest.fixture
def proxies(s3: S3Server) -> Iterator[tuple[FaultProxy, FaultProxy]]:
    """A way to the server for each of two drivers."""
    with FaultProxy(s3.endpoint) as one, FaultProxy(s3.endpoint) as other:
        yield one, other


@contextmanager
def ended(driver: Forked) -> Iterator[Forked]:
    """The driver does not outlive the block."""
    try:
        yield driver
    finally:
        driver.kill()


def expect_exact(place: Place, undisturbed: Place) -> None:
    assert place.bodies() == undisturbed.bodies()
    assert place.group() == undisturbed.group()
    assert place.litter_after(ALL, LOG, GIVEN) == []


def firsts(place: Place) -> list[int]:
    """The first offset of each visible object."""
    return [place.offsets(key)[0] for key in place.bodies()]


def expect_fenced(driver: Forked) -> None:
    assert driver.wait() == 3
    assert driver.told.startswith("LedgerFenced: another driver has")
    assert "this one" in driver.told


# -- a driver that was stopped and goes on --------------------------------------------------------------------------


def a_record(nth: int) -> Predicate:
    """The put of record `nth`."""
    return kind("PutObject", key=f"/ledger/{nth:020d}")


COMPLETION = kind("CompleteMultipartUpload", key="+0+")
MOMENTS: dict[str, tuple[Predicate, Point, int]] = {
    "before an intent": (kind("PutObject", key="/intent/"), "before", 3),
    "before a leftover is staged": (kind("PutObject", key="/staging/"), "before", 3),
    "before a record": (a_record(4), "before", 1),
    "after a record": (a_record(4), "after", 1),
    "before a completion": (COMPLETION, "before", 1),
    "after a completion": (COMPLETION, "after", 1),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_driver_that_was_stopped_is_fenced_when_it_goes_on_though_its_records_were_dropped(
    place: Place, undisturbed: Place, proxies: tuple[FaultProxy, FaultProxy], moment: str
) -> None:
    matches, point, nth = MOMENTS[moment]
    hold = Hold()
    rule = proxies[0].when(matches, hold, point=point, nth=nth)
    with ended(place.through(proxies[0]).start(LOG, ALL, world=SNAPSHOTS, **GIVEN)) as stopped:
        rule.wait()
        stopped.send(signal.SIGSTOP)
        last = max(place.records())
        place.run(LOG, ALL, world=SNAPSHOTS, **GIVEN)
        assert last not in place.records()
        hold.release.set()
        stopped.send(signal.SIGCONT)
        expect_fenced(stopped)
    expect_exact(place, undisturbed)


def test_a_fenced_driver_says_so_though_the_store_only_closes_its_connections(
    place: Place, undisturbed: Place, proxies: tuple[FaultProxy, FaultProxy]
) -> None:
    """As a store does that refuses a part before it has read it, when another driver has aborted the upload."""
    hold = Hold()
    rule = proxies[0].when(kind("PutObject", key="/intent/"), hold, nth=3)
    with ended(place.through(proxies[0]).start(LOG, ALL, **GIVEN)) as stopped:
        rule.wait()
        place.run(LOG, ALL, **GIVEN)
        closed = proxies[0].when(kind("UploadPart"), Drop(), times=None)
        hold.release.set()
        expect_fenced(stopped)
        assert closed.fired
    expect_exact(place, undisturbed)


def test_of_two_drivers_that_start_at_once_the_later_claim_wins(
    place: Place, undisturbed: Place, proxies: tuple[FaultProxy, FaultProxy]
) -> None:
    holds = Hold(), Hold()
    slow = proxies[0].when(a_record(1), holds[0])
    quick = proxies[1].when(a_record(4), holds[1])
    with ended(place.through(proxies[0]).start(LOG, ALL, **GIVEN)) as one:
        slow.wait()
        with ended(place.through(proxies[1]).start(LOG, ALL, **GIVEN)) as other:
            quick.wait()
            holds[0].release.set()
            assert one.wait() == 0, one.told
            holds[1].release.set()
            expect_fenced(other)
    expect_exact(place, undisturbed)


def test_an_idle_driver_finds_out_that_it_was_fenced(place: Place) -> None:
    log = FunctionLog(records=10)
    driver = place.driver(log, StopCondition(), flush_size=5, clock=Ticking(), world={"look_every": 1})
    with InBackground(driver) as idle:
        wait_until(lambda: place.group() == {"log-0": 10}, "the driver's commit", seconds=30)
        place.run(log, ALL, flush_size=5)
        assert isinstance(idle.ended_by(), LedgerFenced)


class InBackground:
    """A driver in a thread, stopped at the end."""

    def __init__(self, driver: Coordinator) -> None:
        self._driver = driver
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> InBackground:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._driver.stop()
        self._thread.join(30)

    def ended_by(self) -> BaseException | None:
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self._error

    def _run(self) -> None:
        try:
            self._driver.run()
        except BaseException as error:
            self._error = error


# -- two sinks in one place ----------------------------------------------------------------------------------------

SHORT = FunctionLog(records=10)
LONGER = FunctionLog(records=20)


def refused(place: Place, **given: Any) -> str:
    """The sentence with which a sink of these settings is refused."""
    with pytest.raises(OwnershipConflict) as error:
        place.run(LONGER, ALL, flush_size=5, **given)
    assert error.value.exit_code == 7
    return str(error.value)


def test_another_sink_on_the_same_ledger_is_refused_and_nothing_is_touched(place: Place) -> None:
    place.run(SHORT, ALL, flush_size=5, spec={"sinkId": "shared"})
    before = place.etags(), place.records()
    told = refused(place, name="other", spec={"sinkId": "shared"})
    assert f"the ledger s3://{place.bucket}/topics/_s3sink/shared/ belongs to S3Sink default/log" in told
    assert "--take-over" in told
    assert (place.etags(), place.records()) == before


def test_another_sink_on_the_same_topic_below_the_same_topics_dir_is_refused(place: Place) -> None:
    place.run(SHORT, ALL, flush_size=5)
    told = refused(place, name="other")
    assert f"topic log as .json below s3://{place.bucket}/topics belongs to S3Sink default/log" in told
    assert place.group() == {"log-0": 10}


def test_another_sink_with_another_topics_dir_or_extension_is_welcome(place: Place) -> None:
    place.run(SHORT, ALL, flush_size=5)
    (place.folder / "group.json").unlink()
    place.run(SHORT, ALL, flush_size=5, name="other", compression="Gzip")
    assert len(place.keys()) == 4


@pytest.mark.parametrize("given", [{"name": "other", "spec": {"sinkId": "default.log"}}, {"name": "other"}])
def test_take_over_goes_on_where_the_owner_was_and_the_owner_is_refused_from_then_on(
    place: Place, given: dict[str, Any]
) -> None:
    place.run(SHORT, ALL, flush_size=5)
    take = StopCondition(until_caught_up=True, publish_open=True, take_over=True)
    place.run(LONGER, take, flush_size=5, **given)
    assert firsts(place) == [0, 5, 10, 15]
    assert place.group() == {"log-0": 20}
    assert "belongs to S3Sink default/other" in refused(place)


# -- with Spark ----------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_a_command_that_was_stopped_ends_with_3_when_another_has_taken_over_meanwhile(
    kafka: KafkaBroker,
    topics: Topics,
    topic: str,
    s3: S3Server,
    bucket: str,
    s3_proxy: FaultProxy,
    sink_of: SinkFactory,
) -> None:
    topics.create(topic)
    topics.produce_values(topic, (b'{"n":%d}' % n for n in range(25)))

    def sink_through(endpoint: str) -> Sink:
        spec = local_spec(
            bootstrap=kafka.bootstrap,
            topics=[topic],
            endpoint=endpoint,
            bucket=bucket,
            rotation={"flushSize": 10},
            rounds={"minBytes": 0, "maxDelay": "100ms"},
        )
        return sink_of(manifest("twice", spec))

    hold = Hold()
    rule: Rule = s3_proxy.when(kind("CompleteMultipartUpload", key="+0+"), hold)
    stopped = sink_through(s3_proxy.endpoint).start("run")
    Sink.wait_for(lambda: bool(rule.fired), "the first completion", stopped)
    stopped.pause()
    other = sink_through(s3.endpoint)
    other.catch_up()
    hold.release.set()
    stopped.resume()
    assert stopped.wait(60) == 3, stopped.log
    assert "LedgerFenced: another driver has written record" in stopped.log
    lines = [
        line
        for key in bucket_listing.objects(s3.client(), bucket)
        for line in bucket_listing.lines(s3.client(), bucket, key)
    ]
    assert lines == [b'{"n":%d}' % n for n in range(25)]
    assert topics.committed("s3sink-default.twice", topic) == {0: 25}
