"""The metastore's lock of a table, which other clients of Iceberg hold while they compare and replace it.

They replace the table without a condition, so a commit between their comparison and their request would be lost. The
lock is for them alone: what a commit of this sink replaces is decided by its condition.
"""

from __future__ import annotations

import logging
import socket
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from hive_metastore.ttypes import (
    CheckLockRequest,
    DataOperationType,
    LockComponent,
    LockLevel,
    LockRequest,
    LockState,
    LockType,
    ShowLocksRequest,
    UnlockRequest,
)
from thrift.Thrift import TException

from sink_job.api.errors import SinkError
from sink_job.tables.catalog.access import CommitNotSent
from sink_job.tables.catalog.metastore import Metastore, message_of

WAIT_S: Final = 30.0
"""Maximum time for which a commit waits for the lock of another client."""
_FIRST_PAUSE_S: Final = 0.05
_PAUSE_S: Final = 1.0
_HELD_S: Final = 30.0
"""Maximum time between the lock and the commit. A metastore ends a lock after `hive.txn.timeout`, 300 s by default."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class TableLock:
    """The lock of a table. `wait_s`: maximum time to wait for it. `clock` is in s, and `pause` waits for seconds."""

    metastore: Metastore
    database: str
    table: str
    wait_s: float = WAIT_S
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep

    @contextmanager
    def held(self, client: Any) -> Iterator[Callable[[], None]]:
        """Holds the lock, and yields what raises CommitNotSent once it has been held for too long. Raises
        CommitNotSent if another client holds it for `wait_s`, or the metastore has no locks."""
        agent = f"s3sink-{uuid.uuid4().hex}"
        try:
            self._take(client, agent)
        except TException as error:
            self._release(agent)
            raise CommitNotSent(
                f"the lock of {self._name} cannot be taken: {type(error).__name__}: {message_of(error)}. If the "
                "metastore has no locks, and no other client needs them, set the property "
                "engine.hive.lock-enabled=false of the table"
            ) from error
        except BaseException:
            self._release(agent)
            raise
        ends = self.clock() + _HELD_S

        def check() -> None:
            if self.clock() > ends:
                raise CommitNotSent(f"the lock of {self._name} was held for more than {_HELD_S:.0f} s")

        try:
            yield check
        finally:
            self._release(agent)

    @property
    def _name(self) -> str:
        return f"{self.database}.{self.table}"

    def _take(self, client: Any, agent: str) -> None:
        response = client.lock(self._request(agent))
        ends, pause = self.clock() + self.wait_s, _FIRST_PAUSE_S
        while response.state == LockState.WAITING:
            if self.clock() >= ends:
                raise CommitNotSent(
                    f"{self._name} is locked by {self._holders(client, agent)}, for more than {self.wait_s:g} s. The "
                    "metastore removes locks of clients that have ended after hive.txn.timeout, if its housekeeping "
                    "runs (hive.compactor.initiator.on)"
                )
            self.pause(pause)
            pause = min(2 * pause, _PAUSE_S)
            response = client.check_lock(CheckLockRequest(lockid=response.lockid))
        if response.state != LockState.ACQUIRED:
            raise CommitNotSent(f"the metastore has not given the lock of {self._name} (state {response.state})")

    def _request(self, agent: str) -> Any:
        component = LockComponent(
            type=LockType.EXCLUSIVE,
            level=LockLevel.TABLE,
            dbname=self.database,
            tablename=self.table,
            operationType=DataOperationType.NO_TXN,
        )
        return LockRequest(component=[component], user="s3sink", hostname=socket.gethostname(), agentInfo=agent)

    def _locks(self, client: Any) -> list[Any]:
        return list(client.show_locks(ShowLocksRequest(dbname=self.database, tablename=self.table)).locks or ())

    def _holders(self, client: Any, agent: str) -> str:
        others = [each for each in self._locks(client) if each.agentInfo != agent]
        named = (f"{each.user}@{each.hostname} ({each.agentInfo}, lock {each.lockid})" for each in others[:3])
        return ", ".join(named)[:500] or "another client"

    def _release(self, agent: str) -> None:
        """Gives the lock back, on a connection of its own: that of the commit may be lost, and with it the id."""
        try:
            with self.metastore.client() as client:
                for each in self._locks(client):
                    if each.agentInfo == agent:
                        client.unlock(UnlockRequest(lockid=each.lockid))
        except (TException, SinkError) as error:  # the outcome of the commit is what counts
            _log.warning("the lock %s of %s stays until it ends: %s", agent, self._name, message_of(error))
