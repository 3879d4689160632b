"""One run: so many sinks from nothing to their drivers, at rest, edited, through failures and a restart, to nothing."""

from __future__ import annotations

import asyncio
import re
import statistics
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from bench.operator.api_requests import cpu_s, of_operator, requests
from bench.operator.simulated_users import Players
from devtools.kube.client import Json
from devtools.operator_process import Operator
from sink_job.api.report import RunState
from tests.support.operator_fixture import SPEC, manifest

Result = dict[str, Any]

NAMESPACES = 10
SAMPLE = 50
_WRITE = re.compile(r'^s3sink_operator_api_writes_total\{kind="([^"]+)",verb="([^"]+)"\} ([0-9.e+]+)$', re.MULTILINE)
_LOOKS = re.compile(r'^s3sink_operator_reconciles_total\{result="[a-z]+"\} ([0-9.e+]+)$', re.MULTILINE)
_VERBS = {"patch": "apply", "post": "create"}


class Watched:
    """The operator's process, and what it has taken since the last question."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self._cpu = self.cpu_s()
        self._at = time.monotonic()

    def cpu_s(self) -> float:
        return cpu_s(self.operator.pid)

    def share(self) -> float:
        """CPU-seconds a second since the last question."""
        cpu, at = self.cpu_s(), time.monotonic()
        share = (cpu - self._cpu) / (at - self._at)
        self._cpu, self._at = cpu, at
        return round(share, 3)

    def memory_mb(self, line: str) -> int:
        """`VmRSS` or `VmHWM` (the peak), in MB of 10^6 bytes."""
        found = re.search(rf"{line}:\s+(\d+) kB", Path(f"/proc/{self.operator.pid}/status").read_text())
        assert found
        return int(found[1]) * 1024 // 1_000_000

    async def writes(self) -> Counter[str]:
        """So far, by verb and kind."""
        text = await asyncio.to_thread(self.operator.metrics)
        return Counter({f"{_VERBS.get(verb, verb)} {kind}": int(float(n)) for kind, verb, n in _WRITE.findall(text)})

    async def looks(self) -> int:
        return sum(int(float(n)) for n in _LOOKS.findall(await asyncio.to_thread(self.operator.metrics)))


async def run(
    players: Players, begin: Callable[[], Operator], count: int, *, rest_s: float, report: Callable[[Result], None]
) -> None:
    """All phases for `count` sinks; `report` gets the figures of each: seconds, MB (10^6 bytes), shares of a core."""
    keys = [f"bench-{number % NAMESPACES}/sink-{number}" for number in range(count)]
    async with _operator(begin) as watched:
        report({"sinks": count, "memory_empty_mb": watched.memory_mb("VmRSS")})
        async with _counted(players, count) as counts:
            created = await _create(players, watched, keys)
        report({"create": created["create"] | counts})
        report(await _rest(watched, rest_s))
        report(await _one_more(players, count))
        report(await _lags(players, keys[:: max(1, count // SAMPLE)][:SAMPLE]))
        async with _counted(players, count) as counts:
            edited = await _edit(players, watched, keys)
        report({"edit": edited["edit"] | counts})
        report({"memory_peak_mb": watched.memory_mb("VmHWM")})
    async with _operator(begin, wait=False) as watched:
        report(await _recover(watched, count))
        report(await _delete(players, watched, [*players.sinks]))


@asynccontextmanager
async def _counted(players: Players, count: int) -> AsyncIterator[Result]:
    """Adds what the API server did for each sink within the context: requests, and its CPU time in ms."""
    found: Result = {}
    cpu, before = cpu_s(players.api_server), requests(await players.metrics())
    yield found
    found["api_server_cpu_ms_per_sink"] = round((cpu_s(players.api_server) - cpu) / count * 1000, 1)
    found["requests"] = of_operator(requests(await players.metrics()) - before, count)
    found["requests_per_sink"] = round(sum(found["requests"].values()), 1)


@asynccontextmanager
async def _operator(begin: Callable[[], Operator], *, wait: bool = True) -> AsyncIterator[Watched]:
    process = begin()
    try:
        if wait:
            await asyncio.to_thread(process.wait_ready, 60)
        yield Watched(process)
    finally:
        await asyncio.to_thread(process.kill)


async def _create(players: Players, watched: Watched, keys: Sequence[str]) -> Result:
    """All at once, as fast as the API server takes them."""
    players.forget()
    times, before = players.times, await watched.writes()
    watched.share()
    await _all(lambda key: players.make(key, sink(key)), keys)
    made_s = max(times.made.values()) - min(times.made.values())
    await _until(lambda: len(times.ready) >= len(keys), "all sinks Ready", seconds=60 + len(keys) / 2)
    share = watched.share()
    await asyncio.sleep(2)  # what comes behind the last
    seconds = max(times.pod.values()) - min(times.made.values())
    writes = await watched.writes() - before
    return {
        "create": {
            "creating_s": round(made_s, 1),
            "all_pods_s": round(seconds, 1),
            "launches_per_minute": round(len(keys) / seconds * 60),
            "cr_to_pod_s": _spread(times.pod[key] - times.made[key] for key in keys),
            "cr_to_ready_s": _spread(times.ready[key] - times.made[key] for key in keys),
            "phase_to_status_s": _spread(times.ready[key] - times.running[key] for key in keys),
            "cpu_share": share,
            "cpu_ms_per_sink": round(share * seconds / len(keys) * 1000, 1),
            **_writes(writes, len(keys)),
        }
    }


async def _rest(watched: Watched, seconds: float) -> Result:
    """Nothing changes: reports say the same again and again."""
    before = await watched.writes()
    watched.share()
    await asyncio.sleep(seconds)
    share = watched.share()
    writes = await watched.writes() - before
    return {
        "rest": {
            "seconds": seconds,
            "cpu_share": share,
            "memory_mb": watched.memory_mb("VmRSS"),
            "writes": dict(writes),
        }
    }


async def _one_more(players: Players, count: int) -> Result:
    """Sinks that come one by one, beside those that are there."""
    players.forget()
    keys = [f"bench-{number % NAMESPACES}/more-{number}" for number in range(20)]
    for key in keys:
        await players.make(key, sink(key))
        await _until(lambda key=key: key in players.times.ready, f"{key} Ready", seconds=60)  # type: ignore[misc]
    times = players.times
    found = {
        "cr_to_pod_s": _spread(times.pod[key] - times.made[key] for key in keys),
        "cr_to_ready_s": _spread(times.ready[key] - times.made[key] for key in keys),
    }
    for key in keys:
        await players.delete(key)
    await _until(lambda: len(players.sinks) == count, "the further sinks gone", seconds=60)
    return {"one_by_one": found}


async def _lags(players: Players, keys: Sequence[str]) -> Result:
    """From a driver's word, and from a pod's end, to the status that contains it; one sink after the other."""
    players.forget()
    times, sent = players.times, dict[str, float]()
    for key in keys:
        sent[key] = players.report(key, RunState.RECOVERING)
        await asyncio.sleep(0.1)
    await _until(lambda: all(key in times.unready for key in keys), "all reports Recovering", seconds=90)
    report_lag = _spread(times.unready[key] - sent[key] for key in keys)
    times.ready.clear()
    for key in keys:
        players.report(key, RunState.RUNNING)
    await _until(lambda: all(key in times.ready for key in keys), "all Ready again", seconds=90)
    players.forget()
    times, failed = players.times, dict[str, float]()
    for key in keys:
        failed[key] = await players.fail(key)
    await _until(lambda: all(key in times.ready for key in keys), "all Ready again", seconds=90)
    phase_lag = _spread(times.unready[key] - failed[key] for key in keys)
    return {"report_to_status_s": report_lag, "failure_to_status_s": phase_lag}


async def _edit(players: Players, watched: Watched, keys: Sequence[str]) -> Result:
    """An edit of every sink at once, each of which restarts its driver."""
    players.forget()
    times, before = players.times, await watched.writes()
    watched.share()
    await _all(lambda key: players.edit(key, {"rotation": {"flushSize": 200}}), keys)
    await _until(lambda: all(key in times.ready for key in keys), "all Ready", seconds=60 + len(keys) / 2)
    share = watched.share()
    await asyncio.sleep(2)
    seconds = max(times.pod.values()) - min(times.made.values())
    writes = await watched.writes() - before
    return {
        "edit": {
            "restarts_per_minute": round(len(keys) / seconds * 60),
            "cpu_share": share,
            "cpu_ms_per_sink": round(share * seconds / len(keys) * 1000, 1),
            **_writes(writes, len(keys)),
        }
    }


async def _recover(watched: Watched, count: int) -> Result:
    """A new process over what is there: until each sink has been looked at."""
    began = time.monotonic()
    await asyncio.to_thread(watched.operator.wait_ready, 120)
    ready = time.monotonic()
    while await watched.looks() < count:
        await asyncio.sleep(0.1)
        if time.monotonic() - began > 180:
            raise RuntimeError("not every sink is looked at")
    done = time.monotonic()
    await asyncio.sleep(10)
    return {
        "recovery": {
            "ready_s": round(ready - began, 1),
            "all_looked_at_s": round(done - began, 1),
            "writes": dict(await watched.writes()),
        }
    }


async def _delete(players: Players, watched: Watched, keys: Sequence[str]) -> Result:
    before, began = await watched.writes(), time.monotonic()
    await _all(players.delete, keys)
    await _until(lambda: not players.sinks, "all gone", seconds=120)
    seconds = time.monotonic() - began
    writes = await watched.writes() - before

    async def pods() -> int:
        found = await players.call("GET", "/api/v1/pods?labelSelector=s3sink.io/sink")
        return len(found["items"])

    while await pods():
        await asyncio.sleep(0.5)
    return {"delete": {"sinks_gone_s": round(seconds, 1), **_writes(writes, len(keys))}}


def sink(key: str) -> Json:
    """A manifest with a topic of its own, in the bucket of all."""
    name = key.split("/")[1]
    return manifest(name, kafka=SPEC["kafka"] | {"topics": [name]})


async def _all(act: Callable[[str], Any], keys: Sequence[str], *, at_a_time: int = 16) -> None:
    left = iter(keys)

    async def worker() -> None:
        for key in left:
            await act(key)

    await asyncio.gather(*(worker() for _ in range(at_a_time)))


async def _until(is_so: Callable[[], bool], what: str, *, seconds: float) -> None:
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            raise RuntimeError(f"{what}: not within {seconds:g} s")
        await asyncio.sleep(0.02)


def _spread(values: Iterable[float]) -> Mapping[str, float]:
    found = sorted(values)
    at = {"p50": statistics.median(found), "p99": found[min(len(found) - 1, int(len(found) * 0.99))], "max": found[-1]}
    return {name: round(value, 2) for name, value in at.items()}


def _writes(writes: Counter[str], count: int) -> Result:
    events = sum(number for kind, number in writes.items() if kind.endswith(" Event"))
    return {
        "writes_per_sink": round((writes.total() - events) / count, 2),
        "events_per_sink": round(events / count, 2),
        "writes": dict(writes),
    }
