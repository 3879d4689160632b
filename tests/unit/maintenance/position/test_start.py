"""The first start of `s3sink run --from-connector`, before the claim."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from sink_job.api.errors import InvalidConnector
from sink_job.maintenance.position import connector_check, start
from sink_job.maintenance.position.start import FromConnector, has_ledger, previous_writer, wait_until_empty
from sink_job.migrate.inputs import worker_rest
from tests.support.memory_sink import MemorySinkFixture
from tests.support.sink_fixture import manifest
from tests.support.store_faults import LOG
from tests.support.synthetic_log import FileConsumerGroup, InlineEngine, sink_of_text
from tests.unit.migrate.inputs.test_worker_rest import as_json, worker


@pytest.fixture
def sink_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    return MemorySinkFixture(tmp_path, monkeypatch)


class Group(FileConsumerGroup):
    """A group whose members leave one by one."""

    left = 2

    def group_members(self, group: str) -> int:
        self.left -= 1
        return max(self.left, 0)


def found(sink_fixture: MemorySinkFixture, request: FromConnector, lines: list[str]) -> Any:
    s3: Any = sink_fixture.s3
    settings: Any = None
    return previous_writer(
        sink_fixture.sink,
        request,
        s3,
        settings,
        Group(LOG, sink_fixture.group),
        InlineEngine(LOG),
        report=lines.append,
        stop=threading.Event(),
    )


def test_a_sink_with_a_ledger_continues_there(sink_fixture: MemorySinkFixture) -> None:
    sink_fixture.run(LOG)
    lines: list[str] = []
    s3: Any = sink_fixture.s3
    assert has_ledger(sink_fixture.sink, s3)
    assert found(sink_fixture, FromConnector(), lines) is None
    assert lines == ["the sink has a ledger: it continues there, and --from-connector has no effect"]


def test_a_connector_is_stopped_and_its_group_empty_before_the_position_is_read(
    sink_fixture: MemorySinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(start, "_POLL_S", 0.001)
    monkeypatch.setattr(worker_rest, "stop_connector", lambda url: f"stopped {url}")
    checked: list[str] = []
    monkeypatch.setattr(connector_check, "check_connector", lambda url, sink: checked.append(url))
    lines: list[str] = []
    previous = found(sink_fixture, FromConnector(stop_url="http://w/connectors/c"), lines)
    assert previous.group == "group"
    assert checked == ["http://w/connectors/c"]
    assert lines[0] == "stopped http://w/connectors/c"
    assert lines[-1].startswith("consumer group group: 0 of 1 topic-partitions have a committed offset")


def test_a_connector_that_is_not_the_one_of_the_sink_is_not_stopped(
    sink_fixture: MemorySinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    info = {"name": "c", "config": {"connector.class": "x.S3SinkConnector", "topics": "log"}}
    with worker({"/connectors/c": as_json(info)}) as (url, requests):
        request = FromConnector(stop_url=f"{url}/connectors/c")
        with pytest.raises(InvalidConnector, match=r"its consumer group is connect-c, and kafka\.groupId is group"):
            found(sink_fixture, request, [])
    assert not [path for path, _ in requests if path.startswith("PUT")]


def test_the_wait_for_an_empty_group_ends_with_its_limit_and_with_the_driver(sink_fixture: MemorySinkFixture) -> None:
    class Busy(FileConsumerGroup):
        asked = 0

        def group_members(self, group: str) -> int:
            self.asked += 1
            return 1

    admin, stop = Busy(LOG, sink_fixture.group), threading.Event()
    wait_until_empty(sink_fixture.sink, admin, stop, seconds=0)
    stop.set()
    wait_until_empty(sink_fixture.sink, admin, stop)
    assert admin.asked == 2


@pytest.mark.parametrize(
    ("value", "request_of_it"),
    [
        ("Reject", None),
        ("Accept", FromConnector()),
        ("AcceptNewest", FromConnector(start_at_objects=True)),
    ],
)
def test_a_manifest_asks_for_it_until_the_sink_has_a_ledger(
    sink_fixture: MemorySinkFixture, value: str, request_of_it: FromConnector | None
) -> None:
    kafka = {"bootstrapServers": "127.0.0.1:9", "topics": ["log"], "groupId": "group", "existingObjects": value}
    sink = sink_of_text(manifest("archive", "http://127.0.0.1:9", flush_size=5, spec={"kafka": kafka}))
    s3: Any = sink_fixture.s3
    assert FromConnector.of_manifest(sink, s3) == request_of_it
    sink_fixture.run(LOG)
    assert FromConnector.of_manifest(sink, s3) is None
