"""Foreign and unreadable files in the ledger's folder."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sink_job.api.errors import ConfigurationError, LedgerFenced, LedgerUnreadable
from sink_job.coordinator.context import StopCondition
from sink_job.ledger import files
from sink_job.ledger.state import FORMAT, LedgerState, Record
from tests.support.memory_sink import MemorySinkFixture, error_of
from tests.support.synthetic_log import SyntheticLog

LOG = SyntheticLog(records=12)
FOREIGN = [
    "ledger/",
    "ledger/notes.txt",
    "ledger/backup/00000000000000000001.json.gz",
    "ledger/00000000000000000001.json.gz.bak",
    "ledger/1.json.gz",
    "snapshot/",
    "snapshot/copy of 00000000000000000001.json.gz",
    "intent/",
    "intent/README",
    "published/",
    "published/list.jsonl.gz",
]
DAMAGED: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "not gzip": lambda content: b"not gzip",
    "cut short": lambda content: content[: len(content) // 2],
    "not JSON": lambda content: gzip.compress(b"not JSON"),
    "other JSON": lambda content: gzip.compress(b'{"format": 11, "kind": 1}'),
    "deep JSON": lambda content: gzip.compress(b'{"format": 11, "other": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "not text": lambda content: gzip.compress(b'{"format": 11, "attempt": "\xff"}'),
}


@pytest.fixture
def sink_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    return MemorySinkFixture(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("document", "number"),
    [
        ({"number": 1, "named": []}, 1),
        ({"format": 7, "number": 1}, 7),
        ({"format": FORMAT + 1, "closed": {}}, FORMAT + 1),
    ],
    ids=["the first format, without a format field", "an older format", "a newer format"],
)
def test_a_ledger_of_another_format_is_rejected_with_both_formats(
    sink_fixture: MemorySinkFixture, document: dict[str, object], number: int
) -> None:
    key = f"{sink_fixture.root}ledger/{1:020d}.json.gz"
    sink_fixture.s3.put(key, gzip.compress(msgspec.json.encode(document)))
    error = error_of(lambda: sink_fixture.run(LOG))
    assert isinstance(error, ConfigurationError)
    assert f"{key} has ledger format {number}; " in str(error)
    assert f" format {FORMAT} only" in str(error)


def test_every_file_of_the_ledger_contains_its_format(sink_fixture: MemorySinkFixture) -> None:
    sink_fixture.run(LOG, snapshot_every=2)
    folders = {"ledger", "snapshot", "intent"}
    names = [key for key in sink_fixture.s3.objects if key.removeprefix(sink_fixture.root).split("/")[0] in folders]
    assert {name.removeprefix(sink_fixture.root).split("/")[0] for name in names} == folders
    assert {msgspec.json.decode(gzip.decompress(sink_fixture.s3.get(name)))["format"] for name in names} == {FORMAT}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_foreign_file_is_ignored_with_one_warning(
    sink_fixture: MemorySinkFixture, caplog: pytest.LogCaptureFixture, name: str
) -> None:
    sink_fixture.run(SyntheticLog(records=8), goal=StopCondition(until_caught_up=True))
    sink_fixture.s3.put(sink_fixture.root + name, b"")
    sink_fixture.run(LOG)
    warnings = [each.getMessage() for each in caplog.records if "is ignored" in each.getMessage()]
    # a driver does not read the published log
    expected = [] if name.startswith("published/") else [f"s3://archive/{sink_fixture.root}{name}"]
    assert [warning.split(" is ignored")[0] for warning in warnings] == expected
    assert sum(map(len, sink_fixture.offsets().values())) == 12
    assert sink_fixture.root + name in sink_fixture.s3.objects


def test_a_folder_marker_is_not_a_ledger(sink_fixture: MemorySinkFixture) -> None:
    sink_fixture.s3.put(f"{sink_fixture.root}ledger/", b"")
    assert not sink_fixture.ledger_access().ledger.exists()


@pytest.mark.parametrize("folder", ["ledger/", "snapshot/", "intent/"])
@pytest.mark.parametrize("damage", DAMAGED)
def test_the_error_for_an_unreadable_ledger_file_has_its_key(
    sink_fixture: MemorySinkFixture, folder: str, damage: str
) -> None:
    every = 3 if folder == "snapshot/" else 1_000
    sink_fixture.run(SyntheticLog(records=8), goal=StopCondition(until_caught_up=True), snapshot_every=every)
    key = max(key for key in sink_fixture.s3.objects if key.startswith(sink_fixture.root + folder))
    sink_fixture.s3.put(key, DAMAGED[damage](sink_fixture.s3.get(key)))
    error = error_of(lambda: sink_fixture.run(LOG))
    assert isinstance(error, LedgerUnreadable)
    assert error.exit_code == 7
    assert f"s3://archive/{key} cannot be read" in str(error)
    assert "Restore that object" in str(error)


def test_the_error_for_a_record_with_a_wrong_number_has_its_key(sink_fixture: MemorySinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=8), goal=StopCondition(until_caught_up=True))
    last = max(key for key in sink_fixture.s3.objects if key.startswith(f"{sink_fixture.root}ledger/"))
    number = int(last.rsplit("/", 1)[1][:20])
    copy = last.replace(f"{number:020d}", f"{number + 1:020d}")
    sink_fixture.s3.put(copy, sink_fixture.s3.get(last))
    error = error_of(lambda: sink_fixture.run(LOG))
    assert isinstance(error, LedgerUnreadable)
    assert f"{copy} cannot be read (it contains number {number})" in str(error)


def test_the_error_for_a_record_that_does_not_fit_the_previous_one_has_its_key(sink_fixture: MemorySinkFixture) -> None:
    sink_fixture.run(SyntheticLog(records=8), goal=StopCondition(until_caught_up=True), snapshot_every=1_000)
    keys = (key for key in sink_fixture.s3.objects if key.startswith(f"{sink_fixture.root}ledger/"))
    documents = {key: msgspec.json.decode(gzip.decompress(sink_fixture.s3.get(key))) for key in keys}
    key = next(key for key, document in documents.items() if any(p.get("kept") for p in partitions_of(document)))
    for partition in partitions_of(documents[key]):
        partition.pop("kept", None)
    sink_fixture.s3.put(key, gzip.compress(msgspec.json.encode(documents[key])))
    error = error_of(lambda: sink_fixture.run(LOG))
    assert isinstance(error, LedgerUnreadable)
    assert f"{key} cannot be read (it does not fit the previous one)" in str(error)


def partitions_of(record: dict[str, Any]) -> list[dict[str, Any]]:
    return list(record.get("partitions", {}).values())


@pytest.mark.parametrize("document", [{"format": FORMAT + 1, "sequence": 2}, {"named": []}], ids=["newer", "older"])
def test_a_record_of_another_format_fences_a_running_driver(
    sink_fixture: MemorySinkFixture, document: dict[str, Any]
) -> None:
    ledger = sink_fixture.ledger_access().ledger
    sink_fixture.s3.put(ledger.key_of(1), gzip.compress(msgspec.json.encode(document)))
    for write in (lambda: ledger.check_owner(LedgerState()), lambda: ledger.append(Record(1, 1, "a", "claim", 0))):
        error = error_of(write)
        assert isinstance(error, LedgerFenced)
        assert "another version of s3sink has taken over" in str(error)
        assert ledger.key_of(1) in str(error)


@pytest.mark.parametrize("damage", ["empty", "not gzip", "cut short", "not JSON"])
def test_the_error_for_an_unreadable_published_log_has_its_key(sink_fixture: MemorySinkFixture, damage: str) -> None:
    sink_fixture.run(LOG)
    key = max(key for key in sink_fixture.s3.objects if "/published/" in key)
    ledger = sink_fixture.ledger_access().ledger
    state = ledger.load()
    assert len(ledger.published(state)) > 0
    sink_fixture.s3.put(key, DAMAGED[damage](sink_fixture.s3.get(key)))
    error = error_of(lambda: ledger.published(state))
    assert isinstance(error, LedgerUnreadable)
    assert key in str(error)


@pytest.mark.parametrize("name", ["owner", "topic"])
@pytest.mark.parametrize("damage", ["empty", "not gzip", "cut short"])
def test_take_over_replaces_an_unreadable_ownership_file(
    sink_fixture: MemorySinkFixture, name: str, damage: str
) -> None:
    sink_fixture.run(SyntheticLog(records=8))
    key = f"{sink_fixture.root}owner.json" if name == "owner" else "topics/_s3sink/topics/log/json.json"
    sink_fixture.s3.put(key, DAMAGED[damage](sink_fixture.s3.get(key)))
    error = error_of(lambda: sink_fixture.run(LOG))
    assert isinstance(error, LedgerUnreadable)
    assert f"s3://archive/{key} cannot be read" in str(error)
    assert "--take-over" in str(error)
    sink_fixture.run(LOG, goal=StopCondition(until_caught_up=True, publish_open=True, take_over=True))
    assert sum(map(len, sink_fixture.offsets().values())) == 12


def test_concurrent_readers_share_one_decoder_per_type() -> None:
    """msgspec 0.22 can crash when several threads decode a type for the first time."""

    class Fresh(msgspec.Struct):
        number: int

    with ThreadPoolExecutor(16) as readers:
        decoders = list(readers.map(lambda _: files._decoder(Fresh), range(64)))
    assert all(each is decoders[0] for each in decoders)
