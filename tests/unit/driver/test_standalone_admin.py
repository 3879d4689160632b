"""The admin client of a command: its JVM starts only for a broker that answers, and always ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sink_job.api.errors import TransientError
from sink_job.api.sections.job_sections import KafkaSpec
from sink_job.driver import standalone_admin
from sink_job.kafka.properties import KafkaProperties

PROPERTIES = KafkaProperties.of(KafkaSpec(bootstrap_servers="kafka:9092", topics=["flights"]), {})


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What happens, in order."""
    found: list[str] = []

    class Gateway:
        def shutdown(self) -> None:
            found.append("JVM ended")

    def start(jars: object, *, options: object) -> Gateway:
        found.append("JVM started")
        return Gateway()

    @contextmanager
    def client(gateway: object, properties: object, *, timeout_ms: int) -> Iterator[str]:
        found.append(f"client with {timeout_ms} ms")
        try:
            yield "client"
        finally:
            found.append("client closed")

    monkeypatch.setattr(standalone_admin, "kafka_jars", lambda _: [])
    monkeypatch.setattr(standalone_admin, "plain_jvm", start)
    monkeypatch.setattr(standalone_admin, "JavaKafkaAdmin", client)
    monkeypatch.setattr(
        standalone_admin, "wait_for_broker", lambda servers, timeout_s: found.append(f"{servers} for {timeout_s:.0f} s")
    )
    return found


def test_a_broker_is_awaited_before_the_jvm_starts_which_ends_after_the_client(steps: list[str]) -> None:
    with standalone_admin.admin(PROPERTIES) as client:
        assert client == "client"  # type: ignore[comparison-overlap]
        steps.append("used")
    assert steps == [
        "kafka:9092 for 10 s",
        "JVM started",
        "client with 30000 ms",
        "used",
        "client closed",
        "JVM ended",
    ]


def test_the_caller_chooses_how_long_to_wait(steps: list[str]) -> None:
    with standalone_admin.admin(PROPERTIES, timeout_ms=15_000, connect_timeout_s=0):
        pass
    assert steps[0] == "kafka:9092 for 0 s"
    assert "client with 15000 ms" in steps


def test_the_jvm_ends_after_an_error_of_the_command(steps: list[str]) -> None:
    with pytest.raises(ZeroDivisionError), standalone_admin.admin(PROPERTIES):
        raise ZeroDivisionError
    assert steps[-2:] == ["client closed", "JVM ended"]


def test_the_jvm_ends_if_the_client_cannot_be_created(steps: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> Any:
        raise TransientError("no answer")

    monkeypatch.setattr(standalone_admin, "JavaKafkaAdmin", fails)
    with pytest.raises(TransientError), standalone_admin.admin(PROPERTIES):
        pass
    assert steps[-1] == "JVM ended"


def test_without_a_broker_no_jvm_starts(steps: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def unreachable(*_: object, **__: object) -> None:
        raise TransientError("no broker can be reached")

    monkeypatch.setattr(standalone_admin, "wait_for_broker", unreachable)
    with pytest.raises(TransientError, match="no broker"), standalone_admin.admin(PROPERTIES):
        pass
    assert steps == []
