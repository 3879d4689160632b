"""The rules of `spec.errors.skip`."""

from __future__ import annotations

from tests.unit.api.manifests import accepted, spec_errors

HERE = "spec.errors.skip"
ONE = {"topic": "flights", "partition": 0, "offset": 42}


def test_a_record_is_listed_once() -> None:
    assert spec_errors({HERE: [ONE, {**ONE, "offset": 43}, ONE]}) == [f"{HERE}: flights-0@42 is listed 2 times"]


def test_a_topic_that_the_sink_does_not_read_is_no_error() -> None:
    assert len(accepted({HERE: [{**ONE, "topic": "other"}]}).spec.errors.skip) == 1
