"""The report of a driver as the operator reads it: it costs no more than the reports of other sinks, whoever
answers at the address of the pod."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, ValidationError

from s3sink_operator.kube.kube_api import ResponseTooLarge
from s3sink_operator.reasons import Reason
from s3sink_operator.types import Unreachable
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


def read_report(text: bytes) -> LimitedReport | Unreachable:
    """The report of a response; why it is none for an invalid one, of which pydantic lists up to 30,000 errors."""
    try:
        return parse_report(text)
    except ResponseTooLarge as error:
        return Unreachable(message=str(error), reason=Reason.REPORT_TOO_LARGE)
    except ValidationError as error:
        if any(each["type"] == "too_long" for each in error.errors(include_url=False, include_input=False)):
            limit = f"more than {MAX_REPORTED} topic-partitions, or more than {MAX_SUMS} topics or transactions"
            return Unreachable(message=f"the report has {limit}", reason=Reason.REPORT_TOO_LARGE)
        return Unreachable(message=f"invalid report: {error.error_count()} invalid fields")


def parse_report(text: bytes) -> LimitedReport:
    """The report of a response. The parser takes up to 1 KB for each comma or bracket, whatever field it is in, and
    holds the interpreter's lock: so they are counted first.

    Raises ResponseTooLarge above MAX_MARKS, and pydantic's ValidationError.
    """
    if sum(text.count(mark) for mark in b",[{") > MAX_MARKS:
        raise ResponseTooLarge(f"the report has more than {MAX_MARKS} commas and brackets")
    return LimitedReport.model_validate_json(text)
