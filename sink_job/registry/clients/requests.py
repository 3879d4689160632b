"""Requests to a schema registry with several URLs: tries them in turn, retries, and maps failures to errors."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Collection, Sequence
from typing import Generic, NamedTuple, TypeVar

from sink_job.api.errors import ConfigurationError, TransientError
from sink_job.engine.retry import RetryPolicy
from sink_job.engine.types import Cancelled
from sink_job.registry.failures import Reaction, RegistryFailure

C = TypeVar("C")
T = TypeVar("T")

_LOG_AFTER_FAILURES = 2
"""Number of failed rounds over all URLs after which a warning is logged."""
_MAX_SUSPECT = 5
"""Number of rounds over all URLs in a row after which answers of another service are an error of the configuration. A
proxy can answer for a registry that is restarted."""
_log = logging.getLogger(__name__)


class Endpoint(NamedTuple, Generic[C]):
    """A client, and the URL that it connects to."""

    url: str
    client: C


class Requests(Generic[C]):
    """Sends requests to the endpoints of one registry. Thread-safe.

    `endpoints` returns the current endpoints. `failure_of` maps an exception; None: a bug, raised as it is. `wait`
    pauses for a number of seconds and returns True if the driver has to stop.
    """

    def __init__(
        self,
        endpoints: Callable[[], Sequence[Endpoint[C]]],
        failure_of: Callable[[Exception], RegistryFailure | None],
        policy: RetryPolicy,
        wait: Callable[[float], bool],
    ) -> None:
        self._endpoints = endpoints
        self._failure_of = failure_of
        self._policy = policy
        self._wait = wait
        self._jitter = random.Random()
        self._lock = threading.Lock()
        self._preferred = ""

    def send(self, what: str, request: Callable[[C], T], *, absent: Collection[int] = ()) -> T | None:
        """The result of `request`; None if the answer is one of the error codes `absent`. `what` is requested, for
        messages ("schema id 7").

        Raises ConfigurationError, TransientError when the retry time is over, and Cancelled.
        """
        rounds, suspect, begin = 0, 0, time.monotonic()
        while True:
            failures: list[tuple[str, RegistryFailure]] = []
            for endpoint in self._in_order():
                try:
                    result = request(endpoint.client)
                except Exception as error:
                    failure = self._failure_of(error)
                    if failure is None:
                        raise
                    if failure.code in absent:
                        return None
                    if failure.reaction not in (Reaction.TRANSIENT, Reaction.SUSPECT):
                        raise self._permanent(failure, endpoint.url, what) from error
                    failures.append((endpoint.url, failure))
                else:
                    self._prefer(endpoint.url)
                    return result
            rounds += 1
            suspect = suspect + 1 if all(each.reaction is Reaction.SUSPECT for _, each in failures) else 0
            if suspect >= _MAX_SUSPECT:
                url, failure = failures[0]
                raise self._permanent(failure, url, what)
            texts = "; ".join(f"{url}: {each.text}" for url, each in failures)
            self._pause(what, rounds, time.monotonic() - begin, texts)

    def _in_order(self) -> list[Endpoint[C]]:
        """The endpoints, the one that answered last before the others."""
        return sorted(self._endpoints(), key=lambda endpoint: endpoint.url != self._preferred)

    def _prefer(self, url: str) -> None:
        with self._lock:
            self._preferred = url

    @staticmethod
    def _permanent(failure: RegistryFailure, url: str, what: str) -> ConfigurationError:
        advice = ": register it again, or restore the registry" if failure.reaction is Reaction.ABSENT else ""
        return failure.raises(f"schema registry {url}: {what}: {failure.text}{advice}")

    def _pause(self, what: str, failures: int, since_first_s: float, texts: str) -> None:
        pause = self._policy.pause(failures, since_first_s, self._jitter)
        if pause is None:
            raise TransientError(f"schema registry: {what}: failed for {since_first_s:.0f} s: {texts}")
        if failures == _LOG_AFTER_FAILURES:
            _log.warning(
                "schema registry: %s failed %d times in a row and is retried for up to %.0f s: %s",
                what,
                failures,
                self._policy.max_elapsed_s,
                texts,
            )
        if self._wait(pause):
            raise Cancelled("stopped while the schema registry did not answer")
