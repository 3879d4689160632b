"""The error messages and exit codes of the command, with a real broker and a real S3 server."""

from __future__ import annotations

import json
import os
import re
import signal
import time
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from devtools.bucket_listing import objects, uploads
from devtools.kafka import KafkaBroker, kafka_broker
from devtools.processes import Process, free_ports, in_session, wait_until
from devtools.s3 import S3Server, credentials_secret
from devtools.sink_process import SinkCommand, local_spec, manifest
from devtools.topics import Topics

pytestmark = pytest.mark.data

START_TIMEOUT_S = 240.0
SECRET = "a-wrong-secret-key-of-ours"
SinkFactory = Callable[[Mapping[str, Any]], SinkCommand]
Written = Callable[..., SinkCommand]


@pytest.fixture
def sink_imports() -> tuple[str, ...]:
    """None: these tests run the program `s3sink` itself."""
    return ()


@pytest.fixture
def written(
    kafka: KafkaBroker, s3: S3Server, bucket: str, topic: str, unique_name: str, sink_of: SinkFactory
) -> Written:
    """Makes a sink of one topic; arguments override sections of the spec."""

    def make(**sections: Mapping[str, Any]) -> SinkCommand:
        usual: dict[str, Mapping[str, Any]] = {"rotation": {"flushSize": 10}}
        spec = local_spec(
            bootstrap=kafka.bootstrap, topics=[topic], endpoint=s3.endpoint, bucket=bucket, **{**usual, **sections}
        )
        return sink_of(manifest(unique_name, spec))

    return make


def last_line(log: str) -> str:
    return log.splitlines()[-1]


def test_all_errors_of_a_manifest_are_reported_before_start_up(written: Written) -> None:
    log = written(rotation={"flushSize": 0, "interval": "soon"}, s3={"bucket": "No_Bucket"}).must("run", exit_code=2)
    lines = log.splitlines()
    assert lines[0].startswith("s3sink: InvalidSpec:")
    assert [line.split(": ")[0].strip() for line in lines[1:]] == [
        "spec.rotation.flushSize",
        "spec.rotation.interval",
        "spec.s3.bucket",
    ]


def test_the_error_names_a_missing_bucket(written: Written) -> None:
    log = written(s3={"bucket": "there-is-no-such-bucket"}).must("run", exit_code=7)
    assert last_line(log).startswith("s3sink: BucketNotFound: ")
    assert "s3://there-is-no-such-bucket" in last_line(log)


def test_invalid_keys_are_reported_without_their_values(written: Written, tmp_path: Path) -> None:
    keys = credentials_secret(tmp_path / "keys", secret_key=SECRET)
    sink = written(s3={"credentials": {"secret": "s3-keys"}})
    log = sink.must("run", "--secret", f"s3-keys={keys}", "--debug", exit_code=7)
    assert "s3sink: InvalidCredentials: " in log
    assert SECRET not in log


def test_the_error_names_a_missing_topic(written: Written, topic: str) -> None:
    log = written().must("run", exit_code=7)
    assert last_line(log).startswith("s3sink: TopicNotFound: ")
    assert f"topic {topic} does not exist" in last_line(log)


def test_an_unreachable_broker_at_the_start_is_a_transient_error(written: Written) -> None:
    port = free_ports(1)[0]
    log = written(kafka={"bootstrapServers": f"127.0.0.1:{port}"}).must("run", exit_code=75)
    assert last_line(log) == (
        "s3sink: TransientError: spec.kafka.bootstrapServers: no broker can be reached "
        f"(127.0.0.1:{port}: Connection refused)"
    )


def test_status_without_a_broker_prints_the_content_of_the_ledger(
    written: Written, topics: Topics, topic: str, unique_name: str
) -> None:
    topics.create(topic)
    topics.produce_values(topic, [b"{}"] * 25)
    sink = written()
    sink.catch_up(publish_open=False)
    with_broker = json.loads(sink.must("status", "-o", "json"))
    assert with_broker["partitions"][0] == {
        "topic": topic,
        "partition": 0,
        "committed": 20,
        "next": 25,
        "end": 25,
        "lag": 5,
        "group": 20,
        "open": with_broker["partitions"][0]["open"],
    }
    assert with_broker["partitions"][0]["open"]["paths"] == ["partition=0"]
    document = sink.path.read_text()
    sink.path.write_text(re.sub(r"bootstrapServers: \S+", f"bootstrapServers: 127.0.0.1:{free_ports(1)[0]}", document))
    log = sink.must("status")
    assert (
        "s3sink: Kafka is unavailable, showing the ledger only: spec.kafka.bootstrapServers: no broker can be reached"
        in log
    )
    assert re.search(rf"{topic}-0 +\d+ +25 +\? +\? +1 ", log)


def test_a_broker_failure_during_a_run_is_a_transient_error(
    s3: S3Server, bucket: str, topic: str, unique_name: str, sink_of: SinkFactory
) -> None:
    with kafka_broker() as broker:
        topics = Topics(broker.bootstrap)
        topics.create(topic)
        spec = local_spec(
            bootstrap=broker.bootstrap, topics=[topic], endpoint=s3.endpoint, bucket=bucket, rotation={"flushSize": 10}
        )
        sink = sink_of(manifest(unique_name, spec))
        process = sink.start("run")
        sink.wait_for(lambda: "running;" in process.log, "the sink", process, seconds=START_TIMEOUT_S)
        broker.kill()
        assert process.wait(180) == 75
        assert last_line(process.log).startswith(f"s3sink: TransientError: Kafka at {broker.bootstrap} did not ")


