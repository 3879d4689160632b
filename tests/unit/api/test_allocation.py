"""The allocation that the operator writes and the driver reads."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.allocation import Allocation


@given(
    st.integers(1, 10_000), st.integers(1, 2**63 - 1), st.text(st.characters(codec="utf-8"), max_size=5), st.booleans()
)
def test_an_allocation_is_parsed_from_its_text_again(
    executors: int, memory: int, bounds: str, by_defaults: bool
) -> None:
    found = Allocation(executors=executors, memory=memory, bounds=bounds, by_defaults=by_defaults)
    assert Allocation.parse(found.text()) == found


def test_the_text_says_that_defaults_changed_only_if_they_did() -> None:
    assert json.loads(Allocation(executors=1, memory=2).text()) == {"executors": 1, "memory": 2, "bounds": ""}
    assert json.loads(Allocation(executors=1, memory=2, by_defaults=True).text())["by_defaults"] is True


def test_a_field_of_a_later_version_is_ignored() -> None:
    assert Allocation.parse('{"executors": 1, "memory": 2, "later": 3}') == Allocation(executors=1, memory=2)


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "5", "{}", '{"executors": 1}', '{"executors": 0, "memory": 1}', '{"executors": 10001, "memory": 1}'),
        *('{"executors": 1, "memory": 0}', f'{{"executors": 1, "memory": {2**63}}}', '{"executors": 1.5, "memory": 1}'),
    ],
)
def test_another_text_is_no_allocation(text: str) -> None:
    assert Allocation.parse(text) is None
