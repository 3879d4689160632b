"""Wiring of a run, and the classification of errors."""

from __future__ import annotations

import subprocess
import threading
import types
from typing import Any
from unittest.mock import Mock

import pytest

from sink_job.api.errors import DataError, LedgerFenced, SinkError, TransientError
from sink_job.api.parser import load_sink
from sink_job.api.spec import Sink
from sink_job.api.units.quantities import GI, MI
from sink_job.coordinator.context import StopCondition
from sink_job.driver import logs, machine, run
from sink_job.driver.secret_registry import SECRETS
from sink_job.driver.signals import StopSignals
from sink_job.s3 import connect
from sink_job.spark.executor_log import ExecutorLog
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


def a_run(sink: Sink, *, stopping: bool = False, jvm_terminated: bool | None = None) -> run._Run:
    """A run: after a stop signal or not; before the start of the JVM (None), with a running or a terminated JVM."""
    it = run._Run(sink, run.RunOptions(), Signals(requested=stopping), logs.LogHandler(print))

    def wait(timeout: float) -> int:
        if not jvm_terminated:
            raise subprocess.TimeoutExpired("java", timeout)
        return -9

    if jvm_terminated is not None:
        proc = types.SimpleNamespace(wait=wait)
        it.spark.context = types.SimpleNamespace(_gateway=types.SimpleNamespace(proc=proc))
    return it


@pytest.mark.parametrize("error", [TransientError("cancelled"), SinkError("stopped"), ConnectionResetError()], ids=repr)
def test_a_transient_error_during_shutdown_is_not_a_failure(sink: Sink, error: Exception) -> None:
    assert a_run(sink, stopping=True)._classify(error) is None
    assert a_run(sink)._classify(error) is error


def test_a_fence_during_shutdown_is_a_failure(sink: Sink) -> None:
    error = LedgerFenced("another driver")
    assert a_run(sink, stopping=True)._classify(error) is error


def test_a_killed_jvm_is_a_transient_error(sink: Sink) -> None:
    for error in (ConnectionRefusedError("refused"), SinkError("Py4JNetworkError")):
        classified = a_run(sink, jvm_terminated=True)._classify(error)
        assert isinstance(classified, TransientError)
        assert "Spark's JVM has ended" in str(classified)
        assert a_run(sink, jvm_terminated=False)._classify(error) is error


def test_a_failed_start_of_spark_on_kubernetes_names_the_required_permissions(sink: Sink) -> None:
    """Without them, the JVM terminates during a call."""
    it = a_run(sink)
    it.tasks.cluster, it.spark.is_starting = ExecutorConfig(instances=1, cores=1, memory=GI, properties={}), True
    classified = it._classify(ConnectionRefusedError("refused"))
    assert isinstance(classified, TransientError)
    assert "get, list, watch, create and delete on pods" in str(classified)


def test_a_domain_error_keeps_its_reason_after_the_end_of_the_jvm(sink: Sink) -> None:
    error = DataError("flights", 0, 17, "is not JSON")
    assert a_run(sink, jvm_terminated=True)._classify(error) is error


def test_the_cluster_of_an_owner_is_configured_or_the_host(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.node", lambda: "laptop")
    assert str(machine.owner_of(sink, {})) == "S3Sink air/flights (sinkId air.flights) of laptop"
    assert machine.owner_of(sink, {"S3SINK_CLUSTER": "prod"}).cluster == "prod"


def test_a_failure_has_the_position_of_its_error_and_no_secret(sink: Sink) -> None:
    SECRETS.hide(["very+secret/key"])
    failure = run.failure_of(DataError("flights", 3, 17, "has very+secret/key in it"))
    assert (failure.topic, failure.partition, failure.offset) == ("flights", 3, 17)
    assert "very+secret/key" not in failure.message


def test_memory_is_the_argument_or_the_default_within_the_spec(sink: Sink) -> None:
    assert machine.memory_of(sink, cores=2, total=3 * GI).total == 3 * GI
    assert machine.memory_of(sink, cores=2, total=None).total == 1748 * MI
    bounded = load_sink(SINK + "  executor: {memory: {max: 1700Mi}}\n")
    assert machine.memory_of(bounded, cores=2, total=None).total == 1700 * MI


def test_a_run_uses_the_clock_of_the_store_and_a_monotonic_clock(sink: Sink) -> None:
    unused: Any = None
    it = a_run(sink)
    context = it._context(unused, unused, None)
    assert context.store_clock == connect(it.connections.s3).clock_ms
    assert context.steady_clock is not None
    assert context.steady_clock() <= context.steady_clock()


def test_the_store_is_checked_while_spark_starts(sink: Sink, monkeypatch: pytest.MonkeyPatch) -> None:
    started = threading.Event()

    def starting(*_: Any, **__: Any) -> Any:
        assert started.wait(60)
        raise SinkError("Spark does not start")

    it = a_run(sink)
    monkeypatch.setattr(it, "_before_spark", lambda _s3, _stop: [])
    monkeypatch.setattr(run, "check_store", lambda *_, **__: started.set())
    monkeypatch.setattr(run, "session", starting)
    with pytest.raises(SinkError, match="Spark does not start"):
        it.run()


def test_a_run_that_only_publishes_leaves_the_check_of_the_store_to_its_coordinator(
    sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It writes nothing if there is no ledger."""
    checked = Mock()
    it = run._Run(
        sink,
        run.RunOptions(goal=StopCondition(publish_open=True)),
        Signals(requested=False),
        logs.LogHandler(print),
    )
    monkeypatch.setattr(it, "_before_spark", lambda _s3, _stop: [])
    monkeypatch.setattr(run, "check_store", checked)
    monkeypatch.setattr(run, "session", Mock(side_effect=SinkError("Spark does not start")))
    with pytest.raises(SinkError, match="Spark does not start"):
        it.run()
    assert not checked.called


def test_properties_that_kafka_does_not_know_are_warnings(
    sink: Sink, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(run, "unknown_properties", lambda gateway, kafka: [f"{kafka.topics[0]}: not known, 100 %"])
    run.warn_of_unknown(Mock(), sink)
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "flights: not known, 100 %")
    ]


def test_the_limit_of_failed_executors_follows_their_number(sink: Sink) -> None:
    it = a_run(sink)
    it.tasks.cluster = ExecutorConfig(properties={}, instances=1, cores=1, memory=GI)
    log = it.spark.executor_log = ExecutorLog(it._failure_limit(1))
    it.spark.context = Mock()
    ended: list[int] = []
    log.end = lambda: ended.append(1)
    scaler = it._executor_scaler()
    assert scaler
    scaler.scale(8)
    log.read("WARN ExecutorPodsLifecycleManager: 16 new failed executors.")
    assert not ended
    log.read("WARN ExecutorPodsLifecycleManager: 1 new failed executors.")
    assert ended
