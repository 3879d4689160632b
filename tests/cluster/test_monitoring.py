"""The chart's monitors, alerts and dashboard in a real Prometheus, which scrapes an operator and a driver."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from devtools.chromium import chromium
from devtools.operator_process import Operator
from devtools.processes import ServerFailedError, wait_until
from devtools.prometheus.browser import drawn_panels
from devtools.prometheus.server import Json, Prometheus, Target, prometheus, scrape_configs
from s3sink_operator import names
from sink_job.api.report import MemoryReport, PartitionReport, Report, Timing, Totals
from sink_job.driver import metrics
from sink_job.driver.report_server import Answer, ReportServer
from tests.support.chart import EVERYTHING, Rendered
from tests.support.operator_fixture import DRIVER, SINK, Operated, report
from tools.chart import CHART

pytestmark = pytest.mark.cluster
DASHBOARD: Json = json.loads((CHART / "files" / "dashboard.json").read_text())
PANELS = {
    (panel["title"], target["refId"]): target["expr"]
    for panel in DASHBOARD["panels"]
    for target in panel.get("targets", ())
}
VARIABLE = re.compile(r"label_values\((.*), (\w+)\)")


@dataclass
class Driver:
    """The metrics of a driver whose counters grow with each report."""

    namespace: str
    rounds: int = 0
    requests: dict[str, int] = field(default_factory=lambda: {"UploadPart": 0})

    def report(self) -> Report:
        self.rounds += 1
        self.requests["UploadPart"] += 1
        rounds = Timing(count=self.rounds, total_ms=20 * self.rounds)
        offset = 100 * self.rounds
        partition = PartitionReport(
            topic="flights", partition=0, committed=offset, next=offset + 5, end=offset + 30, lag=30
        )
        totals = Totals(records=offset, bytes=9 * offset, objects=self.rounds)
        return report(
            namespace=self.namespace,
            partitions=[partition],
            totals=totals,
            rounds=rounds,
            publishes=rounds,
            last_publish=1_760_000_000_000,
            assigned_partitions=1,
            active_partitions=1,
            memory=MemoryReport(slots=1, buffered_bytes=1 << 20, jvm_bytes=1 << 29, python_bytes=1 << 28),
        )

    def server(self) -> ReportServer:
        """The server of a driver, with its own code for /metrics."""
        collector = metrics.ReportCollector(
            report=self.report, lost=lambda: 0, requests={"task": lambda: dict(self.requests)}
        )
        served = {
            "/metrics": [collector, metrics.process_collector()],
            "/metrics/partitions": [metrics.PartitionCollector(self.report)],
        }
        routes = {
            path: (lambda found=found: Answer(200, metrics.CONTENT_TYPE, metrics.exposition(found)))
            for path, found in served.items()
        }
        return ReportServer("127.0.0.1", 0, routes)


@dataclass
class Monitored:
    """A Ready sink, whose operator and driver Prometheus scrapes."""

    sink: Operated
    namespace: str
    prometheus: Prometheus

    @property
    def variables(self) -> dict[str, str]:
        """What Grafana puts into queries. The series are seconds old, so subqueries have finer steps."""
        return {"$namespace": self.namespace, "$sink": ".*", "$__rate_interval": "1m", ":1m]": ":1s]"}

    def expression(self, query: str) -> str:
        """A query of the dashboard as Grafana sends it."""
        for variable, value in self.variables.items():
            query = query.replace(variable, value)
        return query


@pytest.fixture
def monitored(
    sink: Operated,
    everywhere: Operator,
    namespace: str,
    template: Callable[..., Rendered],
    tmp_path: Path,
) -> Iterator[Monitored]:
    made = template(EVERYTHING, "serviceMonitor.enabled=true")
    sink.started()
    with Driver(namespace).server() as driver:
        sink_label = f"__meta_kubernetes_pod_label_{re.sub('[./]', '_', names.SINK_LABEL)}"
        of_operator = Target(f"127.0.0.1:{everywhere.port}", {"namespace": "ops", "pod": "operator-0"})
        of_driver = Target(driver.address, {"namespace": namespace, "pod": DRIVER, "job": "s3sink", sink_label: SINK})
        scrapes = [
            *scrape_configs(made.one("ServiceMonitor"), [of_operator]),
            *scrape_configs(made.one("PodMonitor"), [of_driver]),
        ]
        with prometheus(tmp_path, scrapes, made.one("PrometheusRule")["spec"]["groups"]) as server:
            of_driver_rate = f'rate(s3sink_records_total{{namespace="{namespace}"}}[1m]) > 0'
            rates = f"({of_driver_rate}) and on () count(rate(s3sink_operator_api_writes_total[1m]))"
            wait_until(lambda: bool(server.query(rates)), "two scrapes of both", seconds=60, unless=server.failed)
            yield Monitored(sink, namespace, server)


def test_every_query_of_the_dashboard_returns_data_with_the_labels_of_the_sink(monitored: Monitored) -> None:
    server, namespace = monitored.prometheus, monitored.namespace

    samples: dict[tuple[str, str], list[Json]] = {}

    def is_complete() -> bool:
        samples.update({panel: server.query(monitored.expression(query)) for panel, query in PANELS.items()})
        return all(samples.values()) and server.down() == []

    # A scrape that a busy machine delays beyond its time-out leaves a target down until the next one.
    with suppress(ServerFailedError):
        wait_until(is_complete, "data for each panel", seconds=60)
    assert server.down() == []
    assert [panel for panel, those in samples.items() if not those] == []
    assert server.value(monitored.expression(PANELS["Ready sinks", "A"])) == 1
    assert server.value(monitored.expression(PANELS["Not Ready sinks", "A"])) == 0
    (lag,) = samples["Lag by sink", "A"]
    assert lag["metric"] == {"namespace": namespace, "sink": SINK}
    (largest,) = samples["Topic-partitions with the largest lag", "A"]
    assert (largest["metric"]["topic"], largest["metric"]["partition"]) == ("flights", "0")


def test_the_variables_of_the_dashboard_list_the_namespace_and_the_sink(monitored: Monitored) -> None:
    values = {}
    for variable in DASHBOARD["templating"]["list"]:
        if variable["type"] == "query":
            selector, label = VARIABLE.fullmatch(monitored.expression(variable["definition"])).groups()  # type: ignore[union-attr]
            values[variable["name"]] = monitored.prometheus.label_values(label, selector)
    assert monitored.namespace in values["namespace"]
    assert values["sink"] == [SINK]


@pytest.mark.skipif(chromium() is None, reason="there is no chromium")
def test_a_browser_draws_every_panel_of_the_dashboard(monitored: Monitored) -> None:
    now = time.time()
    url, variables = monitored.prometheus.url, monitored.variables
    drawn = drawn_panels(DASHBOARD, url, start=now - 60, end=now, variables=variables)
    assert drawn == len({title for title, _ in PANELS})


def test_a_sink_whose_driver_is_killed_raises_an_alert_from_its_status_alone(monitored: Monitored) -> None:
    server, namespace = monitored.prometheus, monitored.namespace
    ready = f's3sink_status_condition{{condition="Ready", status="True", namespace="{namespace}", sink="{SINK}"}}'

    def is_active() -> bool:
        return "S3SinkNotReady" in server.alerts(namespace)

    wait_until(lambda: server.value(ready) == 1 and not is_active(), "no alert", seconds=60, unless=server.failed)
    monitored.sink.harness.at_start(DRIVER, monitored.sink.harness.oom_kill)
    monitored.sink.harness.oom_kill(DRIVER)
    wait_until(is_active, "an alert", seconds=60, unless=server.failed)
    assert server.value(ready) == 0


def test_promtool_finds_nothing_wrong_in_the_metrics_of_a_real_operator_and_of_a_driver(
    sink: Operated, everywhere: Operator, namespace: str, promtool: Path
) -> None:
    sink.started()
    driver = Driver(namespace)
    collectors = [metrics.ReportCollector(report=driver.report, lost=lambda: 0, requests={})]
    texts = {
        "operator": everywhere.metrics().encode(),
        "driver": metrics.exposition([*collectors, metrics.process_collector()]),
        "topic-partitions": metrics.exposition([metrics.PartitionCollector(driver.report)]),
    }
    for name, text in texts.items():
        done = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, check=False)
        assert (done.returncode, done.stdout + done.stderr) == (0, b""), name
