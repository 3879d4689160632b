"""How a run is put together, and what an error means for how it ends."""

from __future__ import annotations

import subprocess
import types
from typing import Any

import pytest

from sink_job.api.errors import DataError, LedgerFenced, SinkError, TransientError
from sink_job.api.quantities import GI, MI
from sink_job.api.spec import Sink, load_sink
from sink_job.driver import logs, run
from sink_job.driver.secret_registry import SECRETS
from sink_job.driver.signals import StopSignals
from sink_job.s3 import connect
from sink_job.spark.executor_pods import ExecutorConfig

SINK = """
apiVersion: s3sink.io/v1alpha1
kind: S3Sink
metadata: {name: flights, namespace: air}
spec:
  kafka: {bootstrapServers: "localhost:9092", topics: [flights]}
  rotation: {flushSize: 100}
  s3: {bucket: archive}
"""


@pytest.fixture
def sink() -> Sink:
    return load_sink(SINK)


class Signals(StopSignals):
    def __init__(self, *, requested: bool) -> None:
        super().__init__()
        self._requested = requested


def a_run(sink: Sink, *, stopping: bool = False, jvm_gone: bool | None = None) -> run._Run:
    """A run that was asked to stop or not, before there is a JVM (None), with one, or after it has gone."""
    made = run._Run(sink, run.Options(), Signals(requested=stopping), logs.LogHandler(print))

    def wait(timeout: float) -> int:
        if not jvm_gone:
            raise subprocess.TimeoutExpired("java", timeout)
        return -9

    if jvm_gone is not None:
        proc = types.SimpleNamespace(wait=wait)
        made.context = types.SimpleNamespace(_gateway=types.SimpleNamespace(proc=proc))
    return made


@pytest.mark.parametrize("error", [TransientError("gave up"), SinkError("asked"), ConnectionResetError()], ids=repr)
def test_while_stopping_what_was_cut_short_is_no_failure(sink: Sink, error: Exception) -> None:
    assert a_run(sink, stopping=True)._classify(error) is None
    assert a_run(sink)._classify(error) is error


def test_while_stopping_a_fence_is_still_told(sink: Sink) -> None:
    error = LedgerFenced("another driver")
    assert a_run(sink, stopping=True)._classify(error) is error


def test_a_jvm_that_was_killed_is_worth_trying_again(sink: Sink) -> None:
    for error in (ConnectionRefusedError("refused"), SinkError("Py4JNetworkError")):
        meant = a_run(sink, jvm_gone=True)._classify(error)
        assert isinstance(meant, TransientError)
        assert "Spark's JVM has ended" in str(meant)
        assert a_run(sink, jvm_gone=False)._classify(error) is error


def test_a_spark_that_does_not_start_with_kubernetes_leads_to_the_drivers_rights(sink: Sink) -> None:
    """Without them its JVM ends in the middle of a call."""
    made = a_run(sink)
    made.cluster, made.begins_spark = ExecutorConfig(instances=1, cores=1, memory=GI, properties={}), True
    meant = made._classify(ConnectionRefusedError("refused"))
    assert isinstance(meant, TransientError)
    assert "get, list, watch, create and delete pods" in str(meant)


def test_an_error_with_a_name_keeps_it_though_the_jvm_is_gone(sink: Sink) -> None:
    error = DataError("flights", 0, 17, "is not JSON")
    assert a_run(sink, jvm_gone=True)._classify(error) is error


def test_an_owner_is_named_by_the_cluster_or_the_host(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.node", lambda: "laptop")
    assert str(run.owner_of(sink, {})) == "S3Sink air/flights (sinkId air.flights) of laptop"
    assert run.owner_of(sink, {"S3SINK_CLUSTER": "prod"}).cluster == "prod"


def test_a_failure_tells_where_and_no_secret(sink: Sink) -> None:
    SECRETS.hide(["very+secret/key"])
    failure = run.failure_of(DataError("flights", 3, 17, "has very+secret/key in it"))
    assert (failure.topic, failure.partition, failure.offset) == ("flights", 3, 17)
    assert "very+secret/key" not in failure.message


def test_memory_is_what_is_given_or_the_usual_within_the_spec(sink: Sink) -> None:
    assert run.memory_of(sink, cores=2, total=3 * GI).total == 3 * GI
    assert run.memory_of(sink, cores=2, total=None).total == 1876 * MI
    bounded = load_sink(SINK + "  executor: {memory: {max: 1700Mi}}\n")
    assert run.memory_of(bounded, cores=2, total=None).total == 1700 * MI


def test_health_is_silence_shorter_than_any_patience(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    made = a_run(sink)
    assert made._health().status == 200
    monkeypatch.setattr(made.heart, "silence_s", lambda: 10_000.0)
    assert made._health().status == 503


def test_a_run_is_ready_when_it_runs(sink: Sink) -> None:
    made = a_run(sink)
    assert made._readiness()[::2] == (503, b"Starting\n")
    made.tracker.recovered()
    assert made._readiness()[::2] == (200, b"Running\n")


def test_a_run_compares_its_clock_with_the_stores_and_with_a_steady_one(sink: Sink) -> None:
    unused: Any = None
    made = a_run(sink)
    world = made._world(unused, unused)
    assert world.store_clock == connect(made.s3_settings).clock_ms
    assert world.steady_clock is not None
    assert world.steady_clock() <= world.steady_clock()
