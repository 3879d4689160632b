"""Adds the topics that wait for a catalog to the tables in the report of a driver."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from sink_job.api.report import TableReport, TableSums
from sink_job.tables.registrar import DriverProgress
from sink_job.tables.table_lag import shown


@dataclass(frozen=True)
class _WithWaiting:
    """A driver whose report has these topics, too."""

    inner: DriverProgress
    waiting: Callable[[], Sequence[TableReport]]

    @property
    def published_of_topics(self) -> Mapping[str, int] | None:
        return self.inner.published_of_topics

    def tables(self, reports: Sequence[TableReport], sums: TableSums) -> None:
        waiting = self.waiting()
        count = len(waiting)
        changed = {"tables": sums.tables + count, "failing": sums.failing + count}
        self.inner.tables(shown([*waiting, *reports]), sums.model_copy(update=changed))


def with_waiting(progress: DriverProgress, waiting: Callable[[], Sequence[TableReport]]) -> DriverProgress:
    """`progress`, with the topics that `waiting` returns."""
    return _WithWaiting(progress, waiting)
