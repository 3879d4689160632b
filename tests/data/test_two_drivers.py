"""Two drivers of one sink: one continues, the other is fenced, and their objects are exact. Two sinks in one directory:
the second one is rejected.
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
from devtools.sink_process import SinkCommand, local_spec, manifest
from devtools.topics import Topics
from sink_job.api.errors import LedgerFenced, OwnershipConflict
from sink_job.coordinator.context import StopCondition
from sink_job.coordinator.coordinator import Coordinator
from sink_job.ledger.ownership import Owner
from tests.conftest import SinkFactory
from tests.support.sink_fixture import ForkedDriver, SinkFixture, TickingClock
from tests.support.synthetic_log import SyntheticLog

pytestmark = pytest.mark.data

LOG = SyntheticLog(records=14, value_bytes=1_800_000, gaps=frozenset({3}))
"""Rounds of two records and objects of five: most rounds have parts, staged remainders and completions."""
GIVEN: dict[str, Any] = {"flush_size": 5, "max_records": 2, "part_size": "5Mi"}
ALL = StopCondition(until_caught_up=True, publish_open=True)
SNAPSHOTS = {"snapshot_every": 2}


@pytest.fixture(scope="module")
def undisturbed(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> SinkFixture:
    """The result of a single driver."""
    sink_fixture = SinkFixture.new(s3.endpoint, tmp_path_factory.mktemp("undisturbed"))
    sink_fixture.run(LOG, ALL, **GIVEN)
    return sink_fixture


@pytest.fixture
def proxies(s3: S3Server) -> Iterator[tuple[FaultProxy, FaultProxy]]:
    """A proxy for each of two drivers."""
    with FaultProxy(s3.endpoint) as one, FaultProxy(s3.endpoint) as other:
        yield one, other


@contextmanager
def ended(driver: ForkedDriver) -> Iterator[ForkedDriver]:
    """Kills the driver at the end of the block."""
    try:
        yield driver
    finally:
        driver.kill()


def expect_exact(sink_fixture: SinkFixture, undisturbed: SinkFixture) -> None:
    assert sink_fixture.contents() == undisturbed.contents()
    assert sink_fixture.group() == undisturbed.group()
    assert sink_fixture.orphans_after(ALL, LOG, GIVEN) == []


def first_offsets(sink_fixture: SinkFixture) -> list[int]:
    """The first offset of each visible object."""
    return [sink_fixture.offsets(key)[0] for key in sink_fixture.contents()]


def expect_fenced(driver: ForkedDriver) -> None:
    assert driver.wait() == 3
    assert driver.message.startswith("LedgerFenced: another driver has")
    assert "this one" in driver.message


# -- a driver that was paused and resumes ----------------------------------------------------------------------------


def a_record(nth: int) -> Predicate:
    """The put of record `nth`."""
    return kind("PutObject", key=f"/ledger/{nth:020d}")


COMPLETION = kind("CompleteMultipartUpload", key="+0+")
MOMENTS: dict[str, tuple[Predicate, Point, int]] = {
    "before an intent": (kind("PutObject", key="/intent/"), "before", 3),
    "before a remainder is staged": (kind("PutObject", key="/staging/"), "before", 3),
    "before a record": (a_record(4), "before", 1),
    "after a record": (a_record(4), "after", 1),
    "before a completion": (COMPLETION, "before", 1),
    "after a completion": (COMPLETION, "after", 1),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_resumed_driver_is_fenced_although_its_records_were_dropped(
    sink_fixture: SinkFixture, undisturbed: SinkFixture, proxies: tuple[FaultProxy, FaultProxy], moment: str
) -> None:
    matches, point, nth = MOMENTS[moment]
    hold = Hold()
    rule = proxies[0].when(matches, hold, point=point, nth=nth)
    with ended(sink_fixture.through(proxies[0]).start(LOG, ALL, context=SNAPSHOTS, **GIVEN)) as stopped:
        rule.wait()
        stopped.send(signal.SIGSTOP)
        last = max(sink_fixture.records())
        sink_fixture.run(LOG, ALL, context=SNAPSHOTS, **GIVEN)
        assert last not in sink_fixture.records()
        hold.release.set()
        stopped.send(signal.SIGCONT)
        expect_fenced(stopped)
    expect_exact(sink_fixture, undisturbed)


def test_a_fenced_driver_reports_it_although_the_store_closes_its_connections(
    sink_fixture: SinkFixture, undisturbed: SinkFixture, proxies: tuple[FaultProxy, FaultProxy]
) -> None:
    """A store does so when it rejects a part before it has read it, because another driver has aborted the upload."""
    hold = Hold()
    rule = proxies[0].when(kind("PutObject", key="/intent/"), hold, nth=3)
    with ended(sink_fixture.through(proxies[0]).start(LOG, ALL, **GIVEN)) as stopped:
        rule.wait()
        sink_fixture.run(LOG, ALL, **GIVEN)
        closed = proxies[0].when(kind("UploadPart"), Drop(), times=None)
        hold.release.set()
        expect_fenced(stopped)
        assert closed.fired
    expect_exact(sink_fixture, undisturbed)


def test_the_later_claim_of_two_concurrent_drivers_wins(
    sink_fixture: SinkFixture, undisturbed: SinkFixture, proxies: tuple[FaultProxy, FaultProxy]
) -> None:
    holds = Hold(), Hold()
    slow = proxies[0].when(a_record(1), holds[0])
    quick = proxies[1].when(a_record(4), holds[1])
    with ended(sink_fixture.through(proxies[0]).start(LOG, ALL, **GIVEN)) as one:
        slow.wait()
        with ended(sink_fixture.through(proxies[1]).start(LOG, ALL, **GIVEN)) as other:
            quick.wait()
            holds[0].release.set()
            assert one.wait() == 0, one.message
            holds[1].release.set()
            expect_fenced(other)
    expect_exact(sink_fixture, undisturbed)


def test_an_idle_driver_detects_that_it_was_fenced(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=10)
    driver = sink_fixture.driver(
        log, StopCondition(), flush_size=5, clock=TickingClock(), context={"head_check_interval_ms": 1}
    )
    with BackgroundDriver(driver) as idle:
        wait_until(lambda: sink_fixture.group() == {"log-0": 10}, "the driver's commit", seconds=30)
        sink_fixture.run(log, ALL, flush_size=5)
        assert isinstance(idle.ended_by(), LedgerFenced)


class BackgroundDriver:
    """A driver in a thread, which is stopped at the end of the block."""

    def __init__(self, driver: Coordinator) -> None:
        self._driver = driver
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> BackgroundDriver:
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


# -- two sinks in one directory --------------------------------------------------------------------------------------

SHORT = SyntheticLog(records=10)
LONGER = SyntheticLog(records=20)


def rejection(sink_fixture: SinkFixture, **given: Any) -> str:
    """The error message for a sink with these settings."""
    with pytest.raises(OwnershipConflict) as error:
        sink_fixture.run(LONGER, ALL, flush_size=5, **given)
    assert error.value.exit_code == 7
    return str(error.value)


def test_another_sink_on_the_same_ledger_is_rejected_and_changes_nothing(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SHORT, ALL, flush_size=5, spec={"sinkId": "shared"})
    before = sink_fixture.etags(), sink_fixture.records()
    message = rejection(sink_fixture, name="other", spec={"sinkId": "shared"})
    assert f"the ledger s3://{sink_fixture.bucket}/topics/_s3sink/shared/ belongs to S3Sink default/log" in message
    assert "--take-over" in message
    assert (sink_fixture.etags(), sink_fixture.records()) == before


def test_another_sink_on_the_same_topic_and_topics_dir_is_rejected(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SHORT, ALL, flush_size=5)
    message = rejection(sink_fixture, name="other")
    assert f"topic log as .json below s3://{sink_fixture.bucket}/topics belongs to S3Sink default/log" in message
    assert sink_fixture.group() == {"log-0": 10}


def test_another_sink_with_another_topics_dir_or_extension_is_accepted(sink_fixture: SinkFixture) -> None:
    sink_fixture.run(SHORT, ALL, flush_size=5)
    (sink_fixture.folder / "group.json").unlink()
    sink_fixture.run(SHORT, ALL, flush_size=5, name="other", compression="Gzip")
    assert len(sink_fixture.keys()) == 4


@pytest.mark.parametrize("given", [{"name": "other", "spec": {"sinkId": "default.log"}}, {"name": "other"}])
def test_take_over_continues_at_the_owners_position_and_the_owner_is_rejected(
    sink_fixture: SinkFixture, given: dict[str, Any]
) -> None:
    sink_fixture.run(SHORT, ALL, flush_size=5)
    take = StopCondition(until_caught_up=True, publish_open=True, take_over=True)
    sink_fixture.run(LONGER, take, flush_size=5, **given)
    assert first_offsets(sink_fixture) == [0, 5, 10, 15]
    assert sink_fixture.group() == {"log-0": 20}
    assert "belongs to S3Sink default/other" in rejection(sink_fixture)


@pytest.mark.parametrize("given", [{"name": "other", "spec": {"sinkId": "default.log"}}, {"name": "other"}])
def test_a_hand_over_continues_at_the_owners_position_and_the_owner_is_rejected(
    sink_fixture: SinkFixture, given: dict[str, Any]
) -> None:
    sink_fixture.run(SHORT, ALL, flush_size=5)
    owner = Owner("function", "default", "log", "default.log")
    take = StopCondition(until_caught_up=True, publish_open=True, take_over_from=owner)
    sink_fixture.run(LONGER, take, flush_size=5, **given)
    assert first_offsets(sink_fixture) == [0, 5, 10, 15]
    assert sink_fixture.group() == {"log-0": 20}
    assert "belongs to S3Sink default/other" in rejection(sink_fixture)


# -- with Spark ------------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_a_resumed_command_exits_with_3_after_another_one_took_over(
    kafka: KafkaBroker,
    topics: Topics,
    topic: str,
    s3: S3Server,
    bucket: str,
    s3_proxy: FaultProxy,
    sink_here: SinkFactory,
) -> None:
    topics.create(topic)
    topics.produce_values(topic, (b'{"n":%d}' % n for n in range(25)))

    def sink_through(endpoint: str) -> SinkCommand:
        spec = local_spec(
            bootstrap=kafka.bootstrap,
            topics=[topic],
            endpoint=endpoint,
            bucket=bucket,
            rotation={"flushSize": 10},
            rounds={"minBytes": 0, "maxDelay": "100ms"},
        )
        return sink_here(manifest("twice", spec))

    hold = Hold()
    rule: Rule = s3_proxy.when(kind("CompleteMultipartUpload", key="+0+"), hold)
    stopped = sink_through(s3_proxy.endpoint).start("run")
    SinkCommand.wait_for(lambda: bool(rule.fired), "the first completion", stopped)
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
