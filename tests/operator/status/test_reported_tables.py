"""The tables in the status."""

from __future__ import annotations

from s3sink_operator.status.reported_tables import tables
from sink_job.api.report import TableReport


def test_a_table_has_position_lag_and_the_time_of_the_last_commit() -> None:
    report = TableReport(table="lake.log", topic="log", generation=2, record=40, registered_at=1_000, skipped_objects=3)
    found = (tables([report]) or [])[0]
    assert (found.name, found.topic, found.lag_objects, found.lag_seconds) == ("lake.log", "log", 0, 0)
    assert found.position is not None
    assert (found.position.generation, found.position.record, found.last_commit_time) == (2, 40, 1_000)
    assert (found.error, found.skipped_objects) == (None, 3)


def test_a_table_without_a_position_has_its_error() -> None:
    report = TableReport(table="lake.{topic}", lag_objects=3, lag_ms=61_900, reason="TransientError", message="down")
    found = (tables([report]) or [])[0]
    assert (found.topic, found.position, found.lag_objects, found.lag_seconds) == (None, None, 3, 61)
    assert found.error is not None
    assert (found.error.reason, found.error.message) == ("TransientError", "down")


def test_a_sink_without_tables_has_none() -> None:
    assert tables([]) is None
