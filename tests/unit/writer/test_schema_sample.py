"""The values from which a schema is inferred: which of the range, and how many."""

from __future__ import annotations

import pyarrow as pa
import pytest

from sink_job.api.sections.schema_section import INFERRED_ID
from sink_job.writer import schema_sample
from sink_job.writer.schema_sample import SchemaSample


def values(*texts: str | None) -> pa.BinaryArray:
    return pa.array([None if text is None else text.encode() for text in texts], pa.binary())


def numbers(count: int) -> pa.BinaryArray:
    return values(*(f'{{"n{n}": 1}}' for n in range(count)))


def fields(sample: SchemaSample) -> str:
    """What the sample has observed, as text that names each field."""
    return repr(sample.observed)


def is_observed(sample: SchemaSample, *names: str) -> list[bool]:
    return [f"'{name}'" in fields(sample) for name in names]


@pytest.mark.parametrize("unresolved", [(), ("7",), ("7", "8")])
def test_without_an_inferred_schema_nothing_is_observed(unresolved: tuple[str, ...]) -> None:
    sample = SchemaSample()
    sample.add(values('{"a": 1}'), unresolved)
    assert sample.observed is None


def test_the_objects_of_all_batches_are_observed() -> None:
    sample = SchemaSample()
    sample.add(values('{"a": 1}', '{"b": 1}'), ("7", INFERRED_ID))
    sample.add(values('{"c": 1}'), (INFERRED_ID,))
    assert is_observed(sample, "a", "b", "c", "d") == [True, True, True, False]


@pytest.mark.parametrize("text", [None, "", "[1]", "1", "null", "{", '{"a": 1'])
def test_values_that_are_no_objects_are_not_observed(text: str | None) -> None:
    sample = SchemaSample()
    sample.add(values(text, '{"b": 1}'), (INFERRED_ID,))
    assert is_observed(sample, "a", "b") == [False, True]


@pytest.mark.parametrize("batches", [1, 2, 5])
def test_the_sample_ends_after_the_maximum_number_of_values(monkeypatch: pytest.MonkeyPatch, batches: int) -> None:
    monkeypatch.setattr(schema_sample, "MAX_RECORDS", 3)
    sample = SchemaSample()
    size = 5 // batches
    for start in range(0, 5, size):
        sample.add(numbers(5).slice(start, size), (INFERRED_ID,))
    assert is_observed(sample, "n0", "n1", "n2", "n3", "n4") == [True, True, True, False, False]


def test_tombstones_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_sample, "MAX_RECORDS", 1)
    sample = SchemaSample()
    sample.add(values(None, None, '{"a": 1}', '{"b": 1}'), (INFERRED_ID,))
    assert is_observed(sample, "a", "b") == [True, False]


@pytest.mark.parametrize(("limit", "second"), [(8, False), (9, True)])
def test_the_sample_ends_with_the_value_that_reaches_the_maximum_size(
    monkeypatch: pytest.MonkeyPatch, limit: int, second: bool
) -> None:
    monkeypatch.setattr(schema_sample, "MAX_BYTES", limit)
    sample = SchemaSample()
    sample.add(values('{"a": 1}', '{"b": 1}', '{"c": 1}'), (INFERRED_ID,))
    assert is_observed(sample, "a", "b", "c") == [True, second, False]
