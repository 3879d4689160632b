"""Topics that wait for a catalog are in the report of the driver, with the tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sink_job.api.report import TableReport, TableSums
from sink_job.tables.field_ids.reported_topics import with_waiting


class Progress:
    def __init__(self) -> None:
        self.published_of_topics: Mapping[str, int] | None = {"log": 3}
        self.reports: Sequence[TableReport] = ()
        self.sums = TableSums()

    def tables(self, reports: Sequence[TableReport], sums: TableSums) -> None:
        self.reports, self.sums = reports, sums


def test_waiting_topics_are_listed_first_and_counted() -> None:
    progress = Progress()
    waiting = [TableReport(table="lake.new", topic="new", reason="TopicWaitsForTable", message="it waits")]
    found = with_waiting(progress, lambda: waiting)
    known = TableReport(table="lake.log", topic="log")
    found.tables([known], TableSums(tables=1, objects=5))
    assert [*progress.reports] == [*waiting, known]
    assert (progress.sums.tables, progress.sums.failing, progress.sums.objects) == (2, 1, 5)
    waiting.clear()
    found.tables([known], TableSums(tables=1))
    assert (progress.reports, progress.sums) == ([known], TableSums(tables=1))
    assert found.published_of_topics == {"log": 3}
