"""What is around the operator in the bench: users that make many sinks, and a kubelet that runs their pods at once.

The tests' harness makes each step of a pod separately and reads the API server before it; a thousand pods would wait
for it. Here a pod is Running by one write, as soon as the watch reports it, and answers a report at an address of its
own. Everything is asyncio in one thread, so that little of the core that the API server has goes into the bench.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import aiohttp

from devtools.kube.client import Access, Json
from devtools.kube.fake_driver_report import REPORT_PORT, ReportServer, of_sink
from devtools.kube.pod_status import condition, container_status, containers_of, now
from s3sink_operator import names
from sink_job.api.report import RunState
from tests.support.operator_fixture import condition as condition_of
from tests.support.operator_fixture import report

GROUP = "/apis/s3sink.io/v1alpha1"
_JSON = "application/json"
_MERGE = "application/merge-patch+json"


@dataclass
class Times:
    """When what happened to a sink, by `time.monotonic`, in seconds; by the sink's `namespace/name`."""

    made: dict[str, float] = field(default_factory=dict)
    pod: dict[str, float] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)
    ready: dict[str, float] = field(default_factory=dict)
    unready: dict[str, float] = field(default_factory=dict)
    restarted: dict[str, float] = field(default_factory=dict)
    gone: dict[str, float] = field(default_factory=dict)


