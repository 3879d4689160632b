"""The status after a pass: what is kept of the previous one, and what follows from the result of the policy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from s3sink_operator import names
from s3sink_operator.config.sink_defaults import SinkDefaults
from s3sink_operator.decide.context import Context
from s3sink_operator.decide.policy_result import PolicyResult
from s3sink_operator.decide.status_builder import build_status
from s3sink_operator.sizing.memory_sizing import SizingPlan, SizingState
from s3sink_operator.status.status_model import ConditionStatus, OffsetResetStatus, S3SinkStatus
from s3sink_operator.types import ObjectWrites, SinkResources, to_timestamp
from sink_job.api.errors import AccessDenied
from sink_job.api.report import RunState, TableReport, TableSums
from sink_job.api.units.quantities import GI
from tests.operator.fake_cluster import MINUTE, SETTINGS, START, Cluster, document, report, running

RUNNING = PolicyResult(ready=ConditionStatus.TRUE, reason="Running", message="copying", phase="Running")
ENDING = PolicyResult(reason="SpecChanged", message="the spec changed", phase="Starting", terminating_attempt=True)


def built(cluster: Cluster, result: PolicyResult = RUNNING) -> S3SinkStatus:
    return build_status(Context(cluster.observe(), cluster.settings, cluster.now), result)


def test_the_status_names_the_generation_the_state_and_the_selector_of_the_scale_subresource() -> None:
    cluster = running()
    cluster.sink["metadata"]["generation"] = 7
    status = built(cluster)
    assert status.observed_generation == 7
    assert (status.desired_state, status.desired_state_source) == ("Running", "spec.state")
    assert status.selector == "s3sink.io/sink=flights,app.kubernetes.io/component=executor"
    cluster.annotate({names.STATE_ANNOTATION: "Paused"})
    assert built(cluster).desired_state_source == f"the annotation {names.STATE_ANNOTATION}"


# -- the attempt that the operator terminates ----------------------------------------------------------------------


def test_a_terminated_attempt_ends_with_the_reason_of_the_policy_and_keeps_its_time_in_later_passes() -> None:
    cluster = running()
    first = (built(cluster, ENDING).attempts or [])[0]
    assert (first.number, first.reason, first.message, first.end_time) == (1, "SpecChanged", "the spec changed", START)
    assert first.resumes_from is not None
    cluster.sink["status"] = built(cluster, ENDING).document()
    cluster.wait(MINUTE)
    assert (built(cluster, ENDING).attempts or [])[0].end_time == START


def test_a_policy_that_terminates_nothing_ends_no_attempt() -> None:
    assert (built(running()).attempts or [])[0].end_time is None


def test_a_driver_that_never_ran_has_no_attempt_to_end() -> None:
    cluster = Cluster()
    cluster.converge()
    assert cluster.driver is not None
    assert cluster.driver["status"]["phase"] == "Pending"
    assert not [each for each in built(cluster, ENDING).attempts or () if each.end_time]


def test_a_driver_that_ended_before_keeps_its_own_reason() -> None:
    cluster = running()
    cluster.fail(AccessDenied("no"))
    assert (built(cluster, ENDING).attempts or [])[0].reason == "AccessDenied"


def test_a_terminating_driver_was_recorded_before() -> None:
    cluster = running()
    assert cluster.driver is not None
    cluster.driver["metadata"]["deletionTimestamp"] = to_timestamp(START)
    assert (built(cluster, ENDING).attempts or [])[0].reason != "SpecChanged"


# -- published objects ---------------------------------------------------------------------------------------------


def stopped() -> Cluster:
    cluster = running(s3={"bucket": "archive", "endpoint": "https://s3.example.com"})
    cluster.edit(state="Stopped")
    cluster.converge_with_kubelet()
    return cluster


def test_published_objects_are_recorded_with_their_endpoint_until_a_driver_is_created() -> None:
    cluster = stopped()
    status = built(cluster)
    assert (status.published, status.published_endpoint) == (True, "https://s3.example.com")
    labels = {names.COMPONENT_LABEL: names.Component.DRIVER.value}
    creating = replace(RUNNING, writes=ObjectWrites(create=({"metadata": {"labels": labels}},)))
    assert built(cluster, creating).published is None
    assert built(cluster, creating).published_endpoint is None


def test_a_pod_that_is_no_driver_opens_nothing() -> None:
    labels = {names.COMPONENT_LABEL: names.Component.OPERATION.value}
    creating = replace(RUNNING, writes=ObjectWrites(create=({"metadata": {"labels": labels}},)))
    assert built(stopped(), creating).published


@pytest.mark.parametrize("published", [True, False])
def test_the_policy_that_knows_whether_objects_are_published_decides(published: bool) -> None:
    for cluster in (stopped(), running()):
        assert bool(built(cluster, replace(RUNNING, published=published)).published) is published


def test_while_a_driver_exists_objects_may_be_open() -> None:
    cluster = running()
    cluster.sink["status"]["published"] = True
    assert built(cluster).published is None


# -- progress ------------------------------------------------------------------------------------------------------


def test_the_phase_is_that_of_the_policy_and_the_figures_are_those_of_the_report() -> None:
    cluster = running()
    cluster.report = report(round=9, lag=3)
    progress = built(cluster, replace(RUNNING, phase="Stopping")).progress
    assert progress is not None
    assert (progress.phase, progress.round) == ("Stopping", 9)
    assert progress.lag is not None
    assert progress.lag.records == 3


def test_a_starting_driver_keeps_the_figures_of_the_previous_one() -> None:
    cluster = running()
    cluster.report = report(round=9, lag=3)
    cluster.wait(MINUTE)
    cluster.converge()
    cluster.report = report(RunState.STARTING, round=0, partitions=[])
    progress = built(cluster).progress
    assert progress is not None
    assert progress.round == 9
    assert progress.lag is None
    assert progress.last_known_lag is not None
    assert progress.topics


def test_topics_that_an_edit_may_have_removed_are_not_kept_without_a_report() -> None:
    cluster = running()
    cluster.report = None
    cluster.edit(kafka={"bootstrapServers": "kafka:9092", "topics": ["trains"]})
    progress = built(cluster).progress
    assert progress is not None
    assert (progress.topics, progress.most_lagging) == (None, None)


# -- tables ---------------------------------------------------------------------------------------------------------

TABLES = [{"catalog": {"type": "Rest", "uri": "https://catalog.example.com"}, "name": "lake.{topic}"}]


def table_names(cluster: Cluster) -> list[str] | None:
    found = built(cluster).tables
    return None if found is None else [each.name for each in found]


def test_the_tables_are_those_of_the_report_and_are_kept_without_one_until_the_spec_has_none() -> None:
    cluster = running(tables=TABLES, format={"converter": "ConnectJson", "output": "Parquet"})
    cluster.report = report(tables=[TableReport(table="lake.flights")], table_sums=TableSums(tables=1))
    assert table_names(cluster) == ["lake.flights"]
    cluster.sink["status"] = built(cluster).document()
    cluster.report = None
    assert table_names(cluster) == ["lake.flights"]
    cluster.edit(tables=[])
    assert table_names(cluster) is None


# -- memory, executors and defaults --------------------------------------------------------------------------------


def test_an_invalid_spec_keeps_the_sections_that_need_the_settings() -> None:
    cluster = running(executor={"mode": "Cluster", "scaling": {"mode": "Auto"}})
    before = S3SinkStatus.read(cluster.status)
    cluster.edit(rotation={"flushSize": 0})
    status = built(cluster)
    assert (status.memory, status.scaling, status.claim) == (before.memory, before.scaling, before.claim)
    assert status.replicas == 0


def test_a_plan_of_the_memory_is_recorded_with_its_reason_and_inputs() -> None:
    cluster = running()
    current = S3SinkStatus.read(cluster.status).memory
    assert current is not None
    state = SizingState(low_since=START)
    plan = SizingPlan(size=3 * GI, recommended=2 * GI, state=state, capped=False, reason="grow: more")
    memory = built(cluster, replace(RUNNING, sizing=plan)).memory
    assert memory is not None
    assert (memory.current, memory.recommended, memory.low_since_time) == (3 * GI, 2 * GI, START)
    assert memory.last_change is not None
    assert (memory.last_change.from_, memory.last_change.to) == (current.current, 3 * GI)
    assert memory.inputs is not None
    assert memory.inputs.open_objects == 1


def test_without_a_driver_the_current_memory_is_that_of_the_next_one() -> None:
    cluster = Cluster()
    ctx = Context(cluster.observe(), cluster.settings, cluster.now)
    memory = build_status(ctx, RUNNING).memory
    assert memory is not None
    assert memory.current == ctx.sizing.start_size
    assert memory.last_change is None


@pytest.mark.parametrize(("mode", "replicas"), [("Local", 2), ("Cluster", 1)])
def test_replicas_are_running_executors_and_in_local_mode_all_of_them_while_the_driver_reports(
    mode: str, replicas: int
) -> None:
    cluster = running(executor={"mode": mode, "instances": 2})
    if mode == "Cluster":
        cluster.executors = [cluster.executor(1), cluster.executor(2, phase="Pending")]
    assert built(cluster).replicas == replicas
    cluster.report = None
    assert built(cluster).replicas == (0 if mode == "Local" else replicas)
    cluster.remove("Pod", "flights-s3sink-driver")
    assert built(cluster).replicas == 0


def test_defaults_that_the_operator_applied_are_listed() -> None:
    defaults = SinkDefaults.model_validate({"s3": {"region": "eu-central-1"}}, by_alias=True, by_name=False)
    cluster = Cluster(settings=replace(SETTINGS, sink_defaults=defaults))
    applied = (built(cluster).applied_defaults or [])[0]
    assert (applied.field, applied.value) == ("spec.s3.region", "eu-central-1")
    cluster.edit(s3={"bucket": "archive", "region": "us-east-1"})
    assert built(cluster).applied_defaults is None


@pytest.mark.parametrize("given", [{"node_lost_time": START + 5}, {"offset_reset": OffsetResetStatus(nonce="n1")}])
def test_fields_of_the_result_are_in_the_status(given: dict[str, Any]) -> None:
    status = built(running(), replace(RUNNING, **given))
    for name, value in given.items():
        assert getattr(status, name) == value
    assert built(running()).node_lost_time is None


def test_a_completed_reset_is_kept() -> None:
    cluster = running()
    cluster.sink["status"]["offsetReset"] = {"nonce": "n1", "phase": "Completed"}
    assert (built(cluster).offset_reset or OffsetResetStatus()).nonce == "n1"


# -- the claim -----------------------------------------------------------------------------------------------------


def test_a_sink_that_lost_its_resources_to_another_one_claims_nothing() -> None:
    cluster = Cluster(sink=document())
    elder = SinkResources(
        namespace="data", name="elder", creation_time=to_timestamp(START - 1000), bucket="archive", topics_dir="topics",
        topics=["flights"], group="g", sink_id="s", brokers="kafka:9092",
    )  # fmt: skip
    assert built(cluster).claim is not None
    cluster.others = [elder]
    assert built(cluster).claim is None


def test_the_time_of_a_claim_changes_with_an_edit_of_the_resources_alone() -> None:
    cluster = running()
    before = cluster.status["claim"]
    cluster.now += MINUTE
    cluster.edit(rotation={"flushSize": 7})
    cluster.converge_with_kubelet()
    assert cluster.status["claim"] == before
    cluster.edit(kafka={"bootstrapServers": "kafka:9092", "topics": ["flights", "more"]})
    cluster.converge_with_kubelet()
    assert cluster.status["claim"]["since"] > before["since"]
