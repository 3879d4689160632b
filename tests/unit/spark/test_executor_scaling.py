"""The executors of a running application: what is asked of Spark."""

from __future__ import annotations

from unittest.mock import Mock, call

import pytest

from sink_job.api.quantities import MI
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


def test_of_fewer_executors_the_youngest_end_and_are_not_replaced(scaler: ExecutorScaler, context: Mock) -> None:
    scaler.scale(1)
    assert requested(context) == [1]
    backend = context._jsc.sc().schedulerBackend()
    assert backend.killExecutors.mock_calls == [call(("2", "10"), False, False, True)]


def test_equal_values_change_nothing(scaler: ExecutorScaler, context: Mock) -> None:
    scaler.scale(3)
    scaler.resize(1024 * MI)
    assert not requested(context)
    assert not context._jsc.sc().conf().set.mock_calls
