"""The answers of the report server of a driver."""

from __future__ import annotations

import types

import pytest

from sink_job.coordinator.progress import Progress
from sink_job.driver.liveness import Heartbeat
from sink_job.driver.report_endpoints import ReportEndpoints
from sink_job.driver.secret_registry import SECRETS
from sink_job.driver.started_spark import StartedSpark
from tests.unit.api.manifests import accepted


class Run:
    """The endpoints of a run and what they read."""

    def __init__(self) -> None:
        self.progress = Progress(accepted(), lambda: 0)
        self.heartbeat = Heartbeat()
        self.spark = StartedSpark()
        self.endpoints = ReportEndpoints(self.progress, self.heartbeat, self.spark)


def test_a_run_without_a_beat_is_unhealthy(monkeypatch: pytest.MonkeyPatch) -> None:
    it = Run()
    assert it.endpoints._health().status == 200
    monkeypatch.setattr(it.heartbeat, "silence_s", lambda: 10_000.0)
    assert it.endpoints._health().status == 503


def test_a_run_without_a_beat_for_minutes_reports_it_long_before_it_is_unhealthy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    it = Run()
    assert it.endpoints.report().no_progress_ms is None
    monkeypatch.setattr(it.heartbeat, "silence_s", lambda: 300.0)
    assert it.endpoints.report().no_progress_ms == 300_000
    assert it.endpoints._health().status == 200


def test_a_run_is_ready_in_the_state_running() -> None:
    it = Run()
    assert it.endpoints._readiness()[::2] == (503, b"Starting\n")
    it.progress.recovered()
    assert it.endpoints._readiness()[::2] == (200, b"Running\n")


def test_a_rejection_of_executor_pods_is_reported_without_secrets() -> None:
    it = Run()
    SECRETS.hide(["very+secret/key"])
    it.spark.executor_log = types.SimpleNamespace(rejection='env "KEY=very+secret/key" is denied')  # type: ignore[assignment]
    assert it.endpoints.report().executor_rejection == 'env "KEY=[hidden]" is denied'
