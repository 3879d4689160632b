"""Takes in what child processes write to standard error, so that it reads like every other log line.

Spark starts the JVM with this process's standard error, and the JVM hands it on to Python workers. Their lines would
tear a live screen, break JSON logs, and no redaction would see them. So for the time of a run file descriptor 2 is a
pipe that ends in `logging`, while this process itself goes on writing to the real one.
"""

from __future__ import annotations

import io
import logging
import os
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

_LINE = re.compile(
    r"^(?:\d\d(?:\d\d)?[/-]\d\d[/-]\d\d[ T]\d\d:\d\d:\d\d\S* )?(TRACE|DEBUG|INFO|WARN|ERROR|FATAL) +([\w.$]+): (.*)$"
)
_LEVELS = {"WARN": logging.WARNING, "ERROR": logging.ERROR, "FATAL": logging.CRITICAL, "INFO": logging.INFO}
_TRACE = re.compile(
    r"^(?:\s|Caused by: |Traceback |Suppressed: |Driver stacktrace|During handling |The above exception )|^$"
)
_NOISE = re.compile(
    r"incubator modules|native-hadoop|default log4j profile|[Ss]etting default log level|To adjust logging level|"
    r"^WARNING: (?:A terminally deprecated|sun\.misc\.Unsafe|Please consider)"
)


@contextmanager
def taken_in() -> Iterator[TextIO]:
    """Until the end, lines that others write to file descriptor 2 go to `logging`; yields the real standard error.

    `sys.stderr` is the real one meanwhile. Without file descriptor 2 nothing is done.
    """
    try:
        real = os.dup(2)
    except OSError:
        yield sys.stderr
        return
    reader, writer = os.pipe()
    stream = io.TextIOWrapper(os.fdopen(os.dup(real), "wb"), errors="backslashreplace", line_buffering=True)
    before, sys.stderr = sys.stderr, stream
    os.dup2(writer, 2)
    os.close(writer)
    thread = threading.Thread(target=_forward, args=(reader,), name="s3sink-stderr", daemon=True)
    thread.start()
    try:
        yield stream
    finally:
        os.dup2(real, 2)  # the pipe's last writer here: the thread ends once no child holds it any more
        os.close(real)
        thread.join(timeout=2)
        sys.stderr = before


def _forward(reader: int) -> None:
    with os.fdopen(reader, "rb") as lines:
        for line in lines:
            log(line.decode("utf-8", "backslashreplace").rstrip("\r\n"))


def log(line: str) -> None:
    """Logs one line of a child: in Spark's layout by its level and class, stack traces as DEBUG, others as WARNING."""
    found = _LINE.match(line)
    if _NOISE.search(line):
        level, name, text = logging.DEBUG, "jvm", line
    elif found:
        level, name, text = (
            _LEVELS.get(found.group(1), logging.DEBUG),
            f"jvm.{found.group(2).rpartition('.')[2]}",
            found.group(3),
        )
    else:
        level, name, text = (logging.DEBUG if _TRACE.match(line) else logging.WARNING), "jvm", line
    logging.getLogger(name).log(level, "%s", text)
