"""`forget-schema` over a ledger that a driver has left: when it deletes a copy, and when it changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sink_job.api.errors import ConfigurationError
from sink_job.connect.schema import RegisteredSchema, key_schema_id
from sink_job.coordinator.context import StopCondition
from sink_job.ledger.schemas.schema_store import SchemaStore
from sink_job.ledger.store import Ledger
from sink_job.maintenance.forget_schema import forget_schema
from tests.support.memory_sink import PUBLISH_ALL, MemorySinkFixture
from tests.support.synthetic_log import SyntheticLog

LOG = SyntheticLog(records=12, partitions=5)
LEFT_OPEN = StopCondition(until_caught_up=True)
GUID = "89791762-2336-4186-9674-299b90a802e2"


@pytest.fixture
def sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    return MemorySinkFixture(tmp_path, monkeypatch)


def put(sink: MemorySinkFixture, *names: str, topic: str = "log") -> None:
    """Puts copies of schemas with these ids."""
    s3: Any = sink.s3
    store = SchemaStore(s3, sink.root)
    for name in names:
        store.put(topic, RegisteredSchema(name, "AVRO", '"long"'), "https://registry")


def copies(sink: MemorySinkFixture) -> set[str]:
    return {key.removeprefix(sink.root) for key in sink.s3.objects if "/schemas/" in key}


def epoch(sink: MemorySinkFixture) -> int:
    access = sink.ledger_access()
    return Ledger(access.s3, access.root, "reader").load().epoch


def test_without_a_ledger_there_is_nothing_to_forget(sink: MemorySinkFixture) -> None:
    with pytest.raises(ConfigurationError, match=r"there is no ledger at .*: the sink has no copies of schemas"):
        forget_schema(sink.ledger_access(), "log", "7")
    assert sink.s3.objects == {}


@pytest.mark.parametrize("schema_id", ["7", "0", GUID, "global-7"])
def test_only_the_copy_of_the_id_is_deleted(sink: MemorySinkFixture, schema_id: str) -> None:
    sink.run(LOG, goal=PUBLISH_ALL)
    put(sink, schema_id, "8", key_schema_id(schema_id))
    put(sink, schema_id, topic="other")
    before = copies(sink)
    found = forget_schema(sink.ledger_access(), "log", schema_id)
    assert (found.topic, found.id, found.existed, found.published) == ("log", schema_id, True, 0)
    assert before - copies(sink) == {found.key.removeprefix(sink.root)}


def test_a_schema_of_keys_has_a_copy_of_its_own(sink: MemorySinkFixture) -> None:
    sink.run(LOG, goal=PUBLISH_ALL)
    put(sink, "7", key_schema_id("7"))
    assert forget_schema(sink.ledger_access(), "log", "7", is_key=True).existed
    assert len(copies(sink)) == 1
    assert forget_schema(sink.ledger_access(), "log", "7").existed


def test_a_repeated_command_reports_that_there_is_no_copy(sink: MemorySinkFixture) -> None:
    sink.run(LOG, goal=PUBLISH_ALL)
    put(sink, "7")
    assert [forget_schema(sink.ledger_access(), "log", "7").existed for _ in range(2)] == [True, False]


@pytest.mark.parametrize(("topic", "rejected"), [("log", True), ("other", False)])
def test_a_copy_that_open_objects_may_need_is_kept(sink: MemorySinkFixture, topic: str, rejected: bool) -> None:
    sink.run(LOG, goal=LEFT_OPEN)
    put(sink, "7", topic=topic)
    if not rejected:
        assert forget_schema(sink.ledger_access(), topic, "7").existed
        return
    with pytest.raises(
        ConfigurationError,
        match=r"objects of log-0, log-1, log-2 and others are open .* schema id 7\. Publish them .*--publish-open",
    ):
        forget_schema(sink.ledger_access(), topic, "7")
    assert len(copies(sink)) == 1


def test_open_objects_of_few_partitions_are_all_named(sink: MemorySinkFixture) -> None:
    sink.run(SyntheticLog(records=12, partitions=3), goal=LEFT_OPEN)
    with pytest.raises(ConfigurationError, match="objects of log-0, log-1, log-2 are open"):
        forget_schema(sink.ledger_access(), "log", "7")


def test_a_running_driver_is_fenced(sink: MemorySinkFixture) -> None:
    sink.run(LOG, goal=PUBLISH_ALL)
    before = epoch(sink)
    forget_schema(sink.ledger_access(), "log", "7")
    assert epoch(sink) > before


@pytest.mark.parametrize("schema_id", ["../../x", "", "a b", "7/8", "7.json", "é"])
def test_an_id_that_is_none_changes_nothing(sink: MemorySinkFixture, schema_id: str) -> None:
    sink.run(LOG, goal=PUBLISH_ALL)
    before = epoch(sink)
    with pytest.raises(ConfigurationError, match="is not a schema id: use a number or a UUID"):
        forget_schema(sink.ledger_access(), "log", schema_id)
    assert epoch(sink) == before
