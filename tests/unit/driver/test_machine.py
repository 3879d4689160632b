"""What a run takes from its machine: CPUs, memory and the name of its owner."""

from __future__ import annotations

import os
import platform

import pytest

from sink_job.api import memory_budget
from sink_job.api.units.quantities import GI
from sink_job.driver.machine import CLUSTER, machine_memory, memory_of, owner_of, usual_cores
from sink_job.ledger.ownership import Owner
from tests.unit.api.manifests import accepted


@pytest.mark.parametrize("cpus", [1, memory_budget.MAX_CORES, memory_budget.MAX_CORES + 1])
def test_the_usual_cores_are_the_cpus_of_this_process_up_to_a_maximum(
    cpus: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(cpus)))
    assert usual_cores() == min(cpus, memory_budget.MAX_CORES)


@pytest.mark.parametrize(("cpus", "cores"), [(2, 2), (None, 1)])
def test_without_affinities_the_cores_are_those_of_the_machine(
    cpus: int | None, cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr(os, "cpu_count", lambda: cpus)
    assert usual_cores() == cores


def test_the_memory_of_a_machine_that_does_not_report_it_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    values = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 1 << 20}
    monkeypatch.setattr(os, "sysconf", values.__getitem__)
    assert machine_memory() == 4 * GI

    def unknown(name: str) -> int:
        raise ValueError(name)

    monkeypatch.setattr(os, "sysconf", unknown)
    assert machine_memory() is None


def test_the_given_memory_is_divided_or_the_default() -> None:
    sink = accepted()
    assert memory_of(sink, cores=2, total=4 * GI).total == 4 * GI
    part_size, bounds = sink.spec.s3.part_size, sink.spec.executor.memory
    encoding = memory_budget.encoding_memory(sink.spec.format)
    default = memory_budget.default_total(
        cores=2, part_size=part_size, encoding=encoding, least=bounds.min, most=bounds.max
    )
    assert memory_of(sink, cores=2, total=None).total == default


@pytest.mark.parametrize(
    ("environ", "host", "cluster"),
    [({CLUSTER: "id"}, "host", "id"), ({}, "host", "host"), ({CLUSTER: ""}, "host", "host"), ({}, "", "localhost")],
)
def test_the_cluster_of_an_owner_is_the_one_in_the_environment_or_this_host(
    environ: dict[str, str], host: str, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "node", lambda: host)
    assert owner_of(accepted(), environ) == Owner(cluster, "default", "flights", accepted().sink_id)
