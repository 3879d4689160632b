"""Drivers and commands in processes that a test can kill. They are forked from a process with all imports."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from typing import Any, Protocol

from devtools.faults.s3_proxy import Kill, Point

Work = Callable[[], object]
"""What a process does. It is pickled: a function of a module, or a `functools.partial` of one."""

IMPORTS = ("tests.support.forked_imports", __name__, "devtools.sink_process", "pytest")
"""What the process has imported from which all are forked: the first of them in a pytest worker starts it."""

_TIMEOUT_S = 120


def forkserver() -> ForkServerContext:
    """The context of such processes."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*IMPORTS])
    return context


class KillingProxy(Protocol):
    """A proxy that can kill a process at a request."""

    def when(self, matches: Any, fault: Any, *, point: Point, nth: int) -> object: ...

    def resume(self) -> None: ...


def killed_at(work: Work, proxy: KillingProxy, matches: Callable[[Any], bool], point: Point, nth: int) -> bool:
    """Runs `work` in a process that is killed with SIGKILL at the `nth` matching request of the proxy, before or after
    the server has executed it. Returns whether the request occurred; without it the process ends with its work."""
    gate, other = multiprocessing.Pipe()
    process = forkserver().Process(target=_run_when_ready, args=(work, other))
    process.start()
    assert process.pid is not None
    proxy.when(matches, Kill(process.pid, signal.SIGKILL, session=False), point=point, nth=nth)
    gate.send(None)
    process.join(_TIMEOUT_S)
    proxy.resume()
    assert process.exitcode is not None, f"the process still runs after {_TIMEOUT_S} s"
    return process.exitcode == -signal.SIGKILL


def _run_when_ready(work: Work, gate: Connection) -> None:
    """Waits until the proxy can kill this process."""
    gate.recv()
    work()
