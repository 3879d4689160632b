"""`s3sink forget-schema`: its arguments, and what it prints."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sink_job.cli import forget_schema
from sink_job.cli import main as cli
from sink_job.connect.schema import RegisteredSchema, key_schema_id
from sink_job.coordinator.context import StopCondition
from sink_job.ledger.schemas.schema_store import SchemaStore
from tests.support.memory_sink import MemorySinkFixture
from tests.support.synthetic_log import SyntheticLog

KEY = "topics/_s3sink/default.log/schemas/log/7.json"
FORGET = ["--topic", "log", "--id", "7"]


@pytest.fixture
def sink(sink_fixture: MemorySinkFixture, log_formats: list[str], monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    """A sink without open objects, with copies of the schema 7 of values and keys, which the command connects to."""
    monkeypatch.setattr(forget_schema, "open_ledger_access", lambda *_, **__: sink_fixture.ledger_access())
    sink_fixture.run(SyntheticLog(records=10), goal=StopCondition(until_caught_up=True, publish_open=True))
    s3: Any = sink_fixture.s3
    store = SchemaStore(s3, sink_fixture.root)
    for name in ("7", key_schema_id("7")):
        store.put("log", RegisteredSchema(name, "AVRO", '"long"'), "https://registry")
    return sink_fixture


def test_the_deleted_copy_is_named_by_its_key(
    sink: MemorySinkFixture, sink_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert KEY in sink.s3.objects
    assert cli.main(["forget-schema", sink_file, *FORGET]) == 0
    assert capsys.readouterr().out == f"default.log: deleted archive/{KEY}\n"
    assert KEY not in sink.s3.objects
    assert cli.main(["forget-schema", sink_file, *FORGET]) == 0
    assert capsys.readouterr().out == f"default.log: the ledger has no copy: archive/{KEY}\n"


def test_the_schema_of_keys_is_another_one(
    sink: MemorySinkFixture, sink_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["forget-schema", sink_file, *FORGET, "--key", "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["topic"], found["id"], found["existed"], found["published"]) == ("log", "7", True, 0)
    assert found["key"] not in sink.s3.objects
    assert KEY in sink.s3.objects


@pytest.mark.parametrize("words", [["--topic", "log"], ["--id", "7"]])
def test_topic_and_id_are_required(sink_file: str, words: list[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["forget-schema", sink_file, *words])
    assert end.value.code == 2


def test_an_id_that_is_none_is_rejected_by_its_flag(
    sink: MemorySinkFixture, sink_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["forget-schema", sink_file, "--topic", "log", "--id", "../7"]) == 7
    assert "--id ../7 is not a schema id: use a number or a UUID" in capsys.readouterr().err
