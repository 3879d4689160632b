"""Checks that a broker accepts connections, before a JVM is started.

Kafka's client reports every connection failure as a timeout, after most of a minute. A TCP connection fails immediately
and with the reason.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence

from sink_job.api.errors import TransientError

BROKER_TIMEOUT_S = 10.0
"""How long to wait for a broker to accept a connection, in s."""

_CONNECT_S = 3.0
_PAUSE_S = 0.5

Address = tuple[str, int]


def wait_for_broker(
    servers: str,
    *,
    stop: threading.Event | None = None,
    timeout_s: float = BROKER_TIMEOUT_S,
    connect: Callable[[Address, float], socket.socket] = socket.create_connection,
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Returns when one of `servers` (host:port, separated by commas) accepts a connection, or when `stop` is set.

    Raises TransientError, with the reason of each server, if no server accepts a connection within `timeout_s`.
    """
    stop = stop or threading.Event()
    addresses = _addresses(servers)
    end = clock() + timeout_s
    while True:
        reasons = []
        for address in addresses:
            try:
                connect(address, _CONNECT_S).close()
            except OSError as error:
                reasons.append(f"{address[0]}:{address[1]}: {error.strerror or error}")
            else:
                return
        if clock() >= end:
            raise TransientError(f"spec.kafka.bootstrapServers: no broker can be reached ({'; '.join(reasons[:3])})")
        if stop.wait(_PAUSE_S):
            return


def _addresses(servers: str) -> Sequence[Address]:
    found = []
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        found.append((host.rpartition("/")[2].strip("[]"), int(port)))
    return found
