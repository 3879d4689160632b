"""Simulated runs of whole sinks: new seeds, seeds that once failed, and reproducibility.

`S3SINK_SEED` is the base seed (default: 1), `S3SINK_RUNS` the number of new runs.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import threading
import uuid
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path

import fastavro
import pyarrow.parquet as pq
import pytest

from devtools.simulation import registry, run
from devtools.simulation.config import FEATURES, SimulationConfig, config_of_seed
from devtools.simulation.oracle import Violation
from devtools.simulation.run import simulate
from devtools.simulation.runner import Case, FailedCase, minimized, new_cases, read_cases, run_case, trace, traces
from sink_job.api.errors import LedgerLost
from sink_job.coordinator.context import CoordinatorContext
from sink_job.engine.thread_pools import pool
from sink_job.maintenance.repair import replacement
from sink_job.maintenance.repair.inspection import StoredState
from sink_job.writer import object_writer

SEEDS = Path(__file__).parent / "seeds.txt"
BASE = int(os.environ.get("S3SINK_SEED", "1"))
RUNS = int(os.environ.get("S3SINK_RUNS") or 300)
GROUPS = 6
TRACE_LINES = 40


def description(failed: FailedCase) -> str:
    """A failure: the invariant, the end of the minimized trace, and the command to repeat it."""
    smallest = minimized(failed)
    lines = trace(smallest.case)[-TRACE_LINES:]
    return "\n".join([f"base seed {BASE}, {failed.message}", *lines, f"repeat it with: {smallest.case.command}"])


@pytest.mark.parametrize("group", range(GROUPS))
def test_every_invariant_holds_in_new_simulations(group: int) -> None:
    print(f"base seed {BASE}: repeat with S3SINK_SEED={BASE}")
    runs = RUNS // GROUPS
    for case in new_cases(BASE + group * runs, runs):
        failed = run_case(case)
        assert failed is None, description(failed)


@pytest.mark.parametrize("group", range(2))
def test_every_invariant_holds_in_new_simulations_with_repairs(group: int) -> None:
    print(f"base seed {BASE}: repeat with S3SINK_SEED={BASE}")
    runs = RUNS // 12
    for case in new_cases(BASE + group * runs, runs, include=["repairs"]):
        failed = run_case(case)
        assert failed is None, description(failed)


def test_every_invariant_holds_in_new_simulations_of_a_first_start_after_a_connector() -> None:
    print(f"base seed {BASE}: repeat with S3SINK_SEED={BASE}")
    for case in new_cases(BASE, RUNS // 6, include=["previous-writer"]):
        failed = run_case(case)
        assert failed is None, description(failed)


@pytest.mark.parametrize("group", range(2))
def test_every_invariant_holds_in_new_simulations_with_transforms(group: int) -> None:
    print(f"base seed {BASE}: repeat with S3SINK_SEED={BASE}")
    runs = RUNS // 12
    for case in new_cases(BASE + group * runs, runs, include=["transforms"]):
        failed = run_case(case)
        assert failed is None, description(failed)


def test_simulations_accept_objects_of_a_connector() -> None:
    runs = [simulate(config_of_seed(seed, include=["previous-writer"])) for seed in range(20)]
    assert sum(len(run.previous.objects) for run in runs if run.previous is not None) > 20


def test_a_simulation_rejects_an_object_that_a_connector_completes_after_the_claim() -> None:
    runs = (simulate(config_of_seed(seed, include=["previous-writer"])) for seed in range(400))
    rejected = next(run for run in runs if isinstance(run.ended[-1][1], LedgerLost))
    assert not rejected.oracle.visible


@pytest.mark.parametrize("group", range(2))
def test_every_invariant_holds_in_new_simulations_with_two_buckets(group: int) -> None:
    print(f"base seed {BASE}: repeat with S3SINK_SEED={BASE}")
    runs = RUNS // 12
    for case in new_cases(BASE + group * runs, runs, include=["two-buckets"]):
        failed = run_case(case)
        assert failed is None, description(failed)


def test_simulations_with_two_buckets_reject_drivers_with_another_place() -> None:
    rejected = 0
    for seed in range(10):
        simulation = simulate(config_of_seed(seed, include=["two-buckets"]))
        rejected += sum(role.is_misplaced and error is not None for role, error in simulation.ended)
        records = [key for key in simulation.store.objects if "/_s3sink/" in key and "/ledger/" in key]
        assert records
        assert all(key.startswith("archive/topics/_s3sink/") for key in records)
    assert rejected > 3


def test_simulations_with_transforms_have_objects_of_several_lists() -> None:
    simulations = [simulate(config_of_seed(seed, include=["transforms", "edit"])) for seed in range(12)]
    contents = [each.body for one in simulations for each in one.oracle.visible.values()]
    assert all(any(b'"list":"%d"' % number in body for body in contents) for number in range(3))


def test_simulations_with_repairs_restore_objects() -> None:
    simulations = [simulate(config_of_seed(seed, include=["repairs"])) for seed in range(6)]
    assert sum(each.repairs.restored for each in simulations if each.repairs is not None) > 10


def test_a_repair_that_believes_the_reply_to_a_completion_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that was killed inside a completion reports success although it has replaced nothing."""
    monkeypatch.setattr(replacement, "inspect", lambda s3, o, reads: StoredState(None, 0, None))
    assert any(run_case(case) for case in new_cases(0, 400, include=["repairs"]))


@pytest.mark.parametrize("case", read_cases(SEEDS), ids=str)
def test_every_invariant_holds_in_a_simulation_that_once_failed(case: Case) -> None:
    failed = run_case(case)
    assert failed is None, description(failed)


def test_a_simulation_without_any_feature_has_no_events() -> None:
    assert run_case(Case(BASE, frozenset(FEATURES))) is None


