"""The watches, and the signals that end them."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any

import kopf
import pytest

from s3sink_operator.watch.handlers import kopf_settings
from s3sink_operator.watch.kopf_operator import run_watches


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_during_the_start_sets_the_stop_flag(number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    started, stop, spawned = asyncio.Event(), asyncio.Event(), asyncio.Event()
    spawn, registry = kopf.spawn_tasks, kopf.OperatorRegistry()

    async def spawn_tasks(**arguments: Any) -> Any:
        tasks = await spawn(**arguments)
        spawned.set()
        return tasks

    async def signalled(**_: object) -> None:
        await spawned.wait()
        assert not started.is_set()
        os.kill(os.getpid(), number)
        await stop.wait()

    monkeypatch.setattr(kopf, "spawn_tasks", spawn_tasks)
    kopf.on.startup(registry=registry)(signalled)

    async def run() -> None:
        await asyncio.wait_for(run_watches(registry, kopf_settings(None), (), started=started, stop=stop), 30)

    asyncio.run(run())
    assert stop.is_set()
