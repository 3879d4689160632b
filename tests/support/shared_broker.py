"""One broker for all pytest workers of a run.

A broker without clients costs 2 % of a CPU, and its start 3 s of CPU time. So the first worker that asks starts it,
and ends it when no other worker uses it any more.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from devtools.kafka import KafkaBroker, kafka_broker
from devtools.processes import accepts_connections

HEAP = "768m"


@contextmanager
def shared_broker(folder: Path) -> Iterator[KafkaBroker]:
    """The broker of the processes that share `folder`. It runs as long as one of them is in this context."""
    port = folder / "kafka.port"
    with ExitStack() as stack, (folder / "kafka.users").open("w") as users:
        with _exclusive(folder):
            fcntl.flock(users, fcntl.LOCK_SH)
            broker = _running(port)
            is_own = broker is None
            if broker is None:
                broker = stack.enter_context(kafka_broker(heap=HEAP))
                port.write_text(str(broker.port))
        yield broker
        if is_own:
            with _exclusive(folder):
                port.unlink()
            fcntl.flock(users, fcntl.LOCK_UN)
            fcntl.flock(users, fcntl.LOCK_EX)  # returns when no other process uses it


def _running(port: Path) -> KafkaBroker | None:
    """The broker that another process has started, for its address only. None if there is none, or its process has
    ended."""
    if not port.exists() or not accepts_connections(int(port.read_text())):
        return None
    broker = KafkaBroker(port.parent)
    broker.port = int(port.read_text())
    return broker


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    with (folder / "kafka.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
