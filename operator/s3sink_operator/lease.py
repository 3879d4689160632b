"""One active operator: the client's own leader election on a Lease."""

from __future__ import annotations

import os
import platform
import uuid
from collections.abc import Callable, Coroutine
from typing import Any

from kubernetes.aio.client import ApiClient
from kubernetes.aio.leaderelection import electionconfig, leaderelection
from kubernetes.aio.leaderelection.resourcelock.leaselock import LeaseLock

from s3sink_operator.metrics import LEADING

LEASE_S, RENEW_S, RETRY_S = 15, 10, 2


async def while_leading(
    client: ApiClient, *, namespace: str, name: str, work: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    """Waits for the lease and works while it is held; returns when it is lost, after the work was cancelled.

    A process that lost it should end: another one works by now.
    """
    identity = f"{os.environ.get('HOSTNAME') or platform.node()}-{uuid.uuid4().hex[:8]}"

    async def lead() -> None:
        LEADING.set(1)
        await work()

    async def stop() -> None:
        LEADING.set(0)

    config = electionconfig.Config(
        LeaseLock(name, namespace, identity, client),
        lease_duration=LEASE_S,
        renew_deadline=RENEW_S,
        retry_period=RETRY_S,
        onstarted_leading=lead,
        onstopped_leading=stop,
    )
    await leaderelection.LeaderElection(config).run()
