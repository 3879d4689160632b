"""The limits of a report that the operator reads, whoever answers at the address of the pod."""

from __future__ import annotations

import json
from typing import Any

import pytest

from s3sink_operator.observe.limited_report import MAX_MARKS, LimitedReport, parse_report, read_report
from s3sink_operator.observe.report_client import MAX_REPORT_BYTES
from s3sink_operator.status import reported_progress
from s3sink_operator.types import Unreachable
from sink_job.api.report import (
    MAX_SUMS,
    MAX_TABLE_MESSAGE,
    MAX_TABLE_NAME,
    MAX_TABLES_SHOWN,
    HangingTransactionReport,
    PartitionReport,
    Report,
    TableReport,
)
from sink_job.api.report_access import MAX_REPORTED
from tests.operator.fake_cluster import report


def many(count: int) -> Report:
    """A report of a driver of `count` topic-partitions of ten topics; the last ones lag most."""
    partitions = [
        PartitionReport(
            topic=f"t{number % 10}", partition=number, committed=1, next=1, end=1 + number, lag=number, lag_ms=9
        )
        for number in range(count)
    ]
    return report().model_copy(update={"partitions": partitions, "assigned_partitions": count})


def test_a_driver_of_many_topic_partitions_reports_the_worst_of_them_and_sums() -> None:
    whole = many(100_000)
    limited = whole.limited(MAX_REPORTED)
    text = limited.model_dump_json(by_alias=True).encode()
    assert len(text) < MAX_REPORT_BYTES
    found = LimitedReport.model_validate_json(text)
    assert {each.lag for each in found.partitions} == set(range(95_000, 100_000))
    progress, expected = reported_progress.progress(found), reported_progress.progress(whole)
    assert progress.lag == expected.lag
    assert progress.most_lagging == expected.most_lagging
    assert [(each.topic, each.partitions, each.lag) for each in progress.topics or ()] == [
        (each.topic, each.partitions, each.lag) for each in expected.topics or ()
    ]


def test_the_largest_report_of_a_driver_is_below_the_limits_of_the_operator() -> None:
    most = 2**63 - 1
    topics = [f"{number:05}".rjust(249, "t") for number in range(MAX_SUMS + 1)]
    partitions = [
        PartitionReport(
            topic=topics[number % len(topics)],
            partition=2**31 - 1 - number,
            committed=most,
            next=most,
            end=most,
            lag=10**14,
            lag_ms=most,
            open_objects=most,
        )
        for number in range(MAX_REPORTED + 1)
    ]
    hanging = [
        HangingTransactionReport(topic=each.topic, partition=each.partition, offset=most, end=most, since=10**14)
        for each in partitions
    ]
    tables = [
        TableReport(table="\u2028" * MAX_TABLE_NAME, topic=topics[0], lag_ms=most, message="\u2028" * MAX_TABLE_MESSAGE)
        for _ in range(MAX_TABLES_SHOWN)
    ]
    whole = report().model_copy(update={"partitions": partitions, "hanging_transactions": hanging, "tables": tables})
    text = whole.limited(MAX_REPORTED).model_dump_json(by_alias=True).encode()
    assert len(text) < MAX_REPORT_BYTES
    found = parse_report(text)
    assert (len(found.partitions), len(found.hanging_transactions)) == (MAX_REPORTED, MAX_SUMS)


@pytest.mark.parametrize("start", [b'{"unknown":[', b'{"hangingTransactions":[', b"["])
@pytest.mark.parametrize("item", [b"[]", b'{"":0}', b"0", b'"",""', b"[[["])
def test_a_report_of_very_many_values_is_not_parsed(start: bytes, item: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LimitedReport, "model_validate_json", lambda _: pytest.fail("the report is parsed"))
    found = read_report(start + b",".join([item] * 100_000) + b"]}")
    assert isinstance(found, Unreachable)
    assert found.reason == "ReportTooLarge"


def test_a_driver_of_few_topic_partitions_reports_all_of_them() -> None:
    assert many(5_000).limited(MAX_REPORTED) == many(5_000)


def document(**changes: Any) -> dict[str, Any]:
    """The JSON of a report."""
    return dict(json.loads(report().model_dump_json(by_alias=True))) | changes


def answer(**changes: Any) -> LimitedReport | Unreachable:
    """What the operator reads of a report with these fields."""
    return read_report(json.dumps(document(**changes)).encode())


def test_a_report_is_read_as_the_driver_wrote_it() -> None:
    found = answer()
    assert isinstance(found, LimitedReport)
    assert found.model_dump() == report().model_dump()


ITEMS: dict[str, tuple[dict[str, Any], int]] = {
    "partitions": ({"topic": "t", "partition": 0, "committed": 1, "next": 1}, MAX_REPORTED),
    "tables": ({"table": "lake.log"}, MAX_TABLES_SHOWN),
    "hangingTransactions": ({"topic": "t", "partition": 0, "offset": 1, "end": 2, "since": 3}, MAX_SUMS),
}


@pytest.mark.parametrize("field", list(ITEMS))
def test_a_list_with_one_item_above_its_limit_is_too_large(field: str) -> None:
    item, limit = ITEMS[field]
    items = [item | {"partition": number} for number in range(limit + 1)]
    assert isinstance(answer(**{field: items[:-1]}), LimitedReport)
    found = answer(**{field: items})
    assert found == Unreachable(
        message=f"the report has more than {MAX_REPORTED} topic-partitions, or more than {MAX_SUMS} topics or "
        "transactions",
        reason="ReportTooLarge",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "invalid report: 1 invalid fields"),
        (b"[]", "invalid report: 1 invalid fields"),
        (b"{" * 1000, "invalid report: 1 invalid fields"),
        (b"\xff\xfe", "invalid report: 1 invalid fields"),
        (json.dumps(document(now="x", epoch="y")).encode(), "invalid report: 2 invalid fields"),
    ],
    ids=["nothing", "list", "brackets", "no UTF-8", "two fields"],
)
def test_an_invalid_report_has_the_number_of_its_errors_and_not_their_list(text: bytes, message: str) -> None:
    found = read_report(text)
    assert isinstance(found, Unreachable)
    assert (found.message, found.reason) == (message, "ReportUnreachable")


@pytest.mark.parametrize("mark", [b",", b"[", b"{"])
def test_commas_and_brackets_are_counted_together_wherever_they_are(mark: bytes) -> None:
    allowed = b'"' + mark * MAX_MARKS + b'"'
    assert isinstance(found := read_report(allowed), Unreachable)
    assert found.reason == "ReportUnreachable"
    assert isinstance(found := read_report(allowed + b","), Unreachable)
    assert found.message == f"the report has more than {MAX_MARKS} commas and brackets"
