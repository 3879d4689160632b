"""Kopf's watches with signal handlers of ours."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Sequence

import kopf


async def run_watches(
    registry: kopf.OperatorRegistry,
    settings: kopf.OperatorSettings,
    namespaces: Sequence[str],
    *,
    started: asyncio.Event,
    stop: asyncio.Event,
) -> None:
    """Delivers events to the handlers of `registry` until `stop` is set or Kopf ends; without `namespaces`, of the
    whole cluster. Sets `started` when Kopf's start-up is complete.

    `kopf.operator` replaces the handlers of SIGTERM and SIGINT by its own, which end it without setting `stop`: a
    signal during the start would look as if the watches had failed.
    """
    existing = asyncio.all_tasks()
    tasks = await kopf.spawn_tasks(
        registry=registry,
        settings=settings,
        standalone=True,
        clusterwide=not namespaces,
        namespaces=namespaces,
        ready_flag=started,
        stop_flag=stop,
    )
    stop_on_signals(stop)
    await kopf.run_tasks(tasks, ignored=existing)


def stop_on_signals(stop: asyncio.Event) -> None:
    """SIGTERM and SIGINT set `stop`. Only from the main thread."""
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
