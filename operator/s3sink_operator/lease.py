"""One active operator: leader election on a Lease, as client-go does it.

The client's own election is not used: it goes on renewing when the work behind it has failed, ends at a lost
connection, waits for minutes for an API server that does not answer, and keeps the Lease when told to stop.
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

from s3sink_operator.kube_api import ApiError, KubeApi
from s3sink_operator.metrics import LEADING
from s3sink_operator.types import Json

_log = logging.getLogger(__name__)

LEASE_DURATION_S: Final = 15
"""A Lease that was not renewed for so long may be taken."""
RENEW_DEADLINE_S: Final = 10
"""Who could not renew for so long stops working, well before another one may take the Lease."""
RETRY_PERIOD_S: Final = 2.0


def _identity() -> str:
    return f"{os.environ.get('HOSTNAME') or platform.node()}-{uuid.uuid4().hex[:8]}"


@dataclass
class Lease:
    """A place to be the only one. Others' clocks do not count: a Lease is old when it was seen unchanged for long."""

    api: KubeApi
    namespace: str
    name: str
    identity: str = field(default_factory=_identity)
    clock: Callable[[], float] = time.monotonic
    _observed: tuple[str, float] = ("", 0.0)
    _held: Json | None = None

    async def try_acquire(self) -> bool:
        """Takes or renews the Lease; whether it is ours now. Raises ApiError, OSError and TimeoutError.

        Renewing is one call, on what our last write left; whoever has written since then makes it a conflict.
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
        """Lets the next one work at once."""
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
    """Waits for the Lease and works while it is held; returns when either ends, after the work was cancelled.

    A process that lost it should end: another one works by now. Raises what the work raises.
    """
    while not await _try_acquire(lease):
        await asyncio.sleep(RETRY_PERIOD_S)
    _log.info("%s has the lease %s/%s", lease.identity, lease.namespace, lease.name)
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
    """Returns when the Lease could not be renewed in time, or is another's."""
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
        _log.warning("the lease %s/%s: %s", lease.namespace, lease.name, error)
        return False
