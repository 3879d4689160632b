"""The report of a driver as the operator reads it: it costs no more than the reports of other sinks, whoever
answers at the address of the pod."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from sink_job.api.report import MAX_SUMS, HangingTransactionReport, PartitionReport, Report, ReportSums, TopicSum
from sink_job.api.report_access import MAX_REPORTED


class LimitedSums(ReportSums):
    """The sums of a limited report."""

    topics: Annotated[list[TopicSum], Field(default_factory=list, max_length=MAX_SUMS)]


class LimitedReport(Report):
    """A report with limited lists."""

    partitions: Annotated[list[PartitionReport], Field(default_factory=list, max_length=MAX_REPORTED)]
    hanging_transactions: Annotated[list[HangingTransactionReport], Field(default_factory=list, max_length=MAX_SUMS)]
    sums: LimitedSums | None = None