def test_simulations_with_containers_write_avro_and_parquet_objects_of_several_blocks() -> None:
    most = dict.fromkeys(("avro", "parquet"), 0)
    for seed in range(10):
        for key, found in simulate(config_of_seed(seed, include=["containers"])).oracle.visible.items():
            output = key.rpartition(".")[2]
            most[output] = max(most.get(output, 0), blocks(output, found.body))
    assert most["avro"] > 1
    assert most["parquet"] > 1


def test_simulations_with_inference_have_one_schema_of_each_topic_and_unknown_properties() -> None:
    unknown = 0
    for seed in range(4):
        found = simulate(config_of_seed(seed, include=["containers", "inference"], without=["registry"]))
        unknown += sum(b"_unknown" in each.body for each in found.oracle.visible.values())
        schemas = [key for key in found.store.objects if key.endswith("/inferred.json")]
        assert len(schemas) == len({key.split("/schemas/")[1] for key in schemas})
        assert schemas
    assert unknown


def test_simulations_with_a_registry_have_objects_whose_records_are_projected_to_the_first_ones_schema() -> None:
    projected = 0
    for seed in range(12):
        found = simulate(config_of_seed(seed, include=["registry"])).oracle
        of_records = {source: registry.version_of(value) for value, source in found.sources.items()}
        versions = defaultdict(set)
        for key, each in found.visible.items():
            versions[key] = {of_records[s] for s in of_records if s.tp == each.tp and s.offset in each.offsets}
        projected += sum(len(each) > 1 for each in versions.values())
    assert projected


def test_the_last_driver_may_take_further_steps_for_its_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "MAX_STEPS", 200)
    found = simulate(config_with_parts_of_one_byte())
    assert found.scheduler.steps > 201


def test_a_driver_that_makes_no_progress_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "MAX_STEPS", 20)
    monkeypatch.setattr(run, "STEPS_PER_PART", 0)
    with pytest.raises(Violation, match=r"^no progress: .+ is not done after [0-9]+ steps"):
        simulate(config_with_parts_of_one_byte())


def config_with_parts_of_one_byte() -> SimulationConfig:
    """A run without any feature."""
    with run.tiny_sizes():
        seeds = (seed for seed in range(100) if config_of_seed(seed, without=FEATURES).sink().spec.s3.part_size == 1)
        return replace(config_of_seed(next(seeds), without=FEATURES), steps=1)


@pytest.mark.parametrize("other", [[], ["other-ledger"]], ids=["same-ledger", "other-ledger"])
def test_simulations_with_a_take_over_have_drivers_of_both_sinks_that_end_fenced_or_without_ownership(
    other: list[str],
) -> None:
    ends: set[tuple[int, str]] = set()
    winners: set[int] = set()
    for seed in (2, 5, 6, 18, 20, 58):
        found = simulate(config_of_seed(seed, include=["take-over", *other], without={"other-ledger"} - {*other}))
        ends |= {(role.number, type(error).__name__) for role, error in found.ended}
        winners.add(found.successors.last)
    assert {(0, "LedgerFenced"), (0, "OwnershipConflict"), (1, "NoneType")} <= ends
    assert winners >= {1, 2}


def test_simulations_with_skips_skip_records() -> None:
    skipped = 0
    for seed in range(6):
        found = simulate(config_of_seed(seed, include=["skips"]))
        skipped += sum(len(offsets) for each in found.oracle.generations for offsets in each.skipped.values())
    assert skipped > 2


def blocks(output: str, body: bytes) -> int:
    """The number of Avro blocks or row groups of an object; 0 for another output."""
    file = io.BytesIO(body)
    if output == "avro":
        return sum(1 for _ in fastavro.block_reader(file))
    return int(pq.ParquetFile(file).num_row_groups) if output == "parquet" else 0


def expect_same(run: Sequence[str], again: Sequence[str]) -> None:
    """Two traces of the same cases are equal. Otherwise the message has the first lines that differ."""
    at = next((n for n, (one, two) in enumerate(zip_longest(run, again)) if one != two), None)
    if at is not None:
        before, differ = run[max(0, at - 5) : at], (run[at : at + 3], again[at : at + 3])
        message = [f"repeat with S3SINK_SEED={BASE}; line {at} differs. Before it:", *before, "first:", *differ[0]]
        pytest.fail("\n".join([*message, "then:", *differ[1]]))


def other_work() -> None:
    """What a thread of an earlier test may still do: it draws random names and uses thread pools."""
    uuid.uuid4()
    object_writer._pool(CoordinatorContext.threads).submit(int).result()
    with pool(2, "others") as executor:
        for each in [executor.submit(int), executor.submit(int)]:
            each.result()


def test_a_seed_reproduces_a_run() -> None:
    for case in new_cases(BASE, 5):
        expect_same(trace(case), trace(case))


def test_other_threads_of_the_process_do_not_change_a_run() -> None:
    for case in new_cases(BASE, 5):
        lines: list[str] = []

        def log(line: str, lines: list[str] = lines) -> None:
            lines.append(line)
            other = threading.Thread(target=other_work)
            other.start()
            other.join()

        run_case(case, log)
        expect_same(trace(case)[:-1], lines)


@pytest.mark.parametrize("hash_seed", ["0", "1"])
def test_a_run_does_not_depend_on_hash_randomization(hash_seed: str) -> None:
    code = "import sys; from devtools.simulation.runner import *; print(*traces(int(sys.argv[1]), 10), sep='\\n')"
    environ = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code, str(BASE)], env=environ, capture_output=True, text=True, check=True
    )
    expect_same(done.stdout.splitlines(), "\n".join(traces(BASE, 10)).splitlines())
