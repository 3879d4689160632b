"""The executors of a running application: what is asked of Spark."""

from __future__ import annotations

from unittest.mock import Mock, call

import pytest

from sink_job.api.units.quantities import MI
from sink_job.spark.executor_pods import ExecutorConfig
from sink_job.spark.executor_scaling import ExecutorScaler

CONFIG = ExecutorConfig(properties={}, instances=3, cores=1, memory=1024 * MI)


@pytest.fixture
def context() -> Mock:
    """A SparkContext with the executors 1, 2, 10."""
    made = Mock()
    made._jsc.sc().getExecutorIds().mkString.return_value = "10,1,2"
    return made


def requested(context: Mock) -> list[int]:
    return [each.args[0] for each in context._jsc.sc().requestTotalExecutors.mock_calls]


def ended(context: Mock) -> list[tuple[str, ...]]:
    """The ids of the executors of each request to end some."""
    calls = context._jsc.sc().schedulerBackend().killExecutors.mock_calls
    assert calls == [call(each.args[0], False, False, True) for each in calls]
    return [each.args[0] for each in calls]


@pytest.fixture
def scaler(context: Mock, monkeypatch: pytest.MonkeyPatch) -> ExecutorScaler:
    made = ExecutorScaler(context, CONFIG)
    monkeypatch.setattr(made, "_no_hosts", dict)
    monkeypatch.setattr(made, "_sequence", tuple)
    return made


def test_more_executors_are_requested_once(scaler: ExecutorScaler, context: Mock) -> None:
    scaler.scale(5)
    scaler.scale(5)
    assert requested(context) == [5]


def test_another_number_is_passed_on_once(context: Mock, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers: list[int] = []
    scaler = ExecutorScaler(context, CONFIG, scaled=numbers.append)
    monkeypatch.setattr(scaler, "_no_hosts", dict)
    scaler.scale(3)
    scaler.scale(5)
    scaler.scale(5)
    assert numbers == [5]


def test_of_fewer_executors_the_youngest_end_and_are_not_replaced(scaler: ExecutorScaler, context: Mock) -> None:
    scaler.scale(1)
    scaler.end_excess()
    assert requested(context) == [1]
    assert ended(context) == [("2", "10")]


def test_an_executor_that_registers_after_fewer_were_requested_ends(scaler: ExecutorScaler, context: Mock) -> None:
    executors = context._jsc.sc().getExecutorIds().mkString
    executors.return_value = "1"
    scaler.scale(1)
    scaler.end_excess()
    assert not ended(context)
    executors.return_value = "1,2"
    scaler.end_excess()
    assert ended(context) == [("2",)]


def test_equal_values_change_nothing(scaler: ExecutorScaler, context: Mock) -> None:
    scaler.scale(3)
    scaler.end_excess()
    scaler.resize(1024 * MI)
    assert not requested(context)
    assert not ended(context)
    assert not context._jsc.sc().conf().set.mock_calls
