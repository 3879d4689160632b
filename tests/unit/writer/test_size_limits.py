"""Objects that are closed because their encoded bytes reach a limit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sink_job.api.enums import OutputFormat
from sink_job.api.memory_budget import PER_INDEX, encoding_memory, max_index
from sink_job.api.sections.format_section import FormatSpec, ParquetSpec
from sink_job.api.units.quantities import MI
from sink_job.writer import size_limits
from sink_job.writer.size_limits import EncodedSize, SizeLimits, check_ranges, is_checked
from tests.unit.rotation.settings import object_settings
from tests.unit.writer.test_containers import PART, partition
from tests.unit.writer.test_projection import ONE, ProjectingPartition

PARTS = 6
EVERY = 4
FLUSH_SIZE = {"flushSize": 100_000}


@pytest.fixture(autouse=True)
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects of few parts, all of which are checked at each multiple of EVERY offsets."""
    monkeypatch.setattr(size_limits, "MAX_ENCODED_PARTS", PARTS)
    monkeypatch.setattr(size_limits, "CHECK_EVERY", EVERY)
    monkeypatch.setattr(SizeLimits, "is_near", lambda self, size: True)


def written(output: OutputFormat, rounds: list[int], scope: str) -> ProjectingPartition:
    one = partition(output, [ONE], rotation={**FLUSH_SIZE, "scope": scope})
    at = 0
    for count in rounds:
        one.round(0, [ONE.data(n) for n in range(at, at + count)])
        at += count
    one.round(0, [], close=True)
    return one


@pytest.mark.parametrize("scope", ["Partition", "Object"])
@pytest.mark.parametrize("output", [OutputFormat.AVRO, OutputFormat.PARQUET])
def test_an_object_is_closed_when_its_encoded_bytes_fill_the_parts(output: OutputFormat, scope: str) -> None:
    one = written(output, [900], scope)
    assert len(one.named) > 2
    by_path: dict[str, list[int]] = {}
    for o in one.named:
        assert sum(part.size for part in o.parts) < (PARTS + 4) * PART
        by_path.setdefault(o.path, []).append(o.first)
    assert sum(o.offsets.count for o in one.named) == 900
    if scope == "Partition":
        assert all(first % EVERY == 0 for first in by_path[one.named[0].path])


@settings(max_examples=20)  # an example writes some hundred records twice
@given(
    output=st.sampled_from([OutputFormat.AVRO, OutputFormat.PARQUET]),
    scope=st.sampled_from(["Partition", "Object"]),
    rounds=st.lists(st.integers(0, 150), min_size=1, max_size=6),
)
def test_the_ends_of_large_objects_do_not_depend_on_rounds(output: OutputFormat, scope: str, rounds: list[int]) -> None:
    whole, divided = written(output, [sum(rounds)], scope), written(output, rounds, scope)
    assert [(o.key, divided.content(o)) for o in divided.named] == [(o.key, whole.content(o)) for o in whole.named]


@settings(max_examples=20)
@given(
    output=st.sampled_from([OutputFormat.AVRO, OutputFormat.PARQUET]), rounds=st.lists(st.integers(0, 90), max_size=4)
)
def test_the_size_of_an_open_object_is_that_of_its_writer(output: OutputFormat, rounds: list[int]) -> None:
    one = partition(output, [ONE], rotation=FLUSH_SIZE)
    for count in rounds:
        one.round(0, [ONE.data(one.state.next + n) for n in range(count)])
    for o in one.state.open:
        found = EncodedSize.of(o)
        assert found.blocks == sum(part.size for part in o.parts) + sum(each.length for each in o.blocks)
        assert (found.index > 0) == (output is OutputFormat.PARQUET and found.blocks > 0)


def test_the_indexes_of_row_groups_close_an_object() -> None:
    limits = SizeLimits(total=1000, index=10)
    assert limits.is_reached(EncodedSize(5, 10))
    assert limits.is_reached(EncodedSize(993, 7))
    assert not limits.is_reached(EncodedSize(900, 9))
    assert not SizeLimits(total=1000, index=0).is_reached(EncodedSize(999, 0))


def test_outputs_of_lines_have_no_limit_of_encoded_bytes() -> None:
    assert SizeLimits.of(object_settings(rotation=FLUSH_SIZE)) is None


def test_rows_are_checked_where_their_offsets_pass_a_multiple() -> None:
    offsets = np.array([1, 3, 4, 9, 10, 16])
    assert list(check_ranges(offsets)) == [(0, 2), (2, 3), (3, 5), (5, 6)]
    assert list(check_ranges(offsets[:0])) == []
    assert [is_checked(3, next_offset) for next_offset in (3, 4, 9)] == [False, True, True]


@pytest.mark.parametrize("row_group", [MI, 64 * MI, 512 * MI])
def test_a_task_has_the_memory_for_the_footer(row_group: int) -> None:
    parquet = ParquetSpec(row_group=row_group)
    settings = FormatSpec(output=OutputFormat.PARQUET, parquet=parquet)
    assert encoding_memory(settings) >= PER_INDEX * max_index(parquet)
