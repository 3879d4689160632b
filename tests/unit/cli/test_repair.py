"""`s3sink repair`: what it connects to, what it prints and ends with, on a sink in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from sink_job.cli import kafka_access, repair
from sink_job.cli import main as cli
from tests.support.memory_sink import PUBLISH_ALL, MemorySinkFixture
from tests.support.synthetic_log import FileConsumerGroup, InlineEngine, SyntheticLog

LOG = SyntheticLog(records=12)
KEYS = [f"topics/log/partition=0/log+0+{first:010d}.json" for first in (0, 5, 10)]


@pytest.fixture
def accesses(sink_fixture: MemorySinkFixture, log_formats: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was connected to Kafka and ended, after a sink has copied the log."""
    events: list[str] = []

    @contextmanager
    def access(*_: object, reads: bool) -> Iterator[tuple[Any, Any]]:
        name = "engine" if reads else "admin"
        events.append(name)
        yield FileConsumerGroup(LOG, sink_fixture.group), InlineEngine(LOG) if reads else None
        events.append(f"end of {name}")

    monkeypatch.setattr(kafka_access, "kafka_access", access)
    sink_fixture.run(LOG, goal=PUBLISH_ALL)
    return events


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = cli.main(["repair", *words])
    return code, capsys.readouterr().out


def test_without_damage_no_engine_is_started(
    accesses: list[str], sink_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, sink_file) == (0, "default.log: no object is missing or damaged\n")
    assert accesses == ["admin", "end of admin"]


def test_damage_starts_one_engine_and_is_repaired(
    accesses: list[str], sink_fixture: MemorySinkFixture, sink_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    right = sink_fixture.offsets()
    sink_fixture.s3.delete(KEYS[:2])
    code, text = run(capsys, sink_file)
    assert (code, text.splitlines()[-1]) == (0, "default.log: 2 objects restored")
    assert f"restored from Kafka: log-0 offset 0: s3://archive/{KEYS[0]} (it is not in the bucket)" in text
    assert sink_fixture.offsets() == right
    assert accesses == ["admin", "end of admin", "engine", "end of engine"]


def test_a_dry_run_needs_no_engine(
    accesses: list[str], sink_fixture: MemorySinkFixture, sink_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sink_fixture.s3.delete(KEYS[:1])
    code, text = run(capsys, sink_file, "--dry-run", "-o", "json")
    found = json.loads(text)
    assert (code, found["exitCode"], found["dryRun"]) == (0, 0, True)
    assert [(o["key"], o["outcome"], o["source"]) for o in found["objects"]] == [(KEYS[0], "Restorable", "Kafka")]
    assert accesses == ["admin", "end of admin"]
    assert KEYS[0] not in sink_fixture.s3.objects


def test_named_objects_and_the_copies_of_their_damaged_bytes(
    accesses: list[str], sink_fixture: MemorySinkFixture, sink_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for key in KEYS[:2]:
        sink_fixture.s3.put(key, b"damaged")
    code, text = run(capsys, sink_file, "--key", KEYS[1])
    assert (code, text.splitlines()[-1]) == (0, "default.log: 1 objects restored")
    assert "its damaged bytes are at s3://archive/topics/_s3sink/default.log/repair/damaged/" in text
    assert run(capsys, sink_file, "--discard-damaged", "--dry-run") == (
        0,
        "default.log: would delete 1 copies of damaged bytes (7 B)\n",
    )
    assert run(capsys, sink_file, "--discard-damaged", "--dry-run", "--key", f"s3://archive/{KEYS[0]}") == (
        0,
        "default.log: would delete 0 copies of damaged bytes (0 B)\n",
    )
    code, text = run(capsys, sink_file, "--discard-damaged", "-o", "json")
    assert json.loads(text) == {"sinkId": "default.log", "dryRun": False, "copies": 1, "bytes": 7}
    assert [key for key in sink_fixture.s3.objects if "/repair/" in key] == []


def test_a_key_can_be_the_url_that_verify_prints(
    accesses: list[str], sink_fixture: MemorySinkFixture, sink_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    right = sink_fixture.offsets()
    sink_fixture.s3.put(KEYS[1], b"damaged")
    code, text = run(capsys, sink_file, "--key", f"s3://archive/{KEYS[1]}")
    assert (code, text.splitlines()[-1]) == (0, "default.log: 1 objects restored")
    assert sink_fixture.offsets() == right


def test_objects_removed_before_a_time_are_left_alone(
    accesses: list[str], sink_fixture: MemorySinkFixture, sink_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sink_fixture.s3.delete(KEYS[:1])
    code, text = run(capsys, sink_file, "--removed-before", "2100-01-01")
    assert code == 0
    assert "note: 1 missing objects were removed on purpose and are left alone" in text
    assert KEYS[0] not in sink_fixture.s3.objects


def test_a_time_that_is_none_is_rejected(sink_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["repair", sink_file, "--removed-before", "yesterday"])
    assert end.value.code == 2
    assert "'yesterday' is not a timestamp" in capsys.readouterr().err


def test_accept_loss_records_what_cannot_be_restored_and_verify_reports_it_as_lost(
    accesses: list[str],
    sink_fixture: MemorySinkFixture,
    sink_file: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sink_fixture.s3.delete(KEYS[:2])
    monkeypatch.setitem(globals(), "LOG", SyntheticLog(records=12, starts_at=5))
    monkeypatch.setattr(repair, "open_ledger_access", lambda *_, **__: sink_fixture.ledger_access())
    code, text = run(capsys, sink_file)
    assert (code, text.splitlines()[-1]) == (5, "default.log: 1 objects restored, 1 cannot be restored")
    code, text = run(capsys, sink_file, "--accept-loss")
    assert (code, text.splitlines()[-1]) == (0, "default.log: 0 objects restored, 1 recorded as lost")
    assert f"recorded as lost: log-0 offset 0: s3://archive/{KEYS[0]} (it is not in the bucket): " in text
    code, text = run(capsys, sink_file)
    assert code == 0
    assert "note: 1 missing or damaged objects were recorded as lost before (--accept-loss) and are left alone" in text


def test_copies_cannot_be_discarded_beside_an_accepted_loss(sink_file: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        cli.main(["repair", sink_file, "--accept-loss", "--discard-damaged"])
    assert end.value.code == 2
    assert "not allowed with argument" in capsys.readouterr().err
