"""`discard-open` and `reset-offsets` are killed before and after each effect on the store, and each reply is lost.

The command runs again, then the sink: the objects of each generation hold the same records, and no orphans remain.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from devtools.faults.s3_proxy import Drop, FaultProxy, Point
from devtools.faults.s3_requests import S3Request
from devtools.s3 import S3Server
from sink_job.coordinator.context import StopCondition
from tests.support.crash_points import crash_before_publishing
from tests.support.forked import Work, killed_at
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import SyntheticLog

pytestmark = pytest.mark.data

LOG = SyntheticLog(records=13, value_bytes=900_000)
"""An object of seven records is closed; the open one has an uploaded part and a staged remainder."""
GIVEN: dict[str, Any] = {"flush_size": 7}
ALL = StopCondition(until_caught_up=True, publish_open=True)

Command = Callable[[SinkFixture], Work]
"""Gives the call that runs a command on a sink."""


def discard(sink_fixture: SinkFixture) -> Work:
    return partial(sink_fixture.discard, **GIVEN)


def reset(sink_fixture: SinkFixture) -> Work:
    return partial(sink_fixture.reset, LOG, "Earliest", on_existing="NewPrefix", nonce="once", **GIVEN)


COMMANDS: dict[str, tuple[Command, dict[str, list[int]]]] = {
    "discard-open": (discard, {"topics/log/": list(range(13))}),
    "reset-offsets": (reset, {"topics/log/": list(range(7)), "topics/generation=2/": list(range(13))}),
}
"""The commands, and the offsets below each directory after the sink has caught up."""


def prepared(s3: S3Server, folder: Path) -> SinkFixture:
    """A sink with a closed object that is not visible, and an open object."""

    folder.mkdir()
    sink_fixture = SinkFixture.new(s3.endpoint, folder)
    with pytest.MonkeyPatch.context() as patched:
        crash_before_publishing(sink_fixture, patched, LOG, **GIVEN)
    return sink_fixture


def is_write(request: S3Request) -> bool:
    return request.mutating


def expect_done(sink_fixture: SinkFixture, left: dict[str, list[int]]) -> None:
    sink_fixture.run(LOG, ALL, **GIVEN)
    found = {
        below: [o for key in sink_fixture.contents() if key.startswith(below) for o in sink_fixture.offsets(key)]
        for below in left
    }
    assert found == left
    assert [finding for each in sink_fixture.verify(LOG, **GIVEN) for finding in each.findings] == []
    assert sink_fixture.group() == {"log-0": 13}
    assert sink_fixture.orphans_after(ALL, LOG, GIVEN) == []


def writes_of(command: Command, s3: S3Server, folder: Path) -> int:
    """The number of writes of an undisturbed command."""
    sink_fixture = prepared(s3, folder)
    with FaultProxy(s3.endpoint) as proxy:
        command(sink_fixture.through(proxy))()
        return proxy.count(is_write)


def kill(s3: S3Server, command: Command, sink_fixture: SinkFixture, point: Point, nth: int) -> None:
    """Runs the command in a process and kills it at its `nth` write."""
    with FaultProxy(s3.endpoint) as proxy:
        assert killed_at(command(sink_fixture.through(proxy)), proxy, is_write, point, nth)


@pytest.mark.parametrize("point", ["before", "after"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_killed_at_any_effect_can_be_repeated(s3: S3Server, tmp_path: Path, name: str, point: Point) -> None:
    command, left = COMMANDS[name]
    for nth in range(1, writes_of(command, s3, tmp_path / "undisturbed") + 1):
        sink_fixture = prepared(s3, tmp_path / str(nth))
        kill(s3, command, sink_fixture, point, nth)
        command(sink_fixture)()
        expect_done(sink_fixture, left)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_sink_continues_after_a_command_killed_at_any_effect(s3: S3Server, tmp_path: Path, name: str) -> None:
    """The command is not repeated: its record is in force, or without its record nothing has changed."""
    command, left = COMMANDS[name]
    undone = {"topics/log/": list(range(13)), "topics/generation=2/": []}
    for nth in range(1, writes_of(command, s3, tmp_path / "undisturbed") + 1):
        sink_fixture = prepared(s3, tmp_path / str(nth))
        kill(s3, command, sink_fixture, "after", nth)
        is_reset = max(each.generation for each in sink_fixture.verify(LOG, **GIVEN)) == 2
        expect_done(sink_fixture, left if is_reset else undone)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_lost_reply_changes_nothing(s3: S3Server, tmp_path: Path, name: str) -> None:
    command, left = COMMANDS[name]
    for nth in range(1, writes_of(command, s3, tmp_path / "undisturbed") + 1):
        sink_fixture = prepared(s3, tmp_path / str(nth))
        with FaultProxy(s3.endpoint) as proxy:
            proxy.when(is_write, Drop(), point="after", nth=nth)
            command(sink_fixture.through(proxy))()
        expect_done(sink_fixture, left)
