"""What is done when a clock went back: a time that is still to come was written by one that was wrong."""

from __future__ import annotations

from s3sink_operator.failures import backoff
from s3sink_operator.sizing import memory_sizing
from s3sink_operator.sizing.memory_sizing import DAY, Bounds, SizingState
from sink_job.api.errors import ConfigurationError
from sink_job.api.required_memory import SizingInputs
from sink_job.api.units.quantities import GI
from tests.operator.fake_cluster import MINUTE, START, report, running


def test_a_pause_that_is_longer_than_any_is_not_waited_for() -> None:
    cluster = running()
    cluster.wait(365 * DAY)
    cluster.fail(ConfigurationError("no"))
    cluster.converge()
    cluster.wait(-365 * DAY)
    cluster.converge_with_kubelet()
    assert cluster.ready == ("True", "Running")


def test_a_pause_is_waited_for_to_its_end() -> None:
    longest = int(max(backoff.MAX_PAUSE.values()) * (1 + backoff.JITTER))
    assert backoff.left_ms(START + longest, START) == longest
    assert backoff.left_ms(START + longest + 1, START) is None
    assert backoff.left_ms(START, START) is None


def test_a_driver_on_a_lost_node_is_replaced_after_the_usual_time() -> None:
    cluster = running()
    cluster.wait(DAY)
    cluster.nodes = {"node-1": False}
    cluster.converge()
    cluster.wait(-DAY)
    cluster.converge()
    cluster.wait(cluster.settings.node_lost_timeout_ms)
    cluster.reconcile()
    assert "delete flights-s3sink-driver by force" in cluster.log


def test_progress_is_written_at_the_usual_interval() -> None:
    cluster = running()
    cluster.wait(DAY)
    cluster.report = report(now=cluster.now, lag=5)
    cluster.converge()
    cluster.wait(-DAY)
    for lag in (1000, 1001):
        cluster.wait(MINUTE)
        cluster.report = report(now=cluster.now, lag=lag)
        cluster.converge()
        assert cluster.status["progress"]["lag"]["records"] == lag


def test_what_a_kill_taught_about_memory_and_the_changes_of_a_day_count_from_now() -> None:
    later = START + 365 * DAY
    state = SizingState(driver_minimum=3 * GI, minimum_since=later, low_since=later, changes=(later,))
    made = memory_sizing.plan(
        SizingInputs(slots=2, part_size=25 << 20), Bounds(max=8 * GI), state, current=4 * GI, now=START
    )
    assert (made.state.minimum_since, made.state.low_since, made.state.changes) == (START, START, (START,))
