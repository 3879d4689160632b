"""The lag of a table, from counts of published objects."""

from __future__ import annotations

from sink_job.api.report import MAX_TABLE_MESSAGE, MAX_TABLES_SHOWN, TableReport
from sink_job.tables.position import TablePosition
from sink_job.tables.table_lag import TableLag, shown, sums


def lag(**given: object) -> TableLag:
    return TableLag("lake.log", "log", **given)  # type: ignore[arg-type]


def test_a_table_lacks_what_was_published_after_the_ledger_was_read() -> None:
    found = lag()
    found.read(published=3, waiting=0, now=100)
    assert (found.missing(3), found.is_current(3)) == (0, True)
    assert (found.missing(5), found.is_current(5)) == (2, False)


def test_a_table_lacks_what_a_failed_registration_has_left_out() -> None:
    found = lag()
    found.read(published=3, waiting=7, now=100)
    found.failed("TableReplaced", "the table has another UUID")
    assert (found.missing(5), found.is_current(3)) == (9, False)


def test_a_table_that_was_not_read_yet_is_not_current() -> None:
    assert not lag().is_current(0)


def test_the_age_of_a_lag_begins_with_the_first_missing_object() -> None:
    found = lag()
    found.read(published=1, waiting=0, now=100)
    found.observe(1, 200)
    assert found.report(1, 250).lag_ms == 0
    found.observe(2, 300)
    found.observe(3, 400)
    assert found.report(3, 1_000).lag_ms == 700
    found.read(published=3, waiting=2, now=1_100)
    assert found.report(3, 1_300).lag_ms == 1_000
    found.read(published=3, waiting=0, now=1_400)
    assert found.report(3, 1_500).lag_ms == 0


def test_an_error_is_new_only_once() -> None:
    found = lag()
    assert found.failed("TransientError", "no answer")
    assert not found.failed("TransientError", "no answer")
    assert found.failed("TransientError", "another")
    found.added(None, 0, 0, 1)
    assert found.report(0, 1).reason is None


def test_a_report_has_position_counts_and_a_shortened_error() -> None:
    found = lag()
    found.added(TablePosition("a", 2, 40, 7), 5, 1, 900)
    found.added(TablePosition("a", 2, 50, 8), 1, 1, 950)
    found.failed("TableReplaced", "x" * 2_000)
    found.skipped = 4
    report = found.report(0, 1_000)
    assert (report.generation, report.record, report.objects, report.commits) == (2, 50, 6, 2)
    assert (report.registered_at, report.reason, report.skipped_objects) == (950, "TableReplaced", 4)
    assert sums([report, report]).skipped_objects == 8
    assert report.message is not None
    assert len(report.message) == MAX_TABLE_MESSAGE


def test_a_report_lists_tables_with_an_error_and_the_longest_lags_first() -> None:
    many = [TableReport(table=f"t{n}", lag_ms=n) for n in range(MAX_TABLES_SHOWN + 5)]
    many[2] = TableReport(table="t2", reason="TableReplaced", lag_objects=4)
    found = shown(many)
    assert len(found) == MAX_TABLES_SHOWN
    assert [each.table for each in found[:2]] == ["t2", f"t{MAX_TABLES_SHOWN + 4}"]
    total = sums(many)
    assert (total.tables, total.failing, total.lag_objects) == (MAX_TABLES_SHOWN + 5, 1, 4)
    assert total.lag_ms == MAX_TABLES_SHOWN + 4
    assert sums([]).lag_ms == 0


def test_a_table_that_is_continued_is_reported_by_the_name_of_the_last_one() -> None:
    lag = TableLag("lake.a", "a", last="lake.a_2")
    assert lag.report(0, 0).table == "lake.a_2"
    lag.last = None
    assert lag.report(0, 0).table == "lake.a"
