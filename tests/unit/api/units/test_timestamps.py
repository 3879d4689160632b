"""Timestamps of offset resets: RFC 3339 beside milliseconds."""

from __future__ import annotations

import pytest

from sink_job.api.errors import InvalidSpec
from sink_job.api.sections.operator_sections import OffsetResetSpec
from sink_job.api.units.timestamps import MAX_TIMESTAMP, parse_timestamp
from sink_job.maintenance.reset_targets import request_digest
from tests.unit.api.manifests import accepted


def reset(timestamp: object) -> OffsetResetSpec:
    request = {"nonce": "1", "to": "Timestamp", "timestamp": timestamp}
    found = accepted({"spec.offsets.reset": request}).spec.offsets.reset
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("2025-11-03T10:00:00Z", 1_762_164_000_000),
        ("2025-11-03T12:30:00+02:30", 1_762_164_000_000),
        ("2025-11-03t10:00:00.1234z", 1_762_164_000_123),
        ("2025-11-03T10:00:00.123456789Z", 1_762_164_000_123),
    ],
)
def test_a_time_is_read_as_milliseconds(text: str, ms: int) -> None:
    assert parse_timestamp(text) == ms
    assert reset(text).timestamp == ms


def test_a_time_and_its_milliseconds_are_the_same_request() -> None:
    assert request_digest(reset("2025-11-03T10:00:00Z")) == request_digest(reset(1_762_164_000_000))


@pytest.mark.parametrize(
    "wrong",
    [
        "soon", "", "1762164000000", "2025-11-03", "2025-11-03T10:00:00", "2025-11-03 10:00:00Z",
        "2025-13-03T10:00:00Z", "2025-11-03T10:00:60Z", "1969-12-31T23:59:59Z", -1, MAX_TIMESTAMP + 1, True, 1.5,
    ],
)  # fmt: skip
def test_what_is_no_time_is_rejected_with_the_field(wrong: object) -> None:
    with pytest.raises(InvalidSpec, match=r"spec\.offsets\.reset\.timestamp"):
        reset(wrong)