def test_the_error_gives_the_offset_of_a_value_that_is_not_json(
    written: Written, topics: Topics, topic: str, s3: S3Server, bucket: str
) -> None:
    topics.create(topic)
    topics.produce_values(topic, [b'{"n": 1}'] * 12 + [b"not json"] + [b'{"n": 2}'] * 30)
    log = written().must("run", exit_code=4)
    assert last_line(log).startswith(f"s3sink: DataError: record at {topic}-0 offset 12: ")
    assert len(objects(s3.client(), bucket)) == 1


def test_the_password_of_a_jaas_line_is_in_no_log(
    s3: S3Server, bucket: str, topic: str, unique_name: str, sink_of: SinkFactory, tmp_path: Path
) -> None:
    login = tmp_path / "login"
    login.mkdir()
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    (login / "jaas").write_text(f'{module} required username="alice" password="{SECRET}";')
    with kafka_broker(users={"alice": "another-password"}) as broker:
        kafka = {
            "properties": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
            "propertySecrets": [{"name": "sasl.jaas.config", "secret": "login", "key": "jaas"}],
        }
        spec = local_spec(
            bootstrap=broker.sasl_bootstrap,
            topics=[topic],
            endpoint=s3.endpoint,
            bucket=bucket,
            kafka=kafka,
            rotation={"flushSize": 10},
        )
        sink = sink_of(manifest(unique_name, spec))
        log = sink.must("run", "--secret", f"login={login}", "--debug", exit_code=7)
    assert "s3sink: InvalidCredentials: " in log
    assert SECRET not in log


def test_ctrl_c_ends_the_run_with_0_and_leaves_no_process(written: Written, topics: Topics, topic: str) -> None:
    topics.create(topic)
    process = (sink := written()).start("run")
    sink.wait_for(lambda: "running;" in process.log, "the sink", process, seconds=START_TIMEOUT_S)
    os.killpg(process.pid, signal.SIGINT)  # a terminal sends it to all foreground processes
    expect_end(process)


def expect_end(process: Process) -> None:
    """The process exits with 0 and leaves no other one."""
    assert process.wait(60) == 0
    wait_until(lambda: not in_session(process.pid), "the end of all processes", seconds=30)


def test_sigkill_leaves_neither_a_jvm_nor_workers(
    written: Written, topics: Topics, topic: str, s3: S3Server, bucket: str
) -> None:
    topics.create(topic)
    topics.produce_values(topic, [b'{"n": 1}'] * 30)
    process = (sink := written()).start("run")
    sink.wait_for(lambda: bool(objects(s3.client(), bucket)), "a round", process, seconds=START_TIMEOUT_S)
    assert len(in_session(process.pid)) > 2
    process.kill_alone()
    wait_until(lambda: not in_session(process.pid), "the end of all processes", seconds=30)


def test_a_running_job_serves_report_metrics_and_health_until_sigterm_ends_it_with_0(
    written: Written, topics: Topics, topic: str, s3: S3Server, bucket: str
) -> None:
    topics.create(topic)
    before = time.time()
    topics.produce_values(topic, [b'{"n": 1}'] * 25)
    sink = written()
    process = sink.start("run", "--http", "0", "--log", "json")
    sink.wait_for(lambda: len(objects(s3.client(), bucket)) == 2, "a round", process, seconds=START_TIMEOUT_S)
    sink.wait_for(lambda: "objects (+" in process.log, "its line of log", process)
    url = next(found.group() for line in process.log.splitlines() if (found := re.search(r"http://127\.[\d.:]+", line)))

    def ask(path: str) -> str:
        with urllib.request.urlopen(url + path, timeout=30) as answer:
            text: str = answer.read().decode()
            return text

    report = json.loads(ask("/report"))
    assert report["state"] == "Running"
    assert report["totals"]["records"] == 25
    assert report["memory"]["jvmBytes"] > report["memory"]["pythonBytes"] > 0
    sink.wait_for(lambda: json.loads(ask("/report"))["partitions"][0]["lagMs"] is not None, "the age", process)
    found = json.loads(ask("/report"))["partitions"][0]
    assert found["lag"] == 5
    assert 0 <= found["lagMs"] <= (time.time() - before) * 1000, "the records are as old as this test at most"
    assert "\ns3sink_lag_seconds " in ask("/metrics")
    assert f's3sink_partition_lag_seconds{{partition="0",topic="{topic}"}}' in ask("/metrics/partitions")
    assert f's3sink_partition_committed_offset{{partition="0",topic="{topic}"}} 20.0' in ask("/metrics/partitions")
    assert 's3sink_s3_requests_total{operation="UploadPart",process="task"} 2.0' in ask("/metrics")
    assert ask("/healthz") == "ok\n"
    assert ask("/readyz") == "Running\n"
    assert json.loads(sink.must("status", "-o", "json", "--from", url))["state"] == "Running"
    os.kill(process.pid, signal.SIGTERM)
    expect_end(process)
    assert all(json.loads(line)["level"] for line in process.log.splitlines() if line.startswith("{"))
    assert uploads(s3.client(), bucket) == {}


def test_a_killed_jvm_is_a_transient_error(written: Written, topics: Topics, topic: str) -> None:
    topics.create(topic)
    process = (sink := written()).start("run")
    sink.wait_for(lambda: "running;" in process.log, "the sink", process, seconds=START_TIMEOUT_S)
    names = {pid: Path(f"/proc/{pid}/comm").read_text().strip() for pid in in_session(process.pid)}
    os.kill(next(pid for pid, name in names.items() if name == "java"), signal.SIGKILL)
    assert process.wait(60) == 75
    assert last_line(process.log).startswith("s3sink: TransientError: Spark's JVM has ended")
    assert "Traceback" not in process.log
