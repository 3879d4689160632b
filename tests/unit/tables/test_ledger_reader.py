"""What registrations read of a ledger."""

from __future__ import annotations

import gzip
from typing import Any

import pytest

from sink_job.api.errors import ConfigurationError
from sink_job.ledger.store import Ledger
from sink_job.tables.ledger_reader import KnownFiles, read_ledger
from tests.support.table_sink import SINK_ID, TableSink


def ledger(sink: TableSink) -> Ledger:
    s3: Any = sink.s3
    return Ledger(s3, sink.root, "test")


def test_published_objects_are_in_the_order_of_their_acknowledgement(table_sink: TableSink) -> None:
    for records in (20, 40, 60):  # snapshots are written meanwhile
        table_sink.write(records)
    view, objects = read_ledger(ledger(table_sink), SINK_ID)
    assert [o.key for o in objects["log"]] == list(table_sink.objects())
    numbers = [o.acknowledged for o in objects["log"]]
    assert numbers == sorted(numbers)
    assert numbers[0] > 1
    assert numbers[-1] <= view.number


def test_a_ledger_keeps_its_identity_and_another_one_has_another(table_sink: TableSink) -> None:
    table_sink.write(20)
    first, _ = read_ledger(ledger(table_sink), SINK_ID)
    table_sink.write(40)
    second, _ = read_ledger(ledger(table_sink), SINK_ID)
    assert first.identity == second.identity
    assert second.number > first.number


def test_the_view_has_the_claims_of_the_ledger(table_sink: TableSink) -> None:
    for records in (10, 20, 30):
        table_sink.write(records)
    log = ledger(table_sink)
    view, _ = read_ledger(log, SINK_ID)
    first, second, third = view.claims
    assert (first, view.claims[first], len(set(view.claims.values()))) == (1, view.identity, 3)
    del table_sink.s3.objects[log.key_of(second)]
    found, _ = read_ledger(log, SINK_ID)
    assert found.claims == {**view.claims, second: ""}
    assert third > second


def test_a_sink_without_a_ledger_is_an_error(table_sink: TableSink) -> None:
    with pytest.raises(ConfigurationError, match="there is no ledger below s3://archive/topics/_s3sink/"):
        read_ledger(ledger(table_sink), SINK_ID)


def test_a_ledger_without_its_first_claim_is_an_error(table_sink: TableSink) -> None:
    for records in range(10, 120, 10):
        table_sink.write(records)
    del table_sink.s3.objects[f"{table_sink.root}ledger/{1:020d}.json.gz"]
    with pytest.raises(ConfigurationError, match="the first claim of the ledger"):
        read_ledger(ledger(table_sink), SINK_ID)


@pytest.fixture
def sink(table_sink: TableSink) -> TableSink:
    """A sink with several files of its published log."""
    for records in range(20, 220, 20):
        table_sink.write(records)
    assert len(files(table_sink)) > 3
    return table_sink


def files(sink: TableSink) -> list[str]:
    return sorted(key for key in sink.s3.objects if "/published/" in key)


def gets(sink: TableSink) -> list[str]:
    """The files of the published log that are read from now on."""
    found: list[str] = []

    def note(call: str, key: str) -> None:
        if call == "get" and "/published/" in key:
            found.append(key)

    sink.s3.fault = note
    return found


def test_all_objects_are_in_the_order_of_their_records(sink: TableSink) -> None:
    objects = read_ledger(ledger(sink), SINK_ID)[1]["log"]
    found = [(o.acknowledged, o.key) for o in objects]
    assert found == sorted(found)
    assert sorted(key for _, key in found) == list(sink.objects())


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 1.0])
def test_the_objects_after_a_record_are_the_later_ones_and_are_counted(sink: TableSink, share: float) -> None:
    view, by_topic = read_ledger(ledger(sink), SINK_ID)
    objects, after = by_topic["log"], int(view.number * share)
    later = [o for o in objects if o.acknowledged > after]
    assert list(objects.after(after)) == later
    assert objects.count_after(after) == len(later)


def test_a_second_reader_reads_the_files_after_the_position_alone(sink: TableSink) -> None:
    known = KnownFiles()
    read_ledger(ledger(sink), SINK_ID, known)
    found = gets(sink)
    view, by_topic = read_ledger(ledger(sink), SINK_ID, known)
    assert found == []
    (newest,) = files(sink)[-1:]
    end = int(newest.rsplit("-", 1)[1].split(".")[0])
    list(by_topic["log"].after(end - 1))
    assert found == [newest]
    assert by_topic["log"].count_after(0) == len(sink.objects())
    assert view.number >= end


def test_a_file_with_another_content_is_read_again(sink: TableSink) -> None:
    """A ledger that was deleted and created again has files of the same names."""
    known = KnownFiles()
    read_ledger(ledger(sink), SINK_ID, known)
    key = files(sink)[0]
    content = gzip.decompress(sink.s3.objects[key].body)
    sink.s3.put(key, gzip.compress(content.replace(b'"topic":"log"', b'"topic":"other"')))
    found = gets(sink)
    assert set(read_ledger(ledger(sink), SINK_ID, known)[1]) == {"log", "other"}
    assert found == [key]


def test_a_file_is_read_when_its_first_object_is_needed(sink: TableSink) -> None:
    known = KnownFiles()
    _, by_topic = read_ledger(ledger(sink), SINK_ID, known)
    found = gets(sink)
    objects = by_topic["log"].after(0)
    next(objects)
    assert len(found) == 1


def test_a_table_gets_each_object_once_from_the_log(sink: TableSink) -> None:
    sink.register(limit=3)
    assert sink.files() == sink.objects()
