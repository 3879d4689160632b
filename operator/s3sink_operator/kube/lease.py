"""Leader election with a Lease, as in client-go: one operator is active.

The election of the Python client is not used: it continues to renew after a failure of the work, ends with a lost
connection, waits minutes for an unresponsive API server, and keeps the Lease after a stop.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import platform
import time
import uuid
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

from s3sink_operator.kube.kube_api import ApiError, KubeApi
from s3sink_operator.metrics import LEADING
from s3sink_operator.types import Json

_log = logging.getLogger(__name__)

LEASE_DURATION_S: Final = 15
"""A Lease that was not renewed for this time may be acquired by another replica."""
RENEW_DEADLINE_S: Final = 10
"""A leader that could not renew for this time stops, before another replica may acquire the Lease."""
RETRY_PERIOD_S: Final = 2.0


def _identity() -> str:
    return f"{os.environ.get('HOSTNAME') or platform.node()}-{uuid.uuid4().hex[:8]}"


@dataclass
class Lease:
    """A Lease. It expires when it is observed unchanged for its duration; clocks of other replicas are not used."""

    api: KubeApi
    namespace: str
    name: str
    identity: str = field(default_factory=_identity)
    clock: Callable[[], float] = time.monotonic
    _observed: tuple[str, float] = ("", 0.0)
    _held: Json | None = None

    async def try_acquire(self) -> bool:
        """Acquires or renews the Lease. Returns whether it is held. Raises ApiError, OSError and TimeoutError.

        A renewal is one request with the resourceVersion of the last write; a write of another replica is a conflict.
        """
        if (held := self._held) is not None:
            self._held = None
            version = {"resourceVersion": held["metadata"]["resourceVersion"]}
            try:
                if await self._write(self.api.replace, held["spec"], version):
                    return True
            except ApiError as error:
                if not error.is_not_found:
                    raise
        found = await self.api.get("Lease", self.namespace, self.name)
        if found is None:
            return await self._write(self.api.create, {"leaseTransitions": -1}, {})
        spec, meta = found.get("spec") or {}, found["metadata"]
        holder = spec.get("holderIdentity")
        if holder and holder != self.identity and not self._is_old(meta["resourceVersion"], spec):
            return False
        return await self._write(self.api.replace, spec, {"resourceVersion": meta["resourceVersion"]})

    async def release(self) -> None:
        """Releases the Lease, so that another replica can acquire it at once."""
        found = await self.api.get("Lease", self.namespace, self.name)
        if found is not None and (found.get("spec") or {}).get("holderIdentity") == self.identity:
            spec = {**found["spec"], "holderIdentity": "", "leaseDurationSeconds": 1}
            await self.api.replace(self._object(spec, {"resourceVersion": found["metadata"]["resourceVersion"]}))

    def _is_old(self, version: str, spec: Json) -> bool:
        now = self.clock()
        if self._observed[0] != version:
            self._observed = (version, now)
        return now - self._observed[1] >= int(spec.get("leaseDurationSeconds") or LEASE_DURATION_S)

    async def _write(self, write: Callable[[Json], Coroutine[Any, Any, Json]], spec: Json, meta: Json) -> bool:
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        is_ours = spec.get("holderIdentity") == self.identity
        held = {"holderIdentity": self.identity, "leaseDurationSeconds": LEASE_DURATION_S, "renewTime": now}
        if not is_ours:
            held |= {"acquireTime": now, "leaseTransitions": int(spec.get("leaseTransitions") or 0) + 1}
        try:
            self._held = await write(self._object(spec | held, meta))
        except ApiError as error:
            if error.is_conflict:
                return False
            raise
        return True

    def _object(self, spec: Json, meta: Json) -> Json:
        metadata = {"name": self.name, "namespace": self.namespace, **meta}
        return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


async def run_while_leading(lease: Lease, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Waits for the Lease and runs `work` while it is held. Returns when either ends, after `work` is cancelled.

    A process that lost the Lease should exit: another replica is active. Raises the errors of `work`.
    """
    while not await _try_acquire(lease):
        await asyncio.sleep(RETRY_PERIOD_S)
    _log.info("%s acquired the lease %s/%s", lease.identity, lease.namespace, lease.name)
    LEADING.set(1)
    working, renewing = asyncio.ensure_future(work()), asyncio.ensure_future(_renew(lease))
    try:
        await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        LEADING.set(0)
        is_held = not renewing.done()
        renewing.cancel()
        working.cancel()
        ended = await asyncio.gather(working, return_exceptions=True)
        if is_held:
            with contextlib.suppress(ApiError, OSError, TimeoutError):
                await asyncio.wait_for(lease.release(), RETRY_PERIOD_S)
    for error in ended:
        if isinstance(error, Exception):
            raise error


async def _renew(lease: Lease) -> None:
    """Returns when the Lease could not be renewed in time, or another replica holds it."""
    renewed = time.monotonic()
    while True:
        await asyncio.sleep(RETRY_PERIOD_S)
        left = renewed + RENEW_DEADLINE_S - time.monotonic()
        if left <= 0:
            return
        with contextlib.suppress(TimeoutError):
            if await asyncio.wait_for(_try_acquire(lease), left):
                renewed = time.monotonic()


async def _try_acquire(lease: Lease) -> bool:
    try:
        return await lease.try_acquire()
    except (ApiError, OSError, TimeoutError) as error:
        _log.warning("lease %s/%s: %s", lease.namespace, lease.name, error)
        return False
