"""What a table that was registered with `onMissing: Skip` becomes with `NewTable`."""

from __future__ import annotations

from pathlib import Path

import pytest

from sink_job.api.errors import TableIncompatible
from sink_job.tables.plan import Request
from sink_job.tables.position import position_in
from sink_job.tables.successors.continuation import Successors
from tests.support.chain_sink import CONTINUING, NUMBER, TEXT, ChainSink, typed_log
from tests.support.table_sink import BEGIN, NAME, SINK_ID
from tests.unit.tables.successors.test_chain_audit import audits


@pytest.fixture
def skipping(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ChainSink:
    """A sink whose tables leave missing objects out, and are not continued."""
    sink = ChainSink(tmp_path, monkeypatch)
    sink.options["skips_missing"] = True
    sink.successors = Successors(base=NAME)
    return sink


def continue_tables(sink: ChainSink) -> None:
    """The manifest has `NewTable` and no `Skip` any more."""
    sink.options["skips_missing"] = False
    sink.successors = CONTINUING


@pytest.mark.parametrize("later", [(), ((30, (TEXT,)),)], ids=["without objects", "with objects"])
def test_what_a_table_lacks_stays_in_its_position_when_it_is_left(
    skipping: ChainSink, later: tuple[tuple[int, tuple[int, ...]], ...]
) -> None:
    skipping.write_log(typed_log((20, (TEXT,))))
    del skipping.s3.objects[skipping.objects()[0]]
    assert skipping.register().skipped == 1
    continue_tables(skipping)
    for records in later:
        skipping.write_log(typed_log(records))
    skipping.write_log(typed_log((later[0][0] if later else 20, (TEXT,)), (50, (NUMBER,))))
    assert skipping.register(Request()).table == "lake.log_2"
    table = skipping.catalog.load(NAME)
    assert table is not None
    position = position_in(table.properties, SINK_ID)
    assert position is not None
    assert position.skipped is not None
    assert position.skipped.objects == 1
    assert skipping.all_files() == list(skipping.objects())
    assert [(audit.skipped, list(audit.findings)) for audit in audits(skipping).values()] == [(1, []), (0, [])]


def test_a_skipped_object_that_exists_again_and_does_not_fit_leaves_no_table(skipping: ChainSink) -> None:
    skipping.write_log(typed_log((20, (TEXT,))))
    skipping.write_log(typed_log((20, (TEXT,)), (30, (NUMBER,))))
    key = skipping.objects()[2]
    removed = skipping.s3.objects.pop(key)
    skipping.write_log(typed_log((20, (TEXT,)), (30, (NUMBER,)), (40, (TEXT,))))
    assert skipping.register().skipped == 1
    skipping.s3.objects[key] = removed
    continue_tables(skipping)
    with pytest.raises(TableIncompatible):
        skipping.register(BEGIN)
    assert skipping.tables() == [NAME]
    assert skipping.register(Request()).continued is None


def test_a_skipped_object_that_exists_again_is_added_before_its_table_is_left_after_a_reset(
    skipping: ChainSink,
) -> None:
    log = typed_log((20, (TEXT,)))
    skipping.write_log(log)
    key = skipping.objects()[0]
    removed = skipping.s3.objects.pop(key)
    assert skipping.register().skipped == 1
    skipping.s3.objects[key] = removed
    continue_tables(skipping)
    skipping.reset(log)
    skipping.write_log(log)
    assert skipping.register(BEGIN).table == "lake.log_2"
    assert skipping.all_files() == list(skipping.objects())
    assert [(audit.skipped, list(audit.findings)) for audit in audits(skipping).values()] == [(0, []), (0, [])]
