"""The allocation, which a running driver reads."""

from __future__ import annotations

from sink_job.api.allocation import Allocation
from sink_job.api.units.quantities import GI
from tests.operator.objects.manifests import config


def test_a_sink_in_local_mode_is_allocated_one_container() -> None:
    assert Allocation.parse(config(executor={"mode": "Local", "instances": 4})["allocation.json"]) == Allocation(
        executors=1, memory=2 * GI, bounds="Auto, 512Mi to 8Gi"
    )
