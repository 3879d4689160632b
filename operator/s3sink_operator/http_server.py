"""`/metrics`, `/healthz` (the reconcile heartbeat) and `/readyz` of the operator."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from s3sink_operator.metrics import QUEUE_DEPTH, REGISTRY, SINKS
from s3sink_operator.rollout.rollout_tracker import RolloutTracker
from s3sink_operator.status import status_metrics
from s3sink_operator.watch.object_cache import ObjectCache, SinkKey
from s3sink_operator.watch.workqueue import WorkQueue

HEARTBEAT_TIMEOUT_S = 120.0
"""Without a heartbeat for this time the workers hang: no request to the API server takes as long."""


@dataclass
class WorkerHeartbeat:
    """The last heartbeat of the workers. `ready`: watches and workers have started. `waiting`: another replica holds
    the Lease, so this one is as ready as it can be."""

    ready: bool = False
    waiting: bool = False
    _beat: float = field(default_factory=time.monotonic)

    def beat(self) -> None:
        self._beat = time.monotonic()

    @property
    def silence_s(self) -> float:
        return time.monotonic() - self._beat


@asynccontextmanager
async def serve(
    port: int, heartbeat: WorkerHeartbeat, store: ObjectCache, queue: WorkQueue[SinkKey], rollout: RolloutTracker
) -> AsyncIterator[int]:
    """Serves within the context. Yields the port, a free one for 0."""

    async def metrics(_: web.Request) -> web.Response:
        QUEUE_DEPTH.set(len(queue))
        _count_sinks(store)
        rollout.export()
        body = generate_latest(REGISTRY) + status_metrics.exposition(store.all("S3Sink"))
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def healthz(_: web.Request) -> web.Response:
        silence = heartbeat.silence_s
        hangs = silence > HEARTBEAT_TIMEOUT_S
        return web.Response(
            status=503 if hangs else 200, text=f"no heartbeat of the workers for {silence:.0f} s\n" if hangs else "ok\n"
        )

    async def readyz(_: web.Request) -> web.Response:
        ready = heartbeat.ready or heartbeat.waiting
        return web.Response(status=200 if ready else 503, text="ok\n" if ready else "starting\n")

    app = web.Application()
    app.add_routes([web.get("/metrics", metrics), web.get("/healthz", healthz), web.get("/readyz", readyz)])
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        # With several addresses and port 0, each address would get another port.
        await web.TCPSite(runner, None if port else "0.0.0.0", port).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def _count_sinks(store: ObjectCache) -> None:
    counts: Counter[tuple[str, str]] = Counter()
    for sink in store.all("S3Sink"):
        for condition in sink.get("status", {}).get("conditions") or ():
            counts[condition["type"], condition["status"]] += 1
    SINKS.clear()
    for (kind, status), count in counts.items():
        SINKS.labels(condition=kind, status=status).set(count)
