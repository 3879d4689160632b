"""The position in the properties of a table."""

from __future__ import annotations

import pytest

from sink_job.api.errors import TableNotRegistered
from sink_job.tables.position import TablePosition, as_text, position_in, position_property


def test_a_position_is_read_as_it_was_written() -> None:
    position = TablePosition("ledger", 2, 12_345, 2**62)
    assert position_in({position_property("a.b"): as_text(position)}, "a.b") == position
    assert str(position) == "record 12,345 of generation 2"


def test_each_sink_has_a_property_of_its_own() -> None:
    assert position_in({position_property("one"): as_text(TablePosition("l", 1, 1, 1))}, "other") is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "{}",
        '{"ledger": 1}',
        "[" * 4_000,
        '{"ledger": "' + "x" * 4_096 + '", "generation": 1, "record": 1, "snapshot": 1}',
        '{"ledger": "l", "generation": 1, "record": -1, "snapshot": 1}',
        '{"ledger": "l", "generation": 1, "record": 1, "snapshot": 9223372036854775808}',
        '{"ledger": "\ud800"}',
    ],
    ids=range(9),
)
def test_a_text_that_no_registration_has_written_stops_it(text: str) -> None:
    with pytest.raises(TableNotRegistered, match=r"s3sink\.a\.position"):
        position_in({"s3sink.a.position": text}, "a")
