"""Reads what Spark logs about executor pods: pods that the API server rejects, and executors that failed.

Spark 4.2 retries a rejected creation every second, reports it in its log alone, and counts it as a failed executor: a
quota would end an application whose other executors work. The sink therefore sets Spark's limit of failures to its
maximum (`spark.conf`), and counts the executors that failed itself, with the same limit.
"""

from __future__ import annotations

import logging
import re
import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from sink_job.api.redaction import redacted

RETENTION_S: Final = 30.0
"""A rejection counts for this time. Spark repeats it every second while executors are missing."""
MAX_FAILURES: Final = "spark.executor.maxNumFailures"
UNLIMITED: Final = str(2**31 - 1)
OF_USER: Final = (MAX_FAILURES, "spark.executor.failuresValidityInterval")
"""With one of these properties of the user Spark itself counts, creations that were rejected included."""

_ALLOCATOR: Final = "ERROR ExecutorPodsAllocator: Failed to create executor pod "
_REJECTED: Final = re.compile(r"KubernetesClientException: Failure executing: POST at: .*? Message: (.*)$")
_STATUS: Final = "Received status: Status("
_END: Final = re.compile(r"\.? Received status: Status\(.*$")
_NEXT: Final = re.compile(r"\tat |\s*(\.\.\. \d+ more|Caused by: )|(TRACE|DEBUG|INFO|WARN|ERROR|FATAL) [\w.$]+: ")
"""The first line after the message of an exception: its trace, or another log entry."""
_FAILED: Final = re.compile(r"WARN ExecutorPodsLifecycleManager: (\d+) new failed executors")
_NUMBER: Final = re.compile(r"-exec-\d+")
_MAX_MESSAGE: Final = 800
_MAX_LINES: Final = 50
_LEAST_LIMIT: Final = 3  # Spark's own

_log = logging.getLogger(__name__)


def failure_limit(properties: Mapping[str, str], instances: int) -> int | None:
    """The number of failed executors above which an application ends, as Spark has it; None: Spark counts."""
    return None if any(name in properties for name in OF_USER) else max(_LEAST_LIMIT, 2 * instances)


class ExecutorLog:
    """The executor pods of one application, from the lines of the JVM's log.

    `limit`: see `failure_limit`. `clock`: seconds, monotonic. `redact`: removes secrets from a text. It gets messages
    before they are cut, since no pattern and no known value matches a part of a secret.
    """

    def __init__(
        self,
        limit: int | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        redact: Callable[[str], str] = redacted,
    ) -> None:
        self._limit = limit
        self._lock = threading.Lock()  # a thread reads the log, another one changes the limit
        self._redact = redact
        self._clock = clock
        self._failed = 0
        self._is_ended = False
        self._message: str | None = None
        self._at = 0.0
        self._exception: list[str] | None = None
        self.end: Callable[[], None] = lambda: None
        """Ends the application. Called once, when more executors failed than the limit."""

    @property
    def rejection(self) -> str | None:
        """Why the API server rejects executor pods, in its words; None if it does not."""
        recent = self._message is not None and self._clock() - self._at <= RETENTION_S
        return self._message if recent else None

    def set_limit(self, limit: int | None) -> None:
        """The limit for another number of executors. Earlier failures count in proportion, rounded down: failures of
        many executors that were within their limit do not exceed the limit of fewer ones."""
        with self._lock:
            if limit is not None and self._limit:
                self._failed = self._failed * limit // self._limit
            self._limit = limit

    def read(self, line: str) -> bool:
        """Reads the next line. Returns whether it is a message of its own to log: Spark repeats rejections."""
        if self._exception is not None:
            self._continue(self._exception, line)
        if line.startswith(_ALLOCATOR):
            self._exception = []
            return False
        if (failed := _FAILED.match(line)) is not None:
            self._count(int(failed[1]))
        return True

    def _continue(self, exception: list[str], line: str) -> None:
        """Reads a line after a failure. The message of a webhook may have several lines."""
        is_next = _NEXT.match(line) is not None
        if not is_next:
            exception.append(line)
        if is_next or _STATUS in line or len(exception) == _MAX_LINES:
            self._exception = None
            if exception:
                self._reject(" ".join(self._redact("\n".join(exception)).split()))

    def _reject(self, exception: str) -> None:
        found = _REJECTED.search(exception)
        if found is None:  # no answer of the API server: Spark tries again
            _log.warning("an executor pod cannot be created: %s", exception[:_MAX_MESSAGE])
            return
        message = _END.sub("", found[1])[:_MAX_MESSAGE]
        if not self._is_known(message):
            _log.error("the API server rejects an executor pod: %s", message)
            self._message = message
        self._at = self._clock()

    def _is_known(self, message: str) -> bool:
        """Whether only the number of the executor differs."""
        return self.rejection is not None and _NUMBER.sub("", message) == _NUMBER.sub("", str(self._message))

    def _count(self, failed: int) -> None:
        with self._lock:
            if self._limit is None or self._is_ended:
                return
            self._failed += failed
            self._is_ended = self._failed > self._limit
            if not self._is_ended:
                return
            message = f"{self._failed} executors failed, more than the limit of {self._limit}: the driver ends"
        _log.error("%s", message)
        self.end()
