"""What a driver pod answers at `/report`, for pods that no kubelet runs.

Every pod has an address of its own, 127.x.y.z (Linux takes all of 127.0.0.0/8 for this machine), so its port can be the
one that the manifest says, and the operator finds the report just as in a cluster: at the pod's IP and port. The API
server itself does not proxy to loopback addresses: one pod at a time may have `machine_address` for its pod proxy.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import socket
import threading
from collections.abc import Mapping
from typing import Any

from devtools.faults.http1 import read_head
from sink_job.api.report import Report
from sink_job.api.report_access import AT_STOP

REPORT_PORT = 8042


class ReportServer:
    """One thread that answers for many pods, each at its own address; a context manager."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="reports", daemon=True)
        self._servers: dict[str, asyncio.Server] = {}
        self._bodies: dict[str, bytes | None] = {}
        self._tokens: dict[str, str | None] = {}
        self.queries: dict[str, list[str]] = {}
        """What the polls of each address set for SIGTERM, as atStop=ACTION, oldest first; equal ones in a row once."""
        self._open: dict[str, set[asyncio.StreamWriter]] = {}
        self._reservation, self._net = _reserved_net()
        self._hosts = itertools.count(1)

    def address(self) -> str:
        """A new address of 127.0.0.0/8, on which nothing answers yet."""
        host = next(self._hosts)
        return f"127.{self._net}.{host >> 8}.{host & 255}"

    def answer(
        self, address: str, port: int, report: Report | Mapping[str, Any] | None, *, token: str | None = None
    ) -> None:
        """From now on `report` is what `address` answers; None: connections are accepted and stay without an answer.

        `token`: what a request has to have, as with a driver of the job.
        """
        self._tokens[address] = token
        body = report.model_dump_json().encode() if isinstance(report, Report) else json.dumps(report).encode()
        self._bodies[address] = None if report is None else body
        if address not in self._servers:
            self._servers[address] = self._run(self._listen(address, port))

    def refuse(self, address: str) -> None:
        """Stops listening and resets open connections."""
        if server := self._servers.pop(address, None):
            self._run(self._close(server, address))

    def __enter__(self) -> ReportServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for address in list(self._servers):
            self.refuse(address)
        self._run(self._finish())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
        self._reservation.close()

    def _run(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self, address: str, port: int) -> asyncio.Server:
        return await asyncio.start_server(self._serve, address, port, family=socket.AF_INET)

    async def _close(self, server: asyncio.Server, address: str) -> None:
        server.close()
        for writer in self._open.pop(address, ()):
            writer.transport.abort()

    async def _finish(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        address = writer.get_extra_info("sockname")[0]
        self._open.setdefault(address, set()).add(writer)
        try:
            while head := await read_head(reader):
                while self._bodies[address] is None:
                    await asyncio.sleep(0.02)
                body = self._bodies[address] or b""
                path, _, query = head.first[1].partition("?")
                parameters = [each for each in query.split("&") if each]
                credentials = [each for each in parameters if each.startswith("token=")]
                query = "&".join(each for each in parameters if each.startswith(f"{AT_STOP}="))
                asked = self.queries.setdefault(address, [])
                if asked[-1:] != [query]:
                    asked.append(query)
                status = "200 OK" if path == "/report" else "404 Not Found"
                token = self._tokens[address]
                if token and head.get("authorization") != f"Bearer {token}" and credentials != [f"token={token}"]:
                    status, body = "401 Unauthorized", b""
                lines = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
                writer.write(lines.encode() + body)
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            pass
        finally:
            self._open.get(address, set()).discard(writer)
            writer.close()


def of_sink(report: Report, namespace: str, name: str) -> Report:
    """The report as a driver of this sink makes it: the operator believes no other."""
    return report.model_copy(update={"namespace": namespace, "name": name, "sink_id": f"{namespace}.{name}"})


def machine_address() -> str | None:
    """An address of this machine that is not a loopback one; None where it has no network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # nothing is sent: it is only asked which way it would go
        except OSError:
            return None
        address = str(probe.getsockname()[0])
    return None if address.startswith("127.") else address


def _reserved_net() -> tuple[socket.socket, int]:
    """A net 127.N.0.0/16 that no other process has; 127.0 is left to whoever thinks it is all there is."""
    for offset in range(126):
        net = (os.getpid() + offset) % 126 + 1
        reservation = socket.socket()
        try:
            reservation.bind((f"127.{net}.255.254", REPORT_PORT))
        except OSError:
            reservation.close()
        else:
            return reservation, net
    raise OSError("every net 127.N.0.0/16 is taken")
