"""Every alert of the chart in its fault: a real Prometheus evaluates the chart's rules over a real operator and a real
driver, which are brought into each fault. So names and labels in the rules are those that are exported.

Durations of the rules are divided by `SPEED`. Thresholds are the chart's values.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
import urllib3

from devtools.kafka import KafkaBroker
from devtools.operator_process import Operator
from devtools.processes import LOOPBACK, Process, free_ports, wait_until
from devtools.prometheus.server import Json, Prometheus, Target, prometheus, scrape_configs
from devtools.s3 import S3Server, s3_server
from devtools.sink_process import SinkCommand, local_spec, manifest, short_run, sink_command
from devtools.topics import Topics
from s3sink_operator import names
from sink_job.api.errors import TransientError
from sink_job.api.report import Failure, FinalReport
from tests.support.chart import EVERYTHING, Rendered
from tests.support.operator_fixture import Operated, StartOperator, is_ready

pytestmark = [pytest.mark.cluster, pytest.mark.data]

SPEED: Final = 200
VALUES: Final = {"publishAgeSeconds": 5, "lagRecords": 10, "restartsPerHour": 1, "tableLagSeconds": 1}
OF_THE_OPERATOR: Final = (
    {"S3SinkNotReady", "S3SinkFailing"},
    {"S3SinkOperatorDown"},
    {"S3SinkStalled", "S3SinkRolloutHalted"},
)
OF_A_DRIVER: Final = (
    {"S3SinkRecordsDropped"},
    {"S3SinkLagGrowing", "S3SinkNotPublishing"},
    {"S3SinkObjectsRebuilt"},
    {"S3SinkNoProgress"},
    {"S3SinkDataLoss"},
    {"S3SinkDriverDown"},
    {"S3SinkNotRunning"},
    {"S3SinkRestartingFrequently"},
    {"S3SinkDeadLetters"},
    {"S3SinkTableLagging"},
)
"""The alerts of each fault, in the order in which the tests make them."""
_DURATION = re.compile(r"(?<=[\[: ])(\d+)([mh])(?=[\]:)]|$)")
_UNITS = {"m": 60_000, "h": 3_600_000}
_SECONDS = 120.0
_SINK, _NAMESPACE = "flights", "lake"
_FLUSH = 1_000
SINKS = ("one", "two")


def faster(duration: str) -> str:
    """A duration of a rule divided by `SPEED`."""
    number, unit = int(duration[:-1]), duration[-1]
    return f"{number * _UNITS[unit] // SPEED}ms"


def faster_group(group: Json) -> Json:
    """The rules with all durations divided."""
    rules = [
        rule
        | {"expr": _DURATION.sub(lambda found: faster(found[0]), rule["expr"])}
        | ({"for": faster(rule["for"])} if "for" in rule else {})
        for rule in group["rules"]
    ]
    return group | {"rules": rules}


@dataclass
class Watch:
    """The alerts that have fired since `begin` (s since the epoch)."""

    server: Prometheus
    begin: float = 0.0

    def begin_when(self, is_healthy: Callable[[], object]) -> None:
        """Starts as soon as all is well and no alert is active."""

        def is_quiet() -> bool:
            return bool(is_healthy()) and not self.server.query("ALERTS")

        wait_until(is_quiet, "no alert", seconds=_SECONDS, unless=self.server.failed)
        self.begin = time.time()

    def fired(self) -> set[str]:
        since = max(1000, round((time.time() - self.begin) * 1000) - 1)
        found = self.server.query(f'count_over_time(ALERTS{{alertstate="firing"}}[{since}ms])')
        return {each["metric"]["alertname"] for each in found}

    def wait_fired(self, expected: set[str], *, unless: Callable[[], str | None] | None = None) -> None:
        """Returns when all of `expected` have fired in the fault that was just made."""
        wait_until(
            lambda: expected <= self.fired(), f"{expected}", seconds=_SECONDS, unless=unless or self.server.failed
        )

    def silent(self, expected: set[str]) -> set[str]:
        """`expected`, as soon as none of them has fired for a second: this is checked before the fault. An earlier
        alert does not count: five minutes of a rule are 1.5 s here, for which a busy machine can suspend a process."""

        def is_silent() -> bool:
            self.begin = time.time()
            return not expected & self.fired()

        wait_until(is_silent, f"no {expected}", seconds=_SECONDS, unless=self.server.failed)
        return expected


@pytest.fixture
def rendered(template: Callable[..., Rendered]) -> Rendered:
    values = [f"prometheusRule.{name}={value}" for name, value in VALUES.items()]
    return template(EVERYTHING, "serviceMonitor.enabled=true", *values)


def _group(rendered: Rendered) -> Json:
    (group,) = rendered.one("PrometheusRule")["spec"]["groups"]
    return dict(group)


def _watch(stack: ExitStack, folder: Path, rendered: Rendered, scrapes: Sequence[Json]) -> Watch:
    server = stack.enter_context(prometheus(folder, scrapes, [faster_group(_group(rendered))]))
    return Watch(server)


def test_there_is_a_fault_for_every_alert(rendered: Rendered) -> None:
    assert set().union(*OF_THE_OPERATOR, *OF_A_DRIVER) == {rule["alert"] for rule in _group(rendered)["rules"]}


def test_durations_of_rules_are_divided() -> None:
    rule = {"for": "15m", "expr": "changes(x[5m:1m]) > 100 and y > y offset 1h"}
    (found,) = faster_group({"rules": [rule]})["rules"]
    assert found == {"for": "4500ms", "expr": "changes(x[1500ms:300ms]) > 100 and y > y offset 18000ms"}


# --- alerts about the operator, and about the status of sinks


class Fleet:
    """Two sinks, whose drivers the test lets run and fail."""

    def __init__(self, operated: Operated) -> None:
        self.operated = operated
        for name in SINKS:
            self.at_start(name, operated.starts)

    def at_start(self, name: str, step: Callable[[str], object]) -> None:
        self.operated.harness.at_start(names.driver_pod_name(name), step)

    def apply(self) -> None:
        for name in SINKS:
            self.operated.apply(name, kafka={"bootstrapServers": "kafka:9092", "topics": [name]})

    def are_ready(self) -> bool:
        return all(is_ready(self.get(name)) for name in SINKS)

    def get(self, name: str) -> Json:
        return self.operated.kube.get("S3Sink", name)

    def fail(self, pod: str) -> None:
        """As a driver that Kafka does not answer."""
        failure = FinalReport(failure=Failure.of(TransientError("Kafka did not answer")))
        self.operated.harness.fail(pod, TransientError.exit_code, failure.termination_message())

    def failures(self, name: str) -> int:
        return int(self.get(name).get("status", {}).get("retry", {}).get("failures") or 0)

    def end_pause(self, name: str) -> None:
        """Ends the pause before the next attempt, which keeps the number of failures: two minutes as a rule."""
        status = {"retry": {"nextAttemptTime": "2020-01-01T00:00:00Z"}}
        self.operated.kube.patch("S3Sink", name, {"status": status}, subresource="status")


def _no_image(operated: Operated) -> Callable[[str], object]:
    return lambda pod: operated.harness.waiting(pod, "ImagePullBackOff", "Back-off pulling image")


def test_alerts_about_the_operator_and_the_status_of_sinks_fire_in_their_faults(
    alone: Operated, start: StartOperator, namespace: str, rendered: Rendered, tmp_path: Path
) -> None:
    fleet, (port,) = Fleet(alone), free_ports(1)
    replica = ("--port", str(port), "--lease-namespace", namespace, "--rollout-pause", "0s", "--resync", "500ms")
    target = Target(f"{LOOPBACK}:{port}", {"namespace": "ops", "pod": "operator-0"})
    failing, down, halted = OF_THE_OPERATOR
    with ExitStack() as stack:
        watch = _watch(stack, tmp_path, rendered, scrape_configs(rendered.one("ServiceMonitor"), [target]))
        operator = start(*replica)
        fleet.apply()
        watch.begin_when(fleet.are_ready)

        watch.silent(failing)
        _fail_repeatedly(fleet, "one")
        watch.wait_fired(failing)

        watch.silent(down)
        fleet.at_start("one", alone.starts)
        fleet.end_pause("one")
        wait_until(fleet.are_ready, "both Ready", seconds=_SECONDS)
        assert operator.terminate() == 0
        watch.wait_fired(down)

        watch.silent(halted)
        for name in SINKS:
            fleet.at_start(name, _no_image(alone))
        _started: Operator = start(*replica, "--image", "registry.example.com/s3sink-job:broken")
        watch.wait_fired(halted, unless=_started.failed)


def _fail_repeatedly(fleet: Fleet, name: str) -> None:
    """Three failures without a stable run between them."""
    fleet.at_start(name, fleet.fail)
    fleet.fail(names.driver_pod_name(name))
    wait_until(lambda: fleet.failures(name) == 2, "two failures", seconds=_SECONDS)
    fleet.end_pause(name)


# --- alerts about drivers


@pytest.fixture
def store() -> Iterator[S3Server]:
    """A server of its own, since it is suspended."""
    with s3_server() as server:
        yield server


@dataclass
class RealDriver:
    """`s3sink run` with its metrics at `port`, and what happens to it."""

    command: SinkCommand
    topics: Topics
    store: S3Server
    topic: str
    document: Json
    port: int
    watch: Watch
    process: Process | None = None
    produced: int = 0

    def start(self) -> None:
        self.process = self.command.start("run", "--http", str(self.port))

    def failed(self) -> str | None:
        return self.process.failed() if self.process else None

    def produce(self, count: int) -> None:
        values = (b'{"number": %d}' % (self.produced + number) for number in range(count))
        self.produced += self.topics.produce_values(self.topic, values)

    def is_idle(self) -> bool:
        """Whether all records are in visible objects, as Prometheus sees it."""
        server = self.watch.server
        running = server.value(f's3sink_state{{s3sink_state="Running", sink="{_SINK}"}}') == 1
        lag = server.value(f'sum(s3sink_lag_records{{sink="{_SINK}"}})')
        return running and lag == 0 and self.has_read()

    def has_read(self) -> bool:
        """Whether all records are in the ledger, in objects or staged, as Prometheus sees it."""
        read = self.watch.server.value(f'sum(s3sink_read_offsets{{sink="{_SINK}"}})')
        return (read or 0) >= self.produced

    def wait_idle(self) -> None:
        wait_until(self.is_idle, "all records in objects", seconds=_SECONDS, unless=self.failed)

    def serves(self) -> bool:
        with suppress(urllib3.exceptions.HTTPError):
            url = f"http://{LOOPBACK}:{self.port}/metrics"
            return urllib3.request("GET", url, timeout=2, retries=False).status == 200
        return False

    def wait_fired(self, expected: set[str]) -> None:
        self.watch.wait_fired(expected, unless=self.failed)

    # -- the faults

    def produce_invalid(self) -> None:
        self.produced += self.topics.produce_values(self.topic, [b"no JSON"])

    def keep_invalid(self) -> None:
        """From the next start on, invalid records become dead letters."""
        errors = {"tolerance": "All", "deadLetters": {"prefix": "rejected"}}
        self.command.write(self.document | {"spec": self.document["spec"] | {"errors": errors}})

    def add_table(self) -> None:
        """From the next start on, objects are Parquet, and a table is in a catalog that does not answer."""
        (port,) = free_ports(1)
        catalog = {"type": "Rest", "uri": f"http://{LOOPBACK}:{port}"}
        table = {"catalog": catalog, "name": "lake.{topic}", "every": "1s"}
        schema = {"text": "[{name: number, type: int64}]"}
        changes = {"format": {"converter": "Json", "schema": schema, "output": "Parquet"}, "tables": [table]}
        self.command.write(self.document | {"spec": self.document["spec"] | changes})

    def grow(self) -> None:
        """A few more records every second, less than an object."""
        begin = time.monotonic()

        def is_enough() -> bool:
            if time.monotonic() > begin + self.added:
                self.produce(2)
                self.added += 1
            return OF_A_DRIVER[1] <= self.watch.fired()

        self.added = 0
        self.produce(20)
        wait_until(is_enough, f"{OF_A_DRIVER[1]}", seconds=_SECONDS, unless=self.failed)

    def delete_staging(self) -> None:
        """The staged remainder of the open object. Between two rounds: one that runs may have read it already, and
        stages another."""
        wait_until(self.has_read, "all records in the ledger", seconds=_SECONDS, unless=self.failed)
        client, bucket = self.store.client(), self.topic
        listed = client.list_objects_v2(Bucket=bucket).get("Contents", [])
        keys = [each["Key"] for each in listed if "/staging/" in each["Key"]]
        assert keys
        for key in keys:
            client.delete_object(Bucket=bucket, Key=key)

    def suspend_store(self) -> None:
        assert self.store.process
        self.store.process.pause()

    def resume_store(self) -> None:
        assert self.store.process
        self.store.process.resume()

    def lose_records(self) -> None:
        """Records that Kafka deletes before they are read."""
        self.produce(50)
        self.topics.delete_records(self.topic, 0, self.produced)


def _sections() -> Mapping[str, Any]:
    return {
        "rounds": {"maxDelay": "200ms", "minBytes": 0},
        "rotation": {"flushSize": _FLUSH},
        "format": {"converter": "Json"},
        "errors": {"tolerance": "All"},
    }


@pytest.fixture
def driver(
    kafka: KafkaBroker, topics: Topics, store: S3Server, topic: str, rendered: Rendered, tmp_path: Path
) -> Iterator[RealDriver]:
    topics.create(topic)
    store.client().create_bucket(Bucket=topic)
    spec = local_spec(bootstrap=kafka.bootstrap, topics=[topic], endpoint=store.endpoint, bucket=topic, **_sections())
    document = short_run(manifest(_SINK, spec | {"onDataLoss": "Continue"}, namespace=_NAMESPACE))
    (port,) = free_ports(1)
    label = f"__meta_kubernetes_pod_label_{re.sub('[./]', '_', names.SINK_LABEL)}"
    target = Target(f"{LOOPBACK}:{port}", {"namespace": _NAMESPACE, "job": "s3sink", label: _SINK})
    scrapes = scrape_configs(rendered.one("PodMonitor"), [target])
    # What absent() of S3SinkOperatorDown looks for is not part of this test.
    group = _group(rendered)
    kept = [rule for rule in group["rules"] if rule["alert"] != "S3SinkOperatorDown"]
    with ExitStack() as stack:
        command = stack.enter_context(sink_command(tmp_path / "sink", document))
        server = stack.enter_context(prometheus(tmp_path, scrapes, [faster_group(group | {"rules": kept})]))
        yield RealDriver(command, topics, store, topic, document, port, Watch(server))


def test_alerts_about_a_driver_fire_in_their_faults(driver: RealDriver) -> None:
    watch = driver.watch
    dropped, growing, rebuilt, hanging, lost, down, not_running, restarting, dead, lagging = OF_A_DRIVER
    driver.start()
    driver.produce(_FLUSH)
    watch.begin_when(driver.is_idle)

    watch.silent(dropped)
    driver.produce_invalid()
    driver.produce(_FLUSH)
    driver.wait_fired(dropped)
    driver.wait_idle()

    watch.silent(growing)
    driver.grow()

    watch.silent(rebuilt)
    driver.delete_staging()
    driver.produce(_FLUSH)  # closes the object, which needs its staged remainder
    driver.wait_fired(rebuilt)

    watch.silent(hanging | lost)
    driver.suspend_store()
    driver.produce(20)
    driver.wait_fired(hanging)
    driver.lose_records()
    driver.resume_store()
    driver.wait_fired(lost)

    watch.silent(down)
    assert driver.process
    driver.process.pause()
    watch.wait_fired(down)
    driver.process.kill()

    watch.silent(not_running | restarting)
    driver.suspend_store()
    driver.start()
    driver.wait_fired(not_running)
    driver.process.kill()
    driver.start()
    driver.wait_fired(restarting)
    driver.process.kill()

    watch.silent(dead)
    driver.resume_store()
    driver.keep_invalid()
    driver.start()
    driver.produce_invalid()
    driver.wait_fired(dead)
    driver.process.kill()

    watch.silent(lagging)
    driver.add_table()
    driver.start()
    driver.produce(_FLUSH)
    driver.wait_fired(lagging)
