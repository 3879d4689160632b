"""`/metrics` in Prometheus' text format."""

from __future__ import annotations

from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from sink_job.api.report import PartitionReport, Report
from sink_job.driver import metrics
from tests.unit.driver.conftest import MakeReport

DOCS = Path(__file__).parents[3] / "docs" / "metrics.md"

Sample = tuple[str, frozenset[tuple[str, str]]]


def exposition(report: Report) -> list[str]:
    """The lines of /metrics."""
    collector = metrics.ReportCollector(report=lambda: report, lost=lambda: 6, requests={})
    return metrics.exposition([collector]).decode().splitlines()


def samples(report: Report) -> dict[Sample, float]:
    collector = metrics.ReportCollector(
        report=lambda: report,
        lost=lambda: 6,
        requests={"driver": lambda: {"GetObject": 2}, "task": lambda: {"UploadPart": 9, "CreateMultipartUpload": 1}},
    )
    text = metrics.exposition([collector, metrics.PartitionCollector(lambda: report)]).decode()
    families = text_string_to_metric_families(text)
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def labels(**given: str) -> frozenset[tuple[str, str]]:
    return frozenset(given.items())


@pytest.mark.parametrize(
    ("name", "about", "value"),
    [
        ("records_total", labels(), 1_500),
        ("bytes_total", labels(), 12_300_000),
        ("objects_total", labels(), 4),
        ("parts_total", labels(), 9),
        ("lost_offsets_total", labels(), 6),
        ("s3_requests_total", labels(process="task", operation="UploadPart"), 9),
        ("s3_requests_total", labels(process="driver", operation="GetObject"), 2),
        ("round_duration_seconds_sum", labels(), 4.5),
        ("round_duration_seconds_count", labels(), 9),
        ("publish_duration_seconds_sum", labels(), 0.9),
        ("lag_records", labels(), 30),
        ("unread_records", labels(), 20),
        ("read_offsets", labels(), 150),
        ("open_objects", labels(), 2),
        ("partition_lag_records", labels(topic="flights", partition="0"), 30),
        ("partition_open_objects", labels(topic="flights", partition="0"), 2),
        ("active_partitions", labels(), 1),
        ("buffered_bytes", labels(), 70),
        ("spilled_bytes", labels(), 80),
        ("tables", labels(), 3),
        ("tables_failing", labels(), 1),
        ("table_lag_objects", labels(), 7),
        ("table_lag_seconds", labels(), 61.5),
        ("table_skipped_objects", labels(), 6),
        ("table_objects_total", labels(), 40),
        ("table_commits_total", labels(), 5),
        ("jvm_peak_bytes", labels(), 90),
        ("state", labels(s3sink_state="Running"), 1),
        ("state", labels(s3sink_state="Failed"), 0),
        ("info", labels(sink_id="default.flights", name="flights", namespace="default"), 1),
        ("last_publish_time_seconds", labels(), 1_699_999_997),
    ],
)
def test_the_metrics_have_the_values_of_the_report(
    make_report: MakeReport, name: str, about: frozenset[tuple[str, str]], value: float
) -> None:
    assert samples(make_report())[f"s3sink_{name}", about] == value


def test_an_unknown_value_has_no_sample(make_report: MakeReport) -> None:
    found = samples(make_report(last_publish=None))
    assert ("s3sink_last_publish_time_seconds", labels()) not in found
    assert ("s3sink_partition_lag_records", labels(topic="flights", partition="1")) not in found
    assert ("s3sink_partition_committed_offset", labels(topic="flights", partition="1")) in found


def test_a_sink_without_tables_has_no_samples_of_them(make_report: MakeReport) -> None:
    assert not [name for name, _ in samples(make_report(table_sums=None)) if name.startswith("s3sink_table")]


def test_a_sum_of_unknown_values_has_no_sample(make_report: MakeReport) -> None:
    found = samples(make_report(partitions=[PartitionReport(topic="flights", partition=1, committed=50, next=50)]))
    assert not {("s3sink_lag_records", labels()), ("s3sink_unread_records", labels())} & found.keys()


def test_the_number_of_series_of_a_sink_does_not_depend_on_its_topic_partitions(make_report: MakeReport) -> None:
    def series(report: Report) -> list[str]:
        return [line.split(" ")[0] for line in exposition(report) if not line.startswith("#")]

    many = [PartitionReport(topic="t", partition=n, committed=0, next=0, end=1, lag=1) for n in range(99)]
    assert series(make_report(partitions=many)) == series(make_report())


def test_every_metric_is_documented(make_report: MakeReport) -> None:
    text = DOCS.read_text()
    missing = {name for name, _ in samples(make_report()) if f"`{name}`" not in text and f"`{_base(name)}`" not in text}
    assert not missing


def _base(name: str) -> str:
    return name.removesuffix("_sum").removesuffix("_count")
