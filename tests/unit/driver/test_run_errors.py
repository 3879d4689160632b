"""The error with which a run ends, for each way in which Spark can end."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from sink_job.api.errors import (
    ConfigurationError,
    LedgerFenced,
    SinkError,
    TooManyExecutorFailures,
    TransientError,
)
from sink_job.driver.run_errors import classified
from sink_job.driver.started_spark import StartedSpark


class Spark(StartedSpark):
    """A JVM with this exit code; None while it runs."""

    def __init__(self, code: int | None = None, *, is_starting: bool = False) -> None:
        super().__init__(is_starting=is_starting)
        self._code = code

    def jvm_exit_code(self) -> int | None:
        return self._code


def end(error: Exception, *, stopping: bool = False, has_executors: bool = False, spark: Any = None) -> Any:
    return classified(error, stopping=stopping, has_executors=has_executors, spark=spark or Spark())


@pytest.mark.parametrize("error", [RuntimeError("py4j"), TransientError("retry"), SinkError("plain")])
def test_a_stop_signal_hides_what_it_causes(error: Exception) -> None:
    assert end(error, stopping=True) is None


@pytest.mark.parametrize("stopping", [False, True])
@pytest.mark.parametrize("error", [ConfigurationError("wrong"), LedgerFenced("another driver")])
def test_an_error_that_says_what_to_do_stays(error: SinkError, stopping: bool) -> None:
    assert end(error, stopping=stopping, has_executors=True, spark=Spark(137)) is error


@pytest.mark.parametrize(
    ("has_executors", "is_starting", "is_changed"), [(True, True, True), (True, False, False), (False, True, False)]
)
def test_an_error_while_executor_pods_start_names_the_permissions(
    has_executors: bool, is_starting: bool, is_changed: bool
) -> None:
    error = RuntimeError("403")
    found = end(error, has_executors=has_executors, spark=Spark(is_starting=is_starting))
    assert (found is not error) == is_changed
    assert not is_changed or "service account needs the verbs" in str(found)


@pytest.mark.parametrize("error", [RuntimeError("py4j"), TransientError("a task failed")])
def test_too_many_executor_failures_are_named(error: Exception) -> None:
    spark = Spark(TooManyExecutorFailures.exit_code)
    assert isinstance(end(error, has_executors=True, spark=spark), TooManyExecutorFailures)


@pytest.mark.parametrize(("in_pod", "advice"), [(True, "spec.executor.memory.max"), (False, "--cores")])
def test_the_end_of_the_jvm_has_the_advice_for_a_pod_or_a_machine(
    in_pod: bool, advice: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    if in_pod:
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    found = end(RuntimeError("py4j"), spark=Spark(137))
    assert isinstance(found, TransientError)
    assert advice in str(found)


@pytest.mark.parametrize(("error", "code"), [(RuntimeError("a defect"), None), (TransientError("retry"), 137)])
def test_other_errors_stay(error: Exception, code: int | None) -> None:
    assert end(error, has_executors=isinstance(error, TransientError), spark=Spark(code)) is error


class Process:
    """A JVM that ends with `code`, or not."""

    def __init__(self, code: int | None) -> None:
        self._code = code

    def wait(self, timeout: float) -> int:
        if self._code is None:
            raise subprocess.TimeoutExpired("java", timeout)
        return self._code


@pytest.mark.parametrize("code", [None, 0, 137])
def test_the_exit_code_of_the_jvm_is_unknown_while_it_runs(code: int | None) -> None:
    context = type("Context", (), {"_gateway": type("Gateway", (), {"proc": Process(code)})})
    assert StartedSpark(context=context).jvm_exit_code() == code
    assert StartedSpark().jvm_exit_code() is None
