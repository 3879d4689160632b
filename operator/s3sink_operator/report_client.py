"""Asks a driver for its report, which is whatever answers at a pod's address: it is taken for bytes, and no more."""

from __future__ import annotations

import asyncio
from typing import Final

import aiohttp

from s3sink_operator.kube_api import KubeApi, path_of, read_limited
from s3sink_operator.types import Json

REPORT_TIMEOUT_S: Final = 3.0
MAX_REPORT_BYTES: Final = 32 << 20
"""Of a report: a topic-partition takes less than half a KiB."""
_DEFAULT_PORT = 8042


class DirectReportClient:
    """Asks a driver at its pod's address."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http

    async def fetch(self, pod: Json) -> bytes:
        """See Reports."""
        url = f"http://{pod['status'].get('podIP', '')}:{_port(pod)}/report"
        try:
            async with self._http.get(
                url, timeout=aiohttp.ClientTimeout(REPORT_TIMEOUT_S), allow_redirects=False
            ) as answer:
                if answer.status != 200:
                    raise OSError(f"{url}: {answer.status} {answer.reason}")
                return await read_limited(answer, MAX_REPORT_BYTES)
        except aiohttp.ClientError as error:
            raise OSError(f"{url}: {error}") from None


class ProxyReportClient:
    """Asks a driver through the API server, for an operator that does not reach pods."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api

    async def fetch(self, pod: Json) -> bytes:
        """See Reports."""
        meta = pod["metadata"]
        path = path_of("Pod", meta["namespace"], f"{meta['name']}:{_port(pod)}", "proxy/report")
        return await asyncio.wait_for(self._api.raw(path, most=MAX_REPORT_BYTES), REPORT_TIMEOUT_S)


def _port(pod: Json) -> int:
    """The port that the driver's container names `report`."""
    ports = [port for container in pod["spec"]["containers"] for port in container.get("ports") or ()]
    return next((int(port["containerPort"]) for port in ports if port.get("name") == "report"), _DEFAULT_PORT)
