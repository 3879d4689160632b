"""Fetches the report of a driver. Any process may answer at the address of a pod, so the response is only bytes: of a
limited number, within a limited time, without redirects and without decompression.

A driver answers a client that knows its token, an annotation of its pod.
"""

from __future__ import annotations

import asyncio
from typing import Final
from urllib.parse import urlencode

import aiohttp

from s3sink_operator.kube.kube_api import KubeApi, path_of, read_limited
from s3sink_operator.names import REPORT_TOKEN_ANNOTATION
from s3sink_operator.objects import report_port
from s3sink_operator.types import Json, annotation
from sink_job.api.enums import StopAction
from sink_job.api.report_access import AT_STOP, LIMIT, MAX_REPORTED

REPORT_TIMEOUT_S: Final = 3.0
MAX_REPORT_BYTES: Final = 4 << 20
"""Limit of a report of MAX_REPORTED topic-partitions, each of which takes less than 0.5 KiB, and of sums of topics."""


class DirectReportClient:
    """Fetches the report from the address of the pod."""

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http

    async def fetch(self, pod: Json, at_stop: StopAction) -> bytes:
        """See `observe.ReportClient`."""
        url = f"http://{pod['status'].get('podIP', '')}:{report_port(pod)}/{_report(at_stop)}"
        try:
            token = annotation(pod, REPORT_TOKEN_ANNOTATION)
            headers = {"Accept-Encoding": "identity"}
            headers |= {} if token is None else {"Authorization": f"Bearer {token}"}
            async with self._http.get(
                url, headers=headers, timeout=aiohttp.ClientTimeout(REPORT_TIMEOUT_S), allow_redirects=False
            ) as answer:
                if answer.status != 200:
                    raise OSError(f"{url}: {answer.status} {answer.reason}")
                return await read_limited(answer, MAX_REPORT_BYTES)
        except aiohttp.ClientConnectorError as error:
            cause = error.os_error.strerror or error.os_error
            raise OSError(f"{url}: cannot connect: {cause}") from None
        except aiohttp.ClientError as error:
            raise OSError(f"{url}: {error}") from None


class ProxyReportClient:
    """Fetches the report through the API server, for an operator outside of the pod network."""

    def __init__(self, api: KubeApi) -> None:
        self._api = api

    async def fetch(self, pod: Json, at_stop: StopAction) -> bytes:
        """See `observe.ReportClient`."""
        meta = pod["metadata"]
        path = path_of("Pod", meta["namespace"], f"{meta['name']}:{report_port(pod)}", f"proxy/{_report(at_stop)}")
        if (token := annotation(pod, REPORT_TOKEN_ANNOTATION)) is not None:
            path += f"&{urlencode({'token': token})}"  # the API server removes the header Authorization
        return await asyncio.wait_for(self._api.raw(path, limit=MAX_REPORT_BYTES), REPORT_TIMEOUT_S)


def _report(at_stop: StopAction) -> str:
    return f"report?{AT_STOP}={at_stop.value}&{LIMIT}={MAX_REPORTED}"
