"""Memory and executors by the operator's formula."""

from __future__ import annotations

from typing import Any

import pytest

from s3sink_operator.sizing.executor_count import ScalingBounds, required
from sink_job.api.required_memory import SizingInputs, recommended
from sink_job.api.required_memory import required as required_memory
from sink_job.api.sections.operator_sections import ExecutorSpec
from sink_job.api.units.quantities import GI, MI
from sink_job.plan.resources import executors_for, resources


def _executor(**fields: Any) -> ExecutorSpec:
    return ExecutorSpec.model_validate(fields)


@pytest.mark.parametrize("active", [0, 1, 16, 17, 100, 10_000])
def test_the_number_of_executors_is_that_of_the_operator(active: int) -> None:
    spec = _executor(
        mode="Cluster", cores=2, scaling={"mode": "Auto", "minInstances": 1, "maxInstances": 8, "partitionsPerTask": 8}
    )
    bounds = ScalingBounds.of(spec)
    assert bounds is not None
    assert executors_for(active, spec) == required(active, bounds)


def test_local_mode_has_no_executors() -> None:
    assert executors_for(100, _executor(mode="Local")) == 0


def test_the_memory_is_that_of_the_operator() -> None:
    seen = SizingInputs(slots=2, part_size=25 * MI, active_partitions=40, remainder_bytes=20 * MI)
    found = resources(required_memory(seen), 40, _executor(memory={"min": "512Mi", "max": "64Gi"}))
    assert found.memory == recommended(seen)


def test_memory_stays_within_the_bounds_of_the_user() -> None:
    found = resources(8 * GI, 1, _executor(memory={"min": "1Gi", "max": "2Gi"}))
    assert found.memory == 2 * GI
    assert found.recommended > found.memory
