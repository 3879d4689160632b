"""Which changes a rollout restarts a driver for, and which are requests of the user that do not wait."""

from __future__ import annotations

from s3sink_operator import names
from sink_job.api.report import MemoryReport
from tests.operator.fake_cluster import report
from tests.operator.rollout.fleet import NEW, OLD, Fleet, broken_rollout, updated

# --- what users ask for


def test_a_changed_spec_brings_the_new_image_at_once() -> None:
    fleet = broken_rollout(4)
    fleet.broken = set()
    name = fleet.with_condition("RolloutPending")[0]
    fleet.sinks[name].edit(rotation={"flushSize": 5})
    fleet.run()
    assert fleet.images()[name] == NEW


def test_an_image_in_the_spec_does_not_wait_for_a_turn() -> None:
    fleet = broken_rollout(4)
    name = fleet.with_condition("RolloutPending")[0]
    fleet.sinks[name].edit(image="mine:1")
    fleet.run()
    assert fleet.images()[name] == "mine:1"


def test_a_requested_restart_does_not_wait_for_a_turn() -> None:
    fleet = broken_rollout(4)
    fleet.broken = set()
    name = fleet.with_condition("RolloutPending")[0]
    fleet.sinks[name].annotate({names.RESTART_ANNOTATION: "now"})
    fleet.run()
    assert fleet.images()[name] == NEW


def test_a_skip_annotation_does_not_wait_for_a_turn() -> None:
    fleet = broken_rollout(4)
    fleet.broken = set()
    name = fleet.with_condition("RolloutPending")[0]
    fleet.sinks[name].annotate({names.SKIP_ANNOTATION: "flights-0@42"})
    fleet.run()
    assert fleet.images()[name] == NEW


def test_a_changed_field_that_restarts_nothing_does_not_bring_the_new_image() -> None:
    fleet = broken_rollout(4)
    name = fleet.with_condition("RolloutPending")[0]
    fleet.sinks[name].edit(deletionPolicy="Publish")
    fleet.run(minutes=5)
    assert fleet.images()[name] == OLD


def test_a_sink_that_its_user_breaks_does_not_halt_the_rollout() -> None:
    fleet = Fleet(4)
    fleet.start_operator(NEW)
    fleet.run(minutes=0.5)
    first = next(name for name, image in fleet.images().items() if image == NEW)
    fleet.sinks[first].edit(image="mine:1")
    fleet.broken = {"mine:1"}
    fleet.run(minutes=10)
    assert fleet.not_ready() == [first]
    assert {image for name, image in fleet.images().items() if name != first} == {NEW}


def test_a_change_of_memory_does_not_bring_the_new_image_before_its_turn() -> None:
    fleet = broken_rollout(3)
    name = fleet.with_condition("RolloutPending")[0]
    hungry = MemoryReport(buffered_bytes=2 << 30, max_open_objects=99)
    fleet.sinks[name].report = report(name=name, sink_id=f"data.{name}", now=fleet.now, memory=hungry)
    fleet.run(minutes=5)
    assert fleet.images()[name] == OLD
    assert fleet.sinks[name].ready == ("True", "Running")


def test_a_sink_whose_operator_is_paused_neither_waits_nor_blocks() -> None:
    fleet = Fleet(3)
    fleet.sinks["sink-0000"].annotate({names.RECONCILE_PAUSED_ANNOTATION: "true"})
    fleet.start_operator(NEW)
    fleet.run(minutes=10)
    assert fleet.images() == {"sink-0000": OLD, "sink-0001": NEW, "sink-0002": NEW}
    assert fleet.state.pending == 0


# --- changes of the operator that are not an image


def test_another_version_of_the_operator_that_reads_the_spec_differently_waits_for_its_turns() -> None:
    """The hash of an unchanged spec may change with the version; the generation does not."""
    fleet = Fleet(3)
    for cluster in fleet.sinks.values():
        assert cluster.driver is not None
        cluster.driver["metadata"]["annotations"] |= {
            names.SPEC_HASH_ANNOTATION: "0" * 16,
            names.SOURCE_HASH_ANNOTATION: "1" * 16,
        }
    fleet.run()
    assert len(fleet.with_condition("RolloutPending")) == 2


def test_a_driver_of_a_version_without_the_annotations_waits_for_its_turn() -> None:
    fleet = Fleet(3)
    for cluster in fleet.sinks.values():
        assert cluster.driver is not None
        annotations = cluster.driver["metadata"]["annotations"]
        del annotations[names.SOURCE_HASH_ANNOTATION], annotations[names.GENERATION_ANNOTATION]
    fleet.start_operator(NEW)
    fleet.run()
    assert updated(fleet) == 1
