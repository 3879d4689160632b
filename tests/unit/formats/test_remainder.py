"""The three kinds of bytes of a remainder keep their order and their names."""

from __future__ import annotations

from sink_job.formats.remainder import Remainder

ABC = Remainder("a", "b", "c")


def test_the_values_come_in_the_order_of_the_fields() -> None:
    assert list(ABC) == ["a", "b", "c"]
    assert Remainder(blocks="a", partial_block="b", index="c") == ABC


def test_a_function_gets_each_value_in_order() -> None:
    calls: list[str] = []

    def call(value: str) -> str:
        calls.append(value)
        return value.upper()

    assert ABC.map(call) == Remainder("A", "B", "C")
    assert calls == ["a", "b", "c"]


def test_values_of_the_same_kind_are_combined() -> None:
    assert ABC.combine(Remainder(1, 2, 3), lambda text, count: f"{text}{count}") == Remainder("a1", "b2", "c3")


def test_a_dict_has_the_names_of_the_fields() -> None:
    assert Remainder(**ABC.as_dict()) == ABC
    assert ABC.as_dict() == {"blocks": "a", "partial_block": "b", "index": "c"}
