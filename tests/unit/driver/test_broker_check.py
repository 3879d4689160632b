"""The connection check of brokers."""

from __future__ import annotations

import itertools
import socket
import threading
from collections.abc import Callable

import pytest

from sink_job.api.errors import TransientError
from sink_job.driver.broker_check import wait_for_broker


def listening() -> tuple[socket.socket, int]:
    server = socket.create_server(("127.0.0.1", 0))
    return server, server.getsockname()[1]


def closed_port() -> int:
    server, port = listening()
    server.close()
    return port


def seconds(step: float) -> Callable[[], float]:
    """A clock that advances by `step` at each call."""
    return itertools.count(0, step).__next__


def test_one_reachable_broker_is_enough() -> None:
    server, port = listening()
    with server:
        wait_for_broker(f"127.0.0.1:{closed_port()}, 127.0.0.1:{port}", clock=seconds(100))


def test_each_unreachable_broker_is_reported_with_its_reason() -> None:
    port = closed_port()
    with pytest.raises(TransientError) as raised:
        wait_for_broker(f"127.0.0.1:{port}", clock=seconds(100))
    assert str(raised.value) == (
        f"spec.kafka.bootstrapServers: no broker can be reached (127.0.0.1:{port}: Connection refused)"
    )


def test_an_unknown_host_name_is_reported() -> None:
    with pytest.raises(TransientError, match=r"broker\.invalid:9092: "):
        wait_for_broker("broker.invalid:9092", clock=seconds(100))


def test_the_check_waits_for_a_broker_that_starts_late() -> None:
    server, port = listening()
    tries = itertools.count()

    def connect(address: tuple[str, int], timeout: float) -> socket.socket:
        if next(tries) < 1:
            raise ConnectionRefusedError(111, "Connection refused")
        return socket.create_connection(address, timeout)

    with server:
        wait_for_broker(f"127.0.0.1:{port}", connect=connect, clock=seconds(0))


def test_a_stop_ends_the_wait() -> None:
    stop = threading.Event()
    stop.set()
    wait_for_broker(f"127.0.0.1:{closed_port()}", stop=stop, clock=seconds(0))


def test_addresses_with_brackets_or_a_protocol_are_parsed() -> None:
    seen: list[tuple[str, int]] = []

    def connect(address: tuple[str, int], timeout: float) -> socket.socket:
        seen.append(address)
        raise TimeoutError("timed out")

    with pytest.raises(TransientError, match="timed out"):
        wait_for_broker("[::1]:9092,PLAINTEXT://kafka:9093", connect=connect, clock=seconds(100))
    assert seen == [("::1", 9092), ("kafka", 9093)]
