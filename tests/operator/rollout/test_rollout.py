"""A rollout of new operator defaults restarts one Ready driver after the other, and stops at the first that fails."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_operator.types import Rejection, Unreachable
from sink_job.api.errors import BucketNotFound, TransientError
from sink_job.api.report import RunState
from tests.operator.fake_cluster import MINUTE, Cluster, report
from tests.operator.rollout.fleet import NEW, OLD, Fleet, broken_rollout, updated


def test_a_rollout_restarts_every_driver_and_only_one_at_a_time() -> None:
    fleet = Fleet(5)
    fleet.start_operator(NEW)
    fleet.run(minutes=10)
    assert set(fleet.images().values()) == {NEW}
    assert fleet.worst == 1
    assert not fleet.not_ready()
    assert not fleet.with_condition("RolloutPending")


def test_the_next_sink_starts_when_the_one_before_was_ready_for_the_pause() -> None:
    fleet = Fleet(3)
    fleet.start_operator(NEW)
    fleet.run()
    assert updated(fleet) == 1
    fleet.run(minutes=20 / 60)
    assert updated(fleet) == 1
    fleet.run(minutes=20 / 60)
    assert updated(fleet) == 2


def test_the_first_sink_of_a_rollout_goes_alone_then_as_many_as_are_allowed() -> None:
    fleet = Fleet(10, max_unavailable="4")
    fleet.start_operator(NEW)
    fleet.run()
    assert updated(fleet) == 1
    fleet.run(minutes=0.5)
    assert updated(fleet) == 5


def test_a_sink_that_waits_stays_ready_and_has_the_condition() -> None:
    fleet = Fleet(2)
    fleet.start_operator(NEW)
    fleet.run()
    (waiting,) = fleet.with_condition("RolloutPending")
    cluster = fleet.sinks[waiting]
    assert cluster.ready == ("True", "Running")
    assert "a restart for the new defaults of the operator is pending" in cluster.condition("Ready")["message"]
    assert f"image {OLD}, new: {NEW}" in cluster.condition("RolloutPending")["message"]


def test_the_attempt_that_a_rollout_ends_has_the_reason() -> None:
    fleet = Fleet(1)
    fleet.start_operator(NEW)
    fleet.run()
    assert fleet.sinks["sink-0000"].status["attempts"][1]["reason"] == "DefaultsChanged"


def test_a_broken_default_image_takes_down_one_sink() -> None:
    fleet = broken_rollout(3)
    assert len(fleet.not_ready()) == 1
    assert Counter(fleet.images().values()) == {OLD: 2, NEW: 1}


def test_a_broken_default_image_takes_down_one_sink_even_where_more_are_allowed() -> None:
    fleet = broken_rollout(10, max_unavailable="50%")
    assert len(fleet.not_ready()) == 1


def test_a_halted_rollout_is_a_condition_and_an_event_with_the_sink_and_the_reason() -> None:
    fleet = broken_rollout(3)
    (down,) = fleet.not_ready()
    waiting = fleet.with_condition("RolloutHalted")
    assert sorted([*waiting, down]) == sorted(fleet.sinks)
    for name in waiting:
        message = fleet.sinks[name].condition("RolloutHalted")["message"]
        assert f"data/{down} (ImagePullFailed)" in message
        assert fleet.sinks[name].events.count(("Warning", "RolloutHalted")) == 1


def test_a_halted_rollout_writes_nothing_more() -> None:
    fleet = broken_rollout(3)
    assert not any(fleet.reconcile(name) for name in fleet.sinks)


def test_a_restarted_operator_stays_halted() -> None:
    fleet = broken_rollout(3)
    for minutes in (0, 12, 1):
        fleet.start_operator(NEW)
        fleet.run(minutes=minutes)
    assert len(fleet.not_ready()) == 1
    assert fleet.state.halted_by is not None


def test_a_restarted_operator_waits_until_it_has_observed_the_updated_sinks() -> None:
    """The status of a sink whose driver failed meanwhile still says that it is Ready."""
    fleet = Fleet(3)
    fleet.start_operator(NEW)
    fleet.run(minutes=0.5)
    first = next(name for name, image in fleet.images().items() if image == NEW)
    fleet.sinks[first].fail(BucketNotFound("gone"))
    before = updated(fleet)
    fleet.start_operator(NEW)
    others = [name for name in fleet.sinks if name != first]
    for name in [*others, first, *others]:
        fleet.reconcile(name)
    assert updated(fleet) == before


@pytest.mark.parametrize("writes", range(5))
def test_an_operator_killed_after_any_write_of_a_restart_completes_the_rollout(writes: int) -> None:
    fleet = Fleet(3)
    fleet.start_operator(NEW)
    for name in fleet.sinks:
        fleet.reconcile(name, writes=writes)
        fleet.start_operator(NEW)
    fleet.run(minutes=5)
    assert set(fleet.images().values()) == {NEW}
    assert fleet.worst == 1


def test_a_rollout_continues_when_the_sink_that_halts_it_is_ready_again() -> None:
    fleet = broken_rollout(3)
    fleet.broken = set()
    (down,) = fleet.not_ready()
    fleet.sinks[down].run(name=down, sink_id=f"data.{down}")
    fleet.run(minutes=10)
    assert set(fleet.images().values()) == {NEW}
    assert not fleet.with_condition("RolloutHalted")


def test_a_rollout_continues_when_the_sink_that_halts_it_is_paused() -> None:
    fleet = broken_rollout(3)
    fleet.broken = set()
    (down,) = fleet.not_ready()
    fleet.sinks[down].edit(state="Paused")
    fleet.run(minutes=10)
    assert updated(fleet) == 2


def test_a_sink_that_fails_after_its_turn_halts_the_rollout() -> None:
    """Also where it was Ready for longer than the pause."""
    fleet = Fleet(4)
    fleet.start_operator(NEW)
    fleet.run(minutes=0.5)
    first, *_ = [name for name, image in fleet.images().items() if image == NEW]
    fleet.sinks[first].fail(TransientError("slow"))
    fleet.run(minutes=1)
    assert updated(fleet) == 2
    assert fleet.state.halted_by == f"not Ready after their restart: data/{first} (TransientError)"


def test_a_driver_that_starts_for_longer_than_ten_minutes_halts_the_rollout() -> None:
    fleet = Fleet(2)
    fleet.start_operator(NEW)
    while updated(fleet) == 0:
        fleet.step()
    (name,) = fleet.not_ready()
    fleet.reconcile(name)
    fleet.sinks[name].run(RunState.RECOVERING, name=name, sink_id=f"data.{name}")
    fleet.run(minutes=9)
    assert fleet.state.halted_by is None
    fleet.run(minutes=2)
    assert fleet.state.halted_by == f"not Ready after their restart: data/{name} (Recovering)"


def test_a_rollback_recovers_at_once() -> None:
    fleet = broken_rollout(3)
    before = {name: cluster.driver for name, cluster in fleet.sinks.items()}
    (down,) = fleet.not_ready()
    fleet.start_operator(OLD)
    fleet.run()
    assert not fleet.not_ready()
    assert set(fleet.images().values()) == {OLD}
    assert not fleet.with_condition("RolloutPending") + fleet.with_condition("RolloutHalted")
    restarted = [name for name, cluster in fleet.sinks.items() if cluster.driver != before[name]]
    assert restarted == [down]


def test_after_a_broken_image_the_next_one_is_tried_on_the_sink_that_is_down() -> None:
    fleet = broken_rollout(3)
    (down,) = fleet.not_ready()
    fleet.broken = {NEW, "job:3"}
    fleet.start_operator("job:3")
    fleet.run(minutes=5)
    assert fleet.not_ready() == [down]
    assert fleet.images()[down] == "job:3"


@pytest.mark.parametrize("state", [RunState.STARTING, RunState.RECOVERING, RunState.FAILED])
def test_a_driver_that_is_not_ready_gets_the_new_image_at_once(state: RunState) -> None:
    fleet = Fleet(4)
    for cluster in fleet.sinks.values():
        cluster.report = report(state)
    fleet.run()
    assert len(fleet.not_ready()) == 4
    fleet.start_operator(NEW)
    fleet.run()
    assert set(fleet.images().values()) == {NEW}


def test_a_driver_that_does_not_answer_waits_for_its_turn() -> None:
    """It may well run, and without the network of the operator no driver answers."""
    fleet = Fleet(3)
    fleet.start_operator(NEW)
    fleet.broken = {NEW}
    fleet.run()
    for name in fleet.with_condition("RolloutPending"):
        fleet.sinks[name].report = Unreachable(message="timeout")
    fleet.run(minutes=5)
    assert updated(fleet) == 1


def test_sinks_that_were_not_ready_before_do_not_hold_up_a_rollout() -> None:
    fleet = Fleet(4)
    fleet.sinks["sink-0001"].fail(BucketNotFound("gone"))
    fleet.run()
    fleet.start_operator(NEW)
    for _ in range(30):
        fleet.sinks["sink-0001"].fail(BucketNotFound("gone"))
        fleet.run(minutes=0.5)
    assert fleet.not_ready() == ["sink-0001"]
    assert not fleet.with_condition("RolloutPending")
    assert {image for name, image in fleet.images().items() if name != "sink-0001"} == {NEW}


def test_a_sink_that_an_earlier_rollout_took_down_holds_up_the_next_one_for_ten_minutes() -> None:
    fleet = broken_rollout(3)
    (down,) = fleet.not_ready()
    fleet.broken = {down}
    fleet.start_operator("job:3")
    fleet.run(minutes=9)
    assert Counter(fleet.images().values()) == {OLD: 2, "job:3": 1}
    fleet.run(minutes=5)
    assert set(fleet.images().values()) == {"job:3"}
    assert fleet.not_ready() == [down]


def test_a_status_that_is_rejected_starts_no_restart() -> None:
    """Without the record in the status, the next operator would not know of it."""
    fleet = Fleet(1)
    cluster = fleet.sinks["sink-0000"]
    cluster.rejections = [
        Rejection(kind="S3Sink", name="sink-0000", status=422, reason="", message="", at_ms=fleet.now)
    ]
    fleet.start_operator(NEW)
    fleet.run()
    assert fleet.images() == {"sink-0000": OLD}
    fleet.now += MINUTE
    cluster.rejections = []
    fleet.run()
    assert fleet.images() == {"sink-0000": NEW}


THINGS = ["step", "ten seconds", "restart", "roll back", "roll on", "crash", "killed", "edit"]


@given(st.lists(st.tuples(st.sampled_from(THINGS), st.integers(0, 4)), max_size=30), st.booleans())
def test_never_more_ready_sinks_than_allowed_are_restarted_by_a_rollout(
    events: list[tuple[str, int]], is_broken: bool
) -> None:
    """Whatever fails, and whenever the operator is killed. The counts of the tracker are those of a new one."""
    fleet = Fleet(5, max_unavailable="2")
    fleet.broken = {NEW} if is_broken else set()
    fleet.start_operator(NEW)
    for event, number in events:
        name = f"sink-{number:04}"
        match event:
            case "step":
                fleet.step()
            case "ten seconds":
                fleet.now += 10_000
            case "restart":
                fleet.start_operator(fleet.settings.image)
            case "roll back":
                fleet.start_operator(OLD)
            case "roll on":
                fleet.start_operator(NEW)
            case "crash":
                fleet.sinks[name].fail(TransientError("slow"))
            case "killed":
                fleet.reconcile(name, writes=1)
                fleet.start_operator(fleet.settings.image)
            case "edit":
                fleet.sinks[name].edit(deletionPolicy="Retain")
        down = [each for each in fleet.sinks.values() if _taken_down(each)]
        assert len(down) <= 2
        assert fleet.recounted() == fleet.state


def _taken_down(cluster: Cluster) -> bool:
    """Whether the last restart was by a rollout, and the sink has not been available since."""
    mark = cluster.status.get("rollout") or {}
    return bool(mark) and "availableTime" not in mark
