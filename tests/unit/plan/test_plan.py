"""A plan joins the figures of a replay with costs and resources."""

from __future__ import annotations

import msgspec

from sink_job.plan.plan import make_plan
from sink_job.plan.prices import DEFAULT
from tests.unit.plan.samples import partition, sample, sink


def test_the_cost_follows_the_prices() -> None:
    given = sample({0: partition([0] * 100)})
    planned = make_plan("sink.yaml", sink(), given, DEFAULT, None)
    dearer = make_plan("sink.yaml", sink(), given, msgspec.structs.replace(DEFAULT, writes=0.05), None)
    assert planned.cost.requests > 0
    assert 9 * planned.cost.requests < dearer.cost.requests <= 10 * planned.cost.requests


def test_executors_follow_all_partitions_and_not_the_ones_that_were_read() -> None:
    executor = {"mode": "Cluster", "cores": 1, "scaling": {"mode": "Auto", "maxInstances": 50, "partitionsPerTask": 10}}
    planned = make_plan("sink.yaml", sink(executor=executor), sample({0: partition([0])}, of=200), DEFAULT, None)
    assert planned.resources.executors == 20


def test_two_plans_of_one_sample_do_not_share_a_bucket() -> None:
    given = sample({0: partition([0] * 100)})
    one, other = (make_plan("sink.yaml", sink(), given, DEFAULT, None) for _ in range(2))
    assert one.figures == other.figures
