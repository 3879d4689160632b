"""`s3sink verify --table` compares all tables of a topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from pyiceberg.table.update import RemovePropertiesUpdate

from sink_job.ledger.store import Ledger
from sink_job.tables.audit import TableAudit
from sink_job.tables.ledger_reader import read_ledger
from sink_job.tables.successors.chain_audit import ChainAuditor
from sink_job.tables.successors.continuation import continued_property
from tests.support.chain_sink import NUMBER, TEXT, ChainSink, typed_log
from tests.support.table_sink import NAME, SINK_ID

SECOND = "lake.log_2"


def audits(sink: ChainSink) -> Mapping[str, TableAudit]:
    s3: Any = sink.s3
    ledger = Ledger(s3, sink.root, "verify")
    auditor = ChainAuditor(
        s3, sink.root, sink.catalog, "log", lambda: read_ledger(ledger, SINK_ID), "archive", ["topics/"]
    )
    return auditor.audits(NAME)


def findings(sink: ChainSink) -> dict[str, list[tuple[str, str]]]:
    """By table, the kinds of the findings and the texts."""
    return {name: [(str(each.kind), each.message) for each in audit.findings] for name, audit in audits(sink).items()}


@pytest.fixture
def continued(chain_sink: ChainSink) -> ChainSink:
    """A sink with two tables, one record of the ledger divided between them."""
    chain_sink.separate()
    chain_sink.write_log(typed_log((20, (TEXT,))))
    chain_sink.write_log(typed_log((20, (TEXT,)), (40, (TEXT, NUMBER))))
    chain_sink.register()
    return chain_sink


def test_tables_that_continue_each_other_have_no_findings(continued: ChainSink) -> None:
    found = audits(continued)
    assert [(name, audit.objects, audit.waiting) for name, audit in found.items()] == [(NAME, 4, 0), (SECOND, 2, 0)]
    assert not any(audit.findings for audit in found.values())


def test_tables_of_two_generations_have_no_findings(chain_sink: ChainSink) -> None:
    log = typed_log((20, (TEXT,)))
    chain_sink.write_log(log)
    chain_sink.register()
    chain_sink.reset(log)
    chain_sink.write_log(log)
    assert [audit.waiting for audit in audits(chain_sink).values()] == [2]
    chain_sink.register()
    assert findings(chain_sink) == {NAME: [], SECOND: []}


def test_an_object_in_two_tables_is_found(continued: ChainSink) -> None:
    copy_file(continued, continued.files_of(2)[0])
    assert findings(continued) == {NAME: [("TableFileTwice", f"the object is in the table {SECOND}, too")], SECOND: []}


def copy_file(sink: ChainSink, key: str) -> None:
    """Another program adds a file of the second table to the first one."""
    second, first = sink.catalog.load(SECOND), sink.table()
    assert second is not None
    snapshot = second.current_snapshot()
    assert snapshot is not None
    entries = [entry for each in snapshot.manifests(second.io) for entry in each.fetch_manifest_entry(second.io)]
    (file,) = [each.data_file for each in entries if each.data_file.file_path.endswith(key)]
    with first.transaction() as transaction, transaction.update_snapshot().fast_append() as append:
        append.append_data_file(file)


def test_objects_of_a_table_that_was_left_and_dropped_are_missing(continued: ChainSink) -> None:
    continued.iceberg.drop_table(NAME)
    found = findings(continued)
    assert found[SECOND] == []
    assert found[NAME] == 4 * [
        ("TableObjectMissing", f"the table {NAME}, which had the object, does not exist any more")
    ]


def test_a_dropped_table_of_an_earlier_generation_lacks_nothing(chain_sink: ChainSink) -> None:
    log = typed_log((20, (TEXT,)))
    chain_sink.write_log(log)
    chain_sink.register()
    chain_sink.reset(log)
    chain_sink.write_log(log)
    chain_sink.register()
    chain_sink.iceberg.drop_table(NAME)
    assert findings(chain_sink) == {NAME: [], SECOND: []}


def test_a_successor_that_does_not_exist_yet_has_waiting_objects(chain_sink: ChainSink) -> None:
    chain_sink.write_log(typed_log((20, (TEXT,))))
    chain_sink.write_log(typed_log((20, (TEXT,)), (40, (NUMBER,))))
    commits = chain_sink.catalog.commits

    def stop() -> None:
        if chain_sink.catalog.commits > commits + 1:
            raise KeyboardInterrupt

    chain_sink.catalog.before = stop
    with pytest.raises(KeyboardInterrupt):
        chain_sink.register()
    found = audits(chain_sink)
    assert [(name, audit.objects, audit.waiting) for name, audit in found.items()] == [(NAME, 2, 0), (SECOND, 0, 2)]


def test_a_continuation_that_was_removed_from_the_table_is_that_of_the_memory(continued: ChainSink) -> None:
    update = RemovePropertiesUpdate(removals=[continued_property(SINK_ID)])
    continued.iceberg.commit_table(continued.table(), (), (update,))
    assert findings(continued) == {NAME: [], SECOND: []}
