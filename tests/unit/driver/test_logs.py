"""Log lines as text and as JSON."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from sink_job.driver import logs
from sink_job.driver.secret_registry import SECRETS


@pytest.fixture(autouse=True)
def root_logger() -> Iterator[None]:
    """Restores the logging configuration."""
    root = logging.getLogger()
    before, level = list(root.handlers), root.level
    yield
    root.handlers[:] = before
    root.setLevel(level)
    logging.getLogger("sink_job").setLevel(logging.NOTSET)
    logging.captureWarnings(False)


def written(kind: str, name: str, message: str, *, debug: bool = False, level: int = logging.INFO) -> str:
    stream = io.StringIO()
    logs.set_up(kind, debug=debug, stream=stream)
    logging.getLogger(name).log(level, "%s", message)
    return stream.getvalue()


def test_a_text_line_has_time_level_and_module() -> None:
    time, rest = written("text", "sink_job.coordinator.coordinator", "hello").split(" ", 1)
    assert rest == "INFO    coordinator.coordinator: hello\n"
    assert time.endswith("Z")


def test_a_json_line_is_one_object() -> None:
    line = json.loads(written("json", "sink_job.coordinator.coordinator", 'two\nlines, "ü"'))
    assert line["logger"] == "coordinator.coordinator"
    assert line["level"] == "INFO"
    assert line["message"] == 'two\nlines, "ü"'


def test_a_traceback_is_part_of_its_line() -> None:
    stream = io.StringIO()
    logs.set_up("json", stream=stream)
    try:
        raise ValueError("wrong")
    except ValueError:
        logging.getLogger("sink_job.x").exception("failed")
    assert json.loads(stream.getvalue())["traceback"].endswith("ValueError: wrong")


def test_libraries_log_from_warning_on_and_only_the_job_logs_debug() -> None:
    assert written("text", "botocore.endpoint", "chatter") == ""
    assert written("text", "py4j.clientserver", "chatter", debug=True, level=logging.DEBUG) == ""
    assert written("text", "sink_job.x", "detail", level=logging.DEBUG) == ""
    assert written("text", "sink_job.x", "detail", debug=True, level=logging.DEBUG) != ""


def test_calls_to_a_terminated_jvm_are_not_logged() -> None:
    stream = io.StringIO()
    handler = logs.set_up("text", stream=stream)
    of_py4j = {"name": "root", "msg": "Exception while sending command.", "pathname": "/lib/py4j/java_gateway.py"}
    handler.handle(logging.makeLogRecord(of_py4j))
    assert stream.getvalue() == ""


@pytest.mark.parametrize("kind", ["text", "json"])
def test_log_lines_contain_no_secrets(kind: str) -> None:
    SECRETS.hide(["very+secret/key"])
    line = written(kind, "sink_job.spark.jvm", 'ERROR Client: sasl.jaas.config = X password="pw one"; very+secret/key')
    assert "very+secret/key" not in line
    assert "pw one" not in line


def test_the_destination_of_log_lines_can_be_replaced() -> None:
    handler = logs.set_up("text", stream=io.StringIO())
    seen: list[str] = []
    handler.write = seen.append
    logging.getLogger("sink_job.x").info("hello")
    assert seen[0].endswith("x: hello")