class Players:
    """Users and kubelet of one API server. A context manager; `times` is what they have seen since `forget`.

    `api_server`: its process id.
    """

    def __init__(self, access: Access, reports: ReportServer, api_server: int) -> None:
        self.api_server = api_server
        self._access = access
        self._reports = reports
        self._addresses: dict[str, tuple[str, str]] = {}
        self.sinks: dict[str, Json] = {}
        self.times = Times()
        self._watches: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Players:
        authority = str(self._access.authority) if self._access.authority else None
        self._http = aiohttp.ClientSession(
            self._access.server,
            headers={"Authorization": f"Bearer {self._access.token}"},
            connector=aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=authority), limit=24),
        )
        self._watches = [
            asyncio.ensure_future(self._watch("/api/v1/pods", f"labelSelector={names.SINK_LABEL}", self._see_pod)),
            asyncio.ensure_future(self._watch(f"{GROUP}/s3sinks", "", self._see_sink)),
        ]
        for each in self._watches:
            each.add_done_callback(_raise)
        return self

    async def __aexit__(self, *_: object) -> None:
        for each in self._watches:
            each.cancel()
        await asyncio.gather(*self._watches, return_exceptions=True)
        await self._http.close()

    def forget(self) -> None:
        """The next times are of something else."""
        self.times = Times()

    # --- users

    async def make_namespace(self, name: str) -> None:
        await self.call("POST", "/api/v1/namespaces", {"metadata": {"name": name}})

    async def make(self, key: str, manifest: Json) -> None:
        """A user's `kubectl create`."""
        namespace, name = key.split("/")
        self.times.made[f"{namespace}/{name}"] = time.monotonic()
        await self.call("POST", f"{GROUP}/namespaces/{namespace}/s3sinks", manifest)

    async def edit(self, key: str, spec: Json) -> None:
        """A user's edit of the spec."""
        namespace, name = key.split("/")
        self.times.made[key] = time.monotonic()
        await self.call("PATCH", f"{GROUP}/namespaces/{namespace}/s3sinks/{name}", {"spec": spec}, content=_MERGE)

    async def delete(self, key: str) -> None:
        namespace, name = key.split("/")
        await self.call("DELETE", f"{GROUP}/namespaces/{namespace}/s3sinks/{name}")

    # --- drivers

    def report(self, key: str, state: RunState) -> float:
        """From now on the sink's driver reports this state; returns the time."""
        _, address = self._addresses[key]
        self._reports.answer(address, REPORT_PORT, of_sink(report(state), *key.split("/")))
        return time.monotonic()

    async def fail(self, key: str) -> float:
        """The sink's driver ends with exit code 75; returns when the API server has the pod status."""
        namespace, name = key.split("/")
        _, address = self._addresses.pop(key)
        self._reports.refuse(address)
        pod = f"/api/v1/namespaces/{namespace}/pods/{names.driver_pod_name(name)}"
        found = await self.call("GET", pod)
        state = {"terminated": {"exitCode": 75, "reason": "Error", "startedAt": now(), "finishedAt": now()}}
        statuses = [container_status(found, each, state, ready=False) for each in containers_of(found)]
        began = time.monotonic()
        await self.call(
            "PATCH", f"{pod}/status", {"status": {"phase": "Failed", "containerStatuses": statuses}}, content=_MERGE
        )
        return began

    async def _start(self, key: str, pod: Json) -> None:
        meta = pod["metadata"]
        address = self._reports.address()
        self._addresses[key] = (meta["uid"], address)
        self._reports.answer(address, REPORT_PORT, of_sink(report(), *key.split("/")))
        state = {"running": {"startedAt": now()}}
        status = {
            "phase": "Running",
            "podIP": address,
            "podIPs": [{"ip": address}],
            "startTime": now(),
            "conditions": [condition(each, "True", "", "") for each in ("Initialized", "ContainersReady", "Ready")],
            "containerStatuses": [container_status(pod, each, state, ready=True) for each in containers_of(pod)],
        }
        self.times.running[key] = time.monotonic()
        with contextlib.suppress(LookupError):  # deleted meanwhile
            await self.call(
                "PATCH",
                f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status",
                {"metadata": {"uid": meta["uid"]}, "status": status},
                content=_MERGE,
            )

    async def metrics(self) -> str:
        """The text of the API server's /metrics."""
        async with self._http.get("/metrics") as answer:
            return await answer.text()

    # --- what is seen

    async def _see_pod(self, kind: str, pod: Json) -> None:
        meta = pod["metadata"]
        key = f"{meta['namespace']}/{meta['labels'][names.SINK_LABEL]}"
        if kind == "ADDED" and not pod["status"].get("containerStatuses"):
            self.times.pod[key] = time.monotonic()
            asyncio.ensure_future(self._start(key, pod)).add_done_callback(_raise)
        elif kind == "DELETED" and self._addresses.get(key, ("", ""))[0] == meta["uid"]:
            self._reports.refuse(self._addresses.pop(key)[1])

    async def _see_sink(self, kind: str, sink: Json) -> None:
        meta, at = sink["metadata"], time.monotonic()
        key = f"{meta['namespace']}/{meta['name']}"
        if kind == "DELETED":
            self.times.gone[key] = at
            self.sinks.pop(key, None)
            return
        self.sinks[key] = sink
        ready = condition_of(sink, "Ready")
        if ready.get("observedGeneration") != meta["generation"]:
            return
        if ready["status"] == "True":
            self.times.ready.setdefault(key, at)
        else:
            self.times.unready.setdefault(key, at)
            if ready["reason"] == "Restarting":
                self.times.restarted.setdefault(key, at)

    async def _watch(self, path: str, query: str, see: Any) -> None:
        """A watch that the API server ends is restarted with a list."""
        while True:
            listed = await self.call("GET", f"{path}?{query}")
            for each in listed["items"]:
                await see("ADDED", each)
            version = listed["metadata"]["resourceVersion"]
            async for event in self._events(f"{path}?{query}&watch=1&resourceVersion={version}"):
                if event["type"] == "ERROR":
                    break
                await see(event["type"], event["object"])

    async def _events(self, path: str) -> AsyncIterator[Json]:
        async with self._http.get(path, timeout=aiohttp.ClientTimeout(total=None)) as answer:
            left = b""
            async for chunk in answer.content.iter_any():
                *lines, left = (left + chunk).split(b"\n")
                for line in lines:
                    yield json.loads(line)

    async def call(self, method: str, path: str, body: Json | None = None, *, content: str = _JSON) -> Json:
        """One call; LookupError for what is not there, RuntimeError with the server's words for other rejections."""
        data = None if body is None else json.dumps(body)
        async with self._http.request(method, path, data=data, headers={"Content-Type": content}) as answer:
            text = await answer.text()
            if answer.status in (404, 409):
                raise LookupError(text)
            if answer.status == 429:
                await asyncio.sleep(float(answer.headers.get("Retry-After", "1")))
                return await self.call(method, path, body, content=content)
            if answer.status >= 400:
                raise RuntimeError(f"{method} {path}: {text}")
            found: Json = json.loads(text)
            return found


def _raise(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        raise error
