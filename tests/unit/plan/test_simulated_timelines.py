"""The timelines of a simulation have its objects, with its clock."""

from __future__ import annotations

from sink_job.api.topic_partition import TopicPartition
from sink_job.plan.simulated_timelines import SimulatedTimelines
from sink_job.rotation.types import CloseReason
from sink_job.simulate.simulation import Delivered, Simulation
from tests.unit.plan.samples import sink

TP = TopicPartition("t", 0)


def test_an_object_is_visible_at_the_write_that_closes_it() -> None:
    simulation, collected = Simulation(sink(rotation={"flushSize": 3})), SimulatedTimelines()
    for number in range(4):
        report = simulation.write({TP: [Delivered(number, number, b"{}")]}, 1_000 * number)
        collected.add([TP], report, 1_000 * number)
    view = collected.timelines()
    assert (view.start, view.end) == (0, 3_000)
    assert view.arrivals[TP].tolist() == [0, 1_000, 2_000, 3_000]
    closed, opened = view.objects
    assert (closed.opened, closed.visible, closed.reason) == (0, 2_000, CloseReason.FLUSH_SIZE)
    assert (opened.opened, opened.visible, opened.records) == (3_000, None, 1)


def test_a_simulation_without_writes_has_no_timelines() -> None:
    assert SimulatedTimelines().timelines().objects == []
