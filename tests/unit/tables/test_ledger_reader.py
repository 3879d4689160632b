"""What registrations read of a ledger."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.errors import ConfigurationError
from sink_job.ledger.store import Ledger
from sink_job.tables.ledger_reader import read_ledger
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


def test_a_sink_without_a_ledger_is_an_error(table_sink: TableSink) -> None:
    with pytest.raises(ConfigurationError, match="there is no ledger below s3://archive/topics/_s3sink/"):
        read_ledger(ledger(table_sink), SINK_ID)


def test_a_ledger_without_its_first_claim_is_an_error(table_sink: TableSink) -> None:
    for records in range(10, 120, 10):
        table_sink.write(records)
    del table_sink.s3.objects[f"{table_sink.root}ledger/{1:020d}.json.gz"]
    with pytest.raises(ConfigurationError, match="the first claim of the ledger"):
        read_ledger(ledger(table_sink), SINK_ID)
