"""The report of a driver as the operator reads it: it costs no more than the reports of other sinks, whoever
answers at the address of the pod."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field

from s3sink_operator.kube_api import ResponseTooLarge
from sink_job.api.report import MAX_SUMS, HangingTransactionReport, PartitionReport, Report, ReportSums, TopicSum
from sink_job.api.report_access import MAX_REPORTED

MAX_MARKS: Final = 80_000
"""Limit of the commas and opening brackets of a report. The largest report of a driver has fewer than 60,000."""


class LimitedSums(ReportSums):
    """The sums of a limited report."""

    topics: Annotated[list[TopicSum], Field(default_factory=list, max_length=MAX_SUMS)]


class LimitedReport(Report):
    """A report with limited lists."""

    partitions: Annotated[list[PartitionReport], Field(default_factory=list, max_length=MAX_REPORTED)]
    hanging_transactions: Annotated[list[HangingTransactionReport], Field(default_factory=list, max_length=MAX_SUMS)]
    sums: LimitedSums | None = None


def parse_report(text: bytes) -> LimitedReport:
    """The report of a response. The parser takes up to 1 KB for each comma or bracket, whatever field it is in, and
    holds the interpreter's lock: so they are counted first.

    Raises ResponseTooLarge above MAX_MARKS, and pydantic's ValidationError.
    """
    if sum(text.count(mark) for mark in b",[{") > MAX_MARKS:
        raise ResponseTooLarge(f"the report has more than {MAX_MARKS} commas and brackets")
    return LimitedReport.model_validate_json(text)
