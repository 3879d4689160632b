"""`s3sink status`: where its figures come from, and what it does without Kafka or without a report."""

from __future__ import annotations

import http.client
import io
import json
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.error import HTTPError, URLError

import pytest

from sink_job.api.errors import TransientError
from sink_job.api.report import Report, RunState, Totals
from sink_job.cli import main as cli
from sink_job.coordinator.context import StopCondition
from sink_job.driver import standalone_admin
from tests.support.memory_sink import MemorySinkFixture
from tests.support.synthetic_log import FileConsumerGroup, SyntheticLog

LOG = SyntheticLog(records=12)


@pytest.fixture
def kafka(sink_fixture: MemorySinkFixture, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The Kafka that the command connects to: the last of the list."""
    connected: list[Any] = [FileConsumerGroup(LOG, sink_fixture.group)]

    @contextmanager
    def admin(properties: object, *, timeout_ms: int, connect_timeout_s: float) -> Iterator[Any]:
        if isinstance(connected[-1], Exception):
            raise connected[-1]
        yield connected[-1]

    monkeypatch.setattr(standalone_admin, "admin", admin)
    return connected


def status(sink_file: str, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert cli.main(["status", sink_file, "-o", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


# -- from ledger and Kafka ---------------------------------------------------------------------------------------------


def test_a_sink_that_has_not_run_needs_no_kafka(
    kafka: list[Any], sink_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    kafka.append(ZeroDivisionError())
    assert cli.main(["status", sink_file]) == 0
    assert capsys.readouterr().out == "default.log: no ledger yet: this sink has not run\n"


def test_the_figures_are_those_of_ledger_and_kafka(
    kafka: list[Any], sink_fixture: MemorySinkFixture, sink_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sink_fixture.run(LOG, goal=StopCondition(until_caught_up=True))
    [partition] = status(sink_file, capsys)["partitions"]
    assert (partition["committed"], partition["end"], partition["lag"]) == (10, 12, 2)
    assert partition["open"]["count"] == 1


def test_nothing_is_written(kafka: list[Any], sink_fixture: MemorySinkFixture, sink_file: str) -> None:
    sink_fixture.run(LOG, goal=StopCondition(until_caught_up=True))
    before = dict(sink_fixture.s3.objects)
    cli.main(["status", sink_file])
    assert sink_fixture.s3.objects == before


@pytest.mark.parametrize(("topic_id", "recreated"), [("topic-id", []), ("new", ["log"])])
def test_a_topic_with_another_id_than_in_the_ledger_was_created_again(
    kafka: list[Any],
    sink_fixture: MemorySinkFixture,
    sink_file: str,
    capsys: pytest.CaptureFixture[str],
    topic_id: str,
    recreated: list[str],
) -> None:
    sink_fixture.run(LOG, goal=StopCondition(until_caught_up=True))
    kafka.append(FileConsumerGroup(SyntheticLog(records=12, topic_id=topic_id), sink_fixture.group))
    assert status(sink_file, capsys).get("recreated", []) == recreated


def test_without_kafka_the_ledger_is_shown_and_the_reason(
    kafka: list[Any], sink_fixture: MemorySinkFixture, sink_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sink_fixture.run(LOG, goal=StopCondition(until_caught_up=True))
    kafka.append(TransientError("no broker can be reached: password=hunter2"))
    assert cli.main(["status", sink_file, "-o", "json"]) == 0
    output = capsys.readouterr()
    [partition] = json.loads(output.out)["partitions"]
    assert (partition["committed"], partition["end"], partition["lag"]) == (10, None, None)
    assert output.err.startswith("s3sink: Kafka is unavailable, showing the ledger only: no broker can be reached")
    assert "hunter2" not in output.err + output.out


def test_a_bug_is_not_an_unavailable_kafka(kafka: list[Any], sink_fixture: MemorySinkFixture, sink_file: str) -> None:
    sink_fixture.run(LOG, goal=StopCondition(until_caught_up=True))
    kafka.append(ZeroDivisionError())
    assert cli.main(["status", sink_file]) == 1


# -- from a running job ------------------------------------------------------------------------------------------------


def report(sink_id: str = "default.log") -> bytes:
    found = Report(
        sink_id=sink_id, name="log", namespace="default", state=RunState.RUNNING, now=1, started_at=1, totals=Totals()
    )
    return found.model_dump_json(by_alias=True).encode()


@pytest.fixture
def requested(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The URLs that were requested, of a job that answers with its report."""
    urls: list[str] = []

    def urlopen(url: str, timeout: float) -> io.BytesIO:
        urls.append(url)
        return io.BytesIO(report())

    monkeypatch.setattr(urllib.request, "urlopen", urlopen)
    return urls


@pytest.mark.parametrize(
    ("source", "url"),
    [
        ("localhost:8080", "http://localhost:8080/report"),
        ("http://localhost:8080", "http://localhost:8080/report"),
        ("https://job.example.com/", "https://job.example.com/report"),
        ("http://localhost:8080/?limit=5", "http://localhost:8080/report?limit=5"),
        ("http://localhost:8080?limit=5", "http://localhost:8080/report?limit=5"),
        ("http://gateway/sinks/log/report", "http://gateway/sinks/log/report"),
        ("[::1]:8080", "http://[::1]:8080/report"),
    ],
)
def test_the_report_of_a_job_is_at_the_path_report_unless_the_url_has_one(
    sink_file: str, requested: list[str], source: str, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["status", sink_file, "--from", source, "-o", "json"]) == 0
    assert requested == [url]
    assert json.loads(capsys.readouterr().out)["sinkId"] == "default.log"


@pytest.mark.parametrize(
    "source", ["ftp://localhost", "file:///etc/passwd", "http://[::1", "http://", "//[bad", "h:x", "h:0"]
)
def test_another_url_is_an_invalid_argument_and_not_requested(
    sink_file: str, requested: list[str], source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["status", sink_file, "--from", source]) == 2
    assert f"--from: {source} is not an HTTP URL" in capsys.readouterr().err
    assert requested == []


def failing(error: Exception) -> Callable[..., io.BytesIO]:
    def urlopen(url: str, timeout: float) -> io.BytesIO:
        raise error

    return urlopen


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (URLError(ConnectionRefusedError(111, "Connection refused")), "[Errno 111] Connection refused"),
        (HTTPError("http://h", 401, "Unauthorized", None, None), "Unauthorized"),  # type: ignore[arg-type]
        (TimeoutError("timed out"), "timed out"),
        (http.client.BadStatusLine("SSH-2.0-OpenSSH"), "SSH-2.0-OpenSSH"),
        (http.client.InvalidURL("nonnumeric port: 'x'"), "nonnumeric port: 'x'"),
        (http.client.IncompleteRead(b"{"), "IncompleteRead(1 bytes read)"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_a_job_without_a_report_is_a_transient_error_with_the_reason(
    sink_file: str, error: Exception, reason: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(urllib.request, "urlopen", failing(error))
    assert cli.main(["status", sink_file, "--from", "localhost:8080"]) == 75
    assert f"cannot read the report at http://localhost:8080/report: {reason}" in capsys.readouterr().err


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"sinkId": "default.log"}', b"\xff"])
def test_an_answer_that_is_no_report_is_a_transient_error(
    sink_file: str, body: bytes, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(urllib.request, "urlopen", lambda url, timeout: io.BytesIO(body))
    assert cli.main(["status", sink_file, "--from", "localhost:8080"]) == 75
    assert (
        "cannot read the report at http://localhost:8080/report: the answer is not a report of a job of this version"
        in capsys.readouterr().err
    )


def test_the_report_of_another_sink_is_an_invalid_argument(
    sink_file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(urllib.request, "urlopen", lambda url, timeout: io.BytesIO(report("default.other")))
    assert cli.main(["status", sink_file, "--from", "localhost:8080"]) == 2
    assert (
        "--from: the job at localhost:8080 runs the sink default.other, but the manifest is for default.log"
        in capsys.readouterr().err
    )
