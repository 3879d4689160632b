"""How many sinks a rollout may make unavailable."""

from __future__ import annotations

import pytest

from s3sink_operator.rollout.sink_rollout import MaxUnavailable


@pytest.mark.parametrize(
    ("text", "sinks", "expected"), [("1", 1000, 1), ("10%", 1000, 100), ("10%", 3, 1), ("25%", 7, 1), ("100%", 7, 7)]
)
def test_the_number_of_sinks_that_may_be_unavailable(text: str, sinks: int, expected: int) -> None:
    assert MaxUnavailable.parse(text).of(sinks) == expected


@pytest.mark.parametrize("text", ["0", "0%", "-1", "101%", "", "%", "1.5", "ten"])
def test_an_invalid_number_of_unavailable_sinks_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="neither a number of sinks"):
        MaxUnavailable.parse(text)
