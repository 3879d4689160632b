"""Logging to standard error, as text or JSON, without secrets.

The live console replaces `LogHandler.write` to show log lines above it. The logger `sink_job.spark.jvm` logs the
standard error of the JVM and of the Python workers.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TextIO

from sink_job.driver.secret_registry import SECRETS

Write = Callable[[str], None]

_QUIET = ("botocore", "boto3", "urllib3", "py4j", "pyspark", "asyncio")


class TextFormatter(logging.Formatter):
    """`2025-11-03T12:00:00.000Z INFO    coordinator.coordinator: …`, times in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_time(record)} {record.levelname:<7} {_name(record)}: {record.getMessage()}"
        return SECRETS(f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line)


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, and the traceback of an exception."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": _time(record),
            "level": record.levelname,
            "logger": _name(record),
            "message": SECRETS(record.getMessage()),
        }
        if record.exc_info:
            line["traceback"] = SECRETS(self.formatException(record.exc_info))
        return json.dumps(line, ensure_ascii=False)


class LogHandler(logging.Handler):
    """Passes each line to `write`."""

    def __init__(self, write: Write) -> None:
        super().__init__()
        self.write = write

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self.write(self.format(record))
        except Exception:
            self.handleError(record)


def set_up(kind: str, *, debug: bool = False, stream: TextIO | None = None) -> LogHandler:
    """Configures logging to standard error (or `stream`), as `text` or `json`. Libraries log from WARNING on."""
    handler = LogHandler(writer(sys.stderr if stream is None else stream))
    handler.setFormatter(JsonFormatter() if kind == "json" else TextFormatter())
    if not debug:
        handler.addFilter(_is_relevant)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("sink_job").setLevel(logging.DEBUG if debug else logging.INFO)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.captureWarnings(True)
    return handler


def _is_relevant(record: logging.LogRecord) -> bool:
    """False for records of py4j in the root logger, one for each call to a terminated JVM. The error itself is
    logged."""
    return not (record.name == "root" and "py4j" in record.pathname)


def writer(stream: TextIO) -> Write:
    """A function that writes a line to `stream` and flushes it."""

    def write(line: str) -> None:
        stream.write(line + "\n")
        stream.flush()

    return write


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _name(record: logging.LogRecord) -> str:
    return record.name.removeprefix("sink_job.")
