"""`spec.schemaCompatibility` in a simulation, with the schemas that its records are given with."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.enums import SchemaCompatibility
from sink_job.api.spec import Sink
from tests.unit.simulate.steps import offsets, record, run, sink, write


def with_compatibility(compatibility: str, **sections: Any) -> Sink:
    of = sink(**sections)
    spec = of.spec.model_copy(update={"schema_compatibility": SchemaCompatibility(compatibility)})
    return of.model_copy(update={"spec": spec})


def flight(version: int, **fields: Any) -> dict[str, Any]:
    """A record's schema."""
    return {"name": "Flight", "version": version, "fields": [{"name": "carrier", "type": "string", **fields}]}


def versions(*numbers: int | None) -> dict[str, Any]:
    """A write of records with these versions of a schema; None: without a schema."""
    records = [record(offset, schema=flight(each)) if each else record(offset) for offset, each in enumerate(numbers)]
    return write(*records)


LARGE: dict[str, Any] = {"rotation": {"flushSize": 1000}}


def test_with_compatibility_none_another_version_closes_the_object() -> None:
    (report,) = run(sink(**LARGE), versions(1, 1, 2, 1))
    assert (offsets(report["closed"]), offsets(report["open"])) == ([[0, 1], [2]], [[3]])


def test_with_separate_each_version_has_an_open_object() -> None:
    (report,) = run(with_compatibility("Separate", **LARGE), versions(1, 2, 1, 2))
    assert (offsets(report["closed"]), offsets(report["open"])) == ([], [[0, 2], [1, 3]])


def test_a_record_without_a_schema_closes_objects_with_separate_too() -> None:
    (report,) = run(with_compatibility("Separate", **LARGE), versions(1, 2, None))
    assert (offsets(report["closed"]), offsets(report["open"])) == ([[0], [1]], [[2]])


def test_two_alternating_versions_make_at_most_twice_the_objects_with_separate_and_one_per_record_with_none() -> None:
    steps = [versions(*[1 + n % 2 for n in range(100)])]
    limits: dict[str, Any] = {"rotation": {"flushSize": 10}}
    assert len(run(with_compatibility("Separate", **limits), *steps)[0]["closed"]) == 20
    assert len(run(sink(**limits), *steps)[0]["closed"]) == 99


@pytest.mark.parametrize(
    ("compatibility", "closed", "still_open"),
    [
        ("Backward", [[0]], [[1, 2]]),
        ("Full", [[0]], [[1, 2]]),
        ("Forward", [[0, 1]], [[2]]),
    ],
)
def test_versions_close_objects_or_are_projected(
    compatibility: str, closed: list[list[int]], still_open: list[list[int]]
) -> None:
    first = [1, 2, 1] if compatibility != "Forward" else [2, 3, 1]
    (report,) = run(with_compatibility(compatibility, **LARGE), versions(*first))
    assert (offsets(report["closed"]), offsets(report["open"])) == (closed, still_open)


def test_with_backward_a_version_that_cannot_be_projected_closes_the_object() -> None:
    lacking = {"name": "Flight", "version": 1, "fields": []}
    of = with_compatibility("Backward", **LARGE)
    (report,) = run(of, write(record(0, schema=flight(2)), record(1, schema=lacking)))
    assert offsets(report["closed"]) == [[0]]
    (report,) = run(of, write(record(0, schema=flight(2, default="AA")), record(1, schema=lacking)))
    assert offsets(report["open"]) == [[0, 1]]


def test_a_schema_without_a_version_is_a_data_error_if_versions_are_compared() -> None:
    lacking = {"name": "Flight", "fields": []}
    of = with_compatibility("Backward", errors={"tolerance": "All"}, **LARGE)
    (report,) = run(of, write(record(0, schema=flight(1)), record(1, schema=lacking), record(2, schema=flight(1))))
    assert offsets(report["open"]) == [[0, 2]]
    assert [(each["offset"], "version" in each["message"]) for each in report["errors"]] == [(1, True)]


def test_a_schema_of_an_earlier_write_is_compared() -> None:
    of = with_compatibility("Backward", **LARGE)
    _, report = run(of, write(record(0, schema=flight(1))), write(record(1, schema=flight(2))))
    assert offsets(report["closed"]) == [[0]]


def test_a_tombstone_has_no_schema() -> None:
    of = sink(**LARGE, errors={"onNullValue": "Ignore"})
    (report,) = run(
        of, write(record(0, schema=flight(1)), record(1, None, schema=flight(2)), record(2, schema=flight(1)))
    )
    assert offsets(report["open"]) == [[0, 2]]


WRITE: dict[str, Any] = {"errors": {"onNullValue": "Write"}, "format": {"converter": "ConnectJson", "envelope": True}}


def tombstone(offset: int) -> dict[str, Any]:
    return {**record(offset), "value": None}


@pytest.mark.parametrize(
    ("compatibility", "path", "expected"),
    [
        ("None", None, [[0, 1, 2, 3]]),
        ("Backward", None, [[0, 1, 2, 3]]),
        ("Separate", None, [[0, 2], [1, 3]]),
        ("None", "gone", [[0, 2], [1, 3]]),
    ],
)
def test_a_written_tombstone_closes_nothing(compatibility: str, path: str | None, expected: list[list[int]]) -> None:
    errors = WRITE["errors"] | ({} if path is None else {"tombstonePath": path})
    of = with_compatibility(compatibility, **LARGE, **{**WRITE, "errors": errors})
    first = write(record(0, schema=flight(1)), tombstone(1))
    _, report = run(of, first, write(record(2, schema=flight(1)), tombstone(3)))
    assert (offsets(report["open"]), report["closed"], report["errors"]) == (expected, [], [])


def test_a_written_tombstone_follows_the_schema_of_an_earlier_round() -> None:
    of = sink(**{"rotation": {"flushSize": 2}, **WRITE})
    reports = run(of, write(record(0, schema=flight(1)), record(1, schema=flight(1))), write(tombstone(2)),
                  write(record(3, schema=flight(1))))  # fmt: skip
    assert [offsets(report["closed"]) for report in reports] == [[[0, 1]], [], [[2, 3]]]
