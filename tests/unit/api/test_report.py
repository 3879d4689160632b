"""The report: serialization, compatibility across versions, and the final report after the end of the driver."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from sink_job.api.errors import DataError, TopicNotFound
from sink_job.api.report import Failure, FinalReport, PartitionReport, Report, RunState, Totals

REPORT = Report(
    sink_id="default.flights",
    name="flights",
    namespace="default",
    state=RunState.RUNNING,
    epoch=7,
    round=12,
    now=1_700_000_000_000,
    started_at=1_699_999_000_000,
    partitions=[
        PartitionReport(topic="flights", partition=3, committed=270, next=290, end=300, lag=30, open_objects=1)
    ],
    totals=Totals(records=290, objects=3),
)


def test_a_report_is_parsed_without_loss() -> None:
    assert Report.model_validate_json(REPORT.model_dump_json()) == REPORT


def test_a_report_uses_camel_case() -> None:
    written = json.loads(REPORT.model_dump_json())
    assert (written["sinkId"], written["startedAt"]) == ("default.flights", 1_699_999_000_000)
    assert written["partitions"][0]["openObjects"] == 1


def test_an_older_reader_ignores_unknown_fields() -> None:
    newer = REPORT.model_dump(mode="json") | {"mood": "good"}
    assert Report.model_validate_json(json.dumps(newer)) == REPORT


def test_a_failure_has_the_reason_and_position_of_its_error() -> None:
    error = DataError("flights", 3, 180, "not JSON")
    assert Failure.of(error) == Failure(
        reason="DataError",
        message=str(error),
        exit_code=4,
        topic="flights",
        partition=3,
        offset=180,
    )


def test_a_failure_without_a_position_has_none() -> None:
    assert Failure.of(TopicNotFound("there is no topic flights: create it")).topic is None


@pytest.mark.parametrize(
    ("error", "message"),
    [(KeyError("a"), "KeyError: 'a'"), (RuntimeError(), "RuntimeError"), (ValueError("x: "), "ValueError: x")],
)
def test_an_unexpected_failure_contains_its_type_and_message(error: Exception, message: str) -> None:
    assert Failure.of(error) == Failure(reason="InternalError", message=message, exit_code=1)


@given(st.text(max_size=9000))
def test_a_termination_message_fits_into_4_kib_and_keeps_the_totals(message: str) -> None:
    failure = Failure(reason="DataLoss", message=message, exit_code=5)
    text = REPORT.model_copy(update={"failure": failure}).final().termination_message()
    ending = FinalReport.model_validate_json(text)
    assert len(text.encode()) <= 4096
    assert (ending.totals, ending.epoch, ending.round) == (REPORT.totals, 7, 12)
    assert ending.failure is not None
    assert ending.failure.reason == "DataLoss"


def test_a_short_message_is_not_shortened() -> None:
    ending = FinalReport(failure=Failure(reason="DataLoss", message="gone", exit_code=5))
    assert FinalReport.model_validate_json(ending.termination_message()) == ending


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"lastPublish": 10**17}, id="a time after the year 9999"),
        pytest.param({"now": -1}, id="a negative time"),
        pytest.param({"round": 2**70}, id="a number above 63 bits"),
        pytest.param({"totals": {"objects": -1}}, id="a negative count"),
        pytest.param({"partitions": [REPORT.partitions[0].model_dump()] * 2}, id="a duplicate topic-partition"),
        pytest.param(
            {"stuck": [{"topic": "t" * 250, "partition": 0, "offset": 1, "end": 2, "since": 3}]},
            id="a topic name that is too long",
        ),
    ],
)
def test_an_invalid_report_is_rejected(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        Report.model_validate_json(json.dumps(REPORT.model_dump(mode="json") | wrong))
