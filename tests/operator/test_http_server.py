"""What the operator answers to the kubelet and to Prometheus."""

from __future__ import annotations

import asyncio
import time

import aiohttp
import pytest

from s3sink_operator.http_server import HEARTBEAT_TIMEOUT_S, WorkerHeartbeat, serve
from s3sink_operator.rollout.rollout_tracker import RolloutTracker
from s3sink_operator.rollout.sink_rollout import MaxUnavailable
from s3sink_operator.types import Json
from s3sink_operator.watch.object_cache import ObjectCache, SinkKey
from s3sink_operator.watch.workqueue import WorkQueue
from tests.operator.fake_cluster import document, running


def get(path: str, heartbeat: WorkerHeartbeat | None = None, *sinks: Json, queued: int = 0) -> tuple[int, str]:
    """Status and body of a response of the operator."""

    async def ask() -> tuple[int, str]:
        cache, queue = ObjectCache(), WorkQueue[SinkKey](time.monotonic)
        for sink in sinks:
            cache.on_response(sink)
        for number in range(queued):
            queue.add(SinkKey("data", f"sink-{number}"))
        tracker = RolloutTracker("new", MaxUnavailable.parse("1"), cache, lambda: 0)
        async with (
            serve(0, heartbeat or WorkerHeartbeat(), cache, queue, tracker) as port,
            aiohttp.ClientSession() as http,
            http.get(f"http://127.0.0.1:{port}{path}") as response,
        ):
            return response.status, await response.text()

    return asyncio.run(ask())


def samples(text: str, name: str) -> dict[str, float]:
    """The samples of a metric by their labels."""
    rows = [line.removeprefix(name).rsplit(" ", 1) for line in text.splitlines() if line.startswith(name)]
    return {labels: float(value) for labels, value in rows}


@pytest.mark.parametrize(
    ("heartbeat", "answer"),
    [
        (WorkerHeartbeat(), (503, "starting\n")),
        (WorkerHeartbeat(ready=True), (200, "ok\n")),
        (WorkerHeartbeat(waiting=True), (200, "ok\n")),
    ],
    ids=["starting", "ready", "without the Lease"],
)
def test_the_operator_is_ready_when_its_workers_run_or_another_replica_holds_the_lease(
    heartbeat: WorkerHeartbeat, answer: tuple[int, str]
) -> None:
    assert get("/readyz", heartbeat) == answer


def silent(seconds: float) -> WorkerHeartbeat:
    """Workers whose last heartbeat is so long ago."""
    return WorkerHeartbeat(ready=True, _beat=time.monotonic() - seconds)


def test_workers_that_hang_fail_the_liveness_probe_and_the_message_has_the_time() -> None:
    assert get("/healthz", silent(HEARTBEAT_TIMEOUT_S - 10)) == (200, "ok\n")
    assert get("/healthz", silent(HEARTBEAT_TIMEOUT_S + 30.2)) == (503, "no heartbeat of the workers for 150 s\n")


def test_a_heartbeat_ends_the_silence() -> None:
    heartbeat = silent(500)
    assert heartbeat.silence_s > HEARTBEAT_TIMEOUT_S
    heartbeat.beat()
    assert heartbeat.silence_s < 10
    assert get("/healthz", heartbeat)[0] == 200


def test_the_metrics_have_the_queue_and_the_sinks_by_condition() -> None:
    paused = running()
    paused.edit(state="Paused")
    paused.converge_with_kubelet()
    paused.sink["metadata"] |= {"name": "paused", "uid": "b"}
    status, text = get("/metrics", None, running().sink, paused.sink, document("new", "c"), queued=3)
    assert status == 200
    assert samples(text, "s3sink_operator_workqueue_depth") == {"": 3}
    sinks = samples(text, "s3sink_operator_sinks")
    assert sinks['{condition="Ready",status="True"}'] == 1
    assert sinks['{condition="Ready",status="False"}'] == 1
    assert sinks['{condition="Stalled",status="False"}'] == 2
    assert samples(text, "s3sink_status_phase")['{namespace="data",sink="paused",phase="Paused"}'] == 1


def test_a_condition_that_no_sink_has_any_more_has_no_sample() -> None:
    assert samples(get("/metrics", None, running().sink)[1], "s3sink_operator_sinks")
    assert samples(get("/metrics")[1], "s3sink_operator_sinks") == {}


def test_another_path_is_not_found() -> None:
    assert get("/debug")[0] == 404
