"""Requests over several URLs: their order, retries, and the error of each failure."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from sink_job.api.errors import ConfigurationError, RegistryNotFound, TransientError
from sink_job.engine.retry import RetryPolicy
from sink_job.engine.types import Cancelled
from sink_job.registry.clients.requests import Endpoint, Requests
from sink_job.registry.failures import SCHEMA_NOT_FOUND, Reaction, RegistryFailure

BUSY = RegistryFailure(Reaction.TRANSIENT, "HTTP 503")
PAGE = RegistryFailure(Reaction.SUSPECT, "a web page", raises=RegistryNotFound)
DENIED = RegistryFailure(Reaction.CONFIGURATION, "access denied")
ABSENT = RegistryFailure(Reaction.ABSENT, "HTTP 404: Schema not found", SCHEMA_NOT_FOUND)


class Failed(Exception):
    """A request that failed with `failure`."""

    def __init__(self, failure: RegistryFailure) -> None:
        super().__init__(failure.text)
        self.failure = failure


class Registry:
    """The URLs `a` and `b`; each answers with the next of its outcomes, and at last with its name."""

    def __init__(self, **outcomes: list[RegistryFailure]) -> None:
        self.outcomes = outcomes
        self.asked = ""
        self.pauses: list[float] = []
        self.stops = False
        self.requests: Requests[str] = Requests(
            lambda: [Endpoint(f"https://{name}", name) for name in outcomes],
            lambda error: error.failure if isinstance(error, Failed) else None,
            RetryPolicy(max_elapsed_s=60, first_s=1, cap_s=4),
            self._wait,
        )

    def _wait(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        return self.stops

    def answer(self, client: str) -> str:
        self.asked += client
        if self.outcomes[client]:
            raise Failed(self.outcomes[client].pop(0))
        return client

    def send(self, absent: tuple[int, ...] = ()) -> str | None:
        return self.requests.send("schema id 7", self.answer, absent=absent)


def test_the_urls_are_tried_in_turn_before_a_pause() -> None:
    registry = Registry(a=[BUSY], b=[])
    assert registry.send() == "b"
    assert (registry.asked, registry.pauses) == ("ab", [])


def test_the_url_that_answered_last_is_asked_first() -> None:
    registry = Registry(a=[BUSY], b=[])
    registry.send()
    registry.send()
    assert registry.asked == "abb"


def test_after_a_failure_of_all_urls_there_is_a_pause_that_grows() -> None:
    registry = Registry(a=[BUSY] * 3, b=[BUSY] * 3)
    assert registry.send() == "a"
    assert registry.asked == "abababa"
    assert [0.5 <= registry.pauses[0] <= 1, 1 <= registry.pauses[1] <= 2, 2 <= registry.pauses[2] <= 4] == [True] * 3


def test_an_id_that_a_registry_does_not_know_is_none_without_a_retry() -> None:
    registry = Registry(a=[ABSENT], b=[])
    assert registry.send(absent=(SCHEMA_NOT_FOUND,)) is None
    assert registry.asked == "a"


def test_an_absent_schema_that_must_exist_needs_user_action() -> None:
    with pytest.raises(ConfigurationError) as raised:
        Registry(a=[ABSENT]).send()
    assert str(raised.value) == (
        "schema registry https://a: schema id 7: HTTP 404: Schema not found: register it again, or restore the registry"
    )


def test_a_failure_that_needs_user_action_is_not_retried_at_another_url() -> None:
    registry = Registry(a=[DENIED], b=[])
    with pytest.raises(ConfigurationError, match=r"^schema registry https://a: schema id 7: access denied$"):
        registry.send()
    assert registry.asked == "a"


def test_another_service_at_all_urls_needs_user_action_after_five_rounds() -> None:
    registry = Registry(a=[PAGE] * 9, b=[PAGE] * 9)
    with pytest.raises(RegistryNotFound, match=r"^schema registry https://a: schema id 7: a web page$"):
        registry.send()
    assert (len(registry.asked), len(registry.pauses)) == (10, 4)


def test_another_service_is_counted_again_after_a_round_with_another_failure() -> None:
    registry = Registry(a=[*[PAGE] * 4, BUSY, *[PAGE] * 4])
    assert registry.send() == "a"
    assert len(registry.pauses) == 9


def test_another_service_at_one_of_two_urls_does_not_need_user_action() -> None:
    registry = Registry(a=[PAGE] * 7, b=[BUSY] * 7)
    assert registry.send() == "a"


def test_after_the_retry_time_the_error_has_the_failure_of_each_url(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 61.0])
    monkeypatch.setattr("sink_job.registry.clients.requests.time.monotonic", lambda: next(times))
    with pytest.raises(TransientError) as raised:
        Registry(a=[BUSY], b=[PAGE]).send()
    assert str(raised.value) == (
        "schema registry: schema id 7: failed for 61 s: https://a: HTTP 503; https://b: a web page"
    )


def test_a_driver_that_stops_during_the_pause_is_cancelled() -> None:
    registry = Registry(a=[BUSY])
    registry.stops = True
    with pytest.raises(Cancelled):
        registry.send()
    assert len(registry.pauses) == 1


@pytest.mark.parametrize(("failures", "logged"), [(1, 0), (2, 1), (5, 1)])
def test_a_failure_that_persists_is_logged_once(failures: int, logged: int, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        Registry(a=[BUSY] * failures).send()
    assert len(caplog.messages) == logged
    assert all("schema id 7 failed 2 times in a row and is retried for up to 60 s" in each for each in caplog.messages)


def test_a_bug_is_raised_as_it_is() -> None:
    def request(client: str) -> str:
        raise ZeroDivisionError

    failing: Callable[[str], str] = request
    with pytest.raises(ZeroDivisionError):
        Registry(a=[]).requests.send("schema id 7", failing)
