"""`discard-open` and `reset-offsets` killed before and after each of their effects on the store, and every reply lost.

The command is run again, then the sink: the same records are in the objects of each generation, and nothing is left.
"""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext
from pathlib import Path
from typing import Any

import pytest

from devtools.faults.s3_proxy import Drop, FaultProxy, Kill, Point
from devtools.faults.s3_requests import Request
from devtools.s3 import S3Server
from sink_job.coordinator.context import StopCondition
from tests.support.crash_points import end_before_publishing
from tests.support.sink_fixture import Place
from tests.support.synthetic_log import FunctionLog

pytestmark = pytest.mark.data

LOG = FunctionLog(records=13, value_bytes=900_000)
"""An object of seven records is named; the open one has a part on the server and leftovers beside it."""
GIVEN: dict[str, Any] = {"flush_size": 7}
ALL = StopCondition(until_caught_up=True, publish_open=True)

Command = Callable[[Place], object]


def discard(place: Place) -> object:
    return place.discard(**GIVEN)


def reset(place: Place) -> object:
    return place.reset(LOG, "Earliest", on_existing="NewPrefix", nonce="once", **GIVEN)


COMMANDS: dict[str, tuple[Command, dict[str, list[int]]]] = {
    "discard-open": (discard, {"topics/log/": list(range(13))}),
    "reset-offsets": (reset, {"topics/log/": list(range(7)), "topics/generation=2/": list(range(13))}),
}
"""The commands, and the offsets that are below each directory when the sink has run to the end afterwards."""


@pytest.fixture(scope="module")
def processes() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    return context


def prepared(s3: S3Server, folder: Path) -> Place:
    """A place with an object that is named and not visible, and one that is open."""

    folder.mkdir()
    place = Place.new(s3.endpoint, folder)
    with pytest.MonkeyPatch.context() as patched:
        end_before_publishing(place, patched, LOG, **GIVEN)
    return place


def is_write(request: Request) -> bool:
    return request.mutating


def expect_done(place: Place, left: dict[str, list[int]]) -> None:
    place.run(LOG, ALL, **GIVEN)
    found = {
        below: [o for key in place.bodies() if key.startswith(below) for o in place.offsets(key)] for below in left
    }
    assert found == left
    assert [finding for each in place.verify(LOG, **GIVEN) for finding in each.findings] == []
    assert place.group() == {"log-0": 13}
    assert place.litter_after(ALL, LOG, GIVEN) == []


def run_when_told(command: Command, place: Place, gate: Connection) -> None:
    """The command's process: waits until its killer is ready."""
    gate.recv()
    command(place)


def writes_of(command: Command, s3: S3Server, folder: Path) -> int:
    """How many writes the command makes when nothing disturbs it."""
    place = prepared(s3, folder)
    with FaultProxy(s3.endpoint) as proxy:
        command(place.through(proxy))
        return proxy.count(is_write)


def killed_at(
    processes: ForkServerContext, s3: S3Server, command: Command, place: Place, nth: int, point: Point
) -> None:
    """Runs the command in a process and kills it at its `nth` write."""
    with FaultProxy(s3.endpoint) as proxy:
        gate, other = processes.Pipe()
        process = processes.Process(target=run_when_told, args=(command, place.through(proxy), other))
        process.start()
        assert process.pid is not None
        proxy.when(is_write, Kill(process.pid, signal.SIGKILL, session=False), point=point, nth=nth)
        gate.send(None)
        process.join(120)
        assert process.exitcode == -signal.SIGKILL
        proxy.resume()


@pytest.mark.parametrize("point", ["before", "after"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_is_killed_at_any_effect_can_be_run_again(
    s3: S3Server, processes: ForkServerContext, tmp_path: Path, name: str, point: Point
) -> None:
    command, left = COMMANDS[name]
    for nth in range(1, writes_of(command, s3, tmp_path / "undisturbed") + 1):
        place = prepared(s3, tmp_path / str(nth))
        killed_at(processes, s3, command, place, nth, point)
        command(place)
        expect_done(place, left)


@pytest.mark.parametrize("name", COMMANDS)
def test_after_a_command_that_was_killed_at_any_effect_the_sink_goes_on(
    s3: S3Server, processes: ForkServerContext, tmp_path: Path, name: str
) -> None:
    """Without running it again: what its record says holds, and without its record nothing has happened."""
    command, left = COMMANDS[name]
    undone = {"topics/log/": list(range(13)), "topics/generation=2/": []}
    for nth in range(1, writes_of(command, s3, tmp_path / "undisturbed") + 1):
        place = prepared(s3, tmp_path / str(nth))
        killed_at(processes, s3, command, place, nth, "after")
        is_reset = max(each.generation for each in place.verify(LOG, **GIVEN)) == 2
        expect_done(place, left if is_reset else undone)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_lost_reply_changes_nothing(s3: S3Server, tmp_path: Path, name: str) -> None:
    command, left = COMMANDS[name]
    for nth in range(1, writes_of(command, s3, tmp_path / "undisturbed") + 1):
        place = prepared(s3, tmp_path / str(nth))
        with FaultProxy(s3.endpoint) as proxy:
            proxy.when(is_write, Drop(), point="after", nth=nth)
            command(place.through(proxy))
        expect_done(place, left)
