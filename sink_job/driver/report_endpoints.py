"""What the report server of a driver answers: `/report`, `/metrics`, `/healthz` and `/readyz`."""

from __future__ import annotations

from sink_job.api.report import Report, RunState
from sink_job.coordinator.progress import Progress
from sink_job.driver.liveness import HEARTBEAT_TIMEOUT_S, QUIET_S, Heartbeat
from sink_job.driver.process_memory import peak_rss
from sink_job.driver.report_server import JSON, TEXT, Answer, Routes
from sink_job.driver.secret_registry import SECRETS
from sink_job.driver.started_spark import StartedSpark
from sink_job.s3 import S3Client


class ReportEndpoints:
    """The answers of one run."""

    def __init__(self, progress: Progress, heartbeat: Heartbeat, spark: StartedSpark) -> None:
        self._progress = progress
        self._heartbeat = heartbeat
        self._spark = spark

    def report(self) -> Report:
        """The current report."""
        report = self._progress.report()
        report.memory.jvm_bytes, report.memory.python_bytes = peak_rss()
        permission, log = self._spark.permission, self._spark.executor_log
        report.executor_denial = None if permission is None else permission.denial
        rejection = None if log is None else log.rejection
        report.executor_rejection = None if rejection is None else SECRETS(rejection)
        silence = self._silence_s()
        report.no_progress_ms = round(silence * 1000) if silence > QUIET_S else None
        return report

    def routes(self, s3: S3Client) -> Routes:
        """The answers by path. `s3` is the client of the driver, whose requests are counted."""
        from sink_job.driver import metrics

        collector = metrics.ReportCollector(
            report=self.report,
            lost=lambda: self._progress.lost_offsets,
            requests={"driver": lambda: s3.meter.snapshot().requests, "task": lambda: self._progress.requests},
        )
        by_partition = metrics.PartitionCollector(self.report)
        process = metrics.process_collector()
        return {
            "/report": self.report_answer,
            "/metrics": lambda: Answer(200, metrics.CONTENT_TYPE, metrics.exposition([collector, process])),
            "/metrics/partitions": lambda: Answer(200, metrics.CONTENT_TYPE, metrics.exposition([by_partition])),
            "/healthz": self._health,
            "/readyz": self._readiness,
        }

    def report_answer(self, most: int | None = None) -> Answer:
        """The report, with at most `most` topic-partitions."""
        report = self.report() if most is None else self.report().limited(most)
        return Answer(200, JSON, report.model_dump_json().encode() + b"\n")

    def _health(self) -> Answer:
        silence = self._silence_s()
        if silence > HEARTBEAT_TIMEOUT_S:
            return Answer(503, TEXT, f"no progress for {silence:.0f} s\n".encode())
        return Answer(200, TEXT, b"ok\n")

    def _readiness(self) -> Answer:
        state = self._progress.state
        is_starting = state in (RunState.STARTING, RunState.RECOVERING)
        return Answer(200 if state is RunState.RUNNING else 503, TEXT, f"{state.value}\n".encode(), is_starting)

    def _silence_s(self) -> float:
        """Seconds without progress; completed tasks of the current round count as progress."""
        if self._heartbeat.silence_s() > QUIET_S:
            self._heartbeat.observed(self._spark.tasks())
        return self._heartbeat.silence_s()
