"""The division of a run's memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api import memory_budget
from sink_job.api.enums import OutputFormat
from sink_job.api.errors import ConfigurationError
from sink_job.api.sections.format_section import FormatSpec, ParquetSpec
from sink_job.api.units.quantities import GI, MI

cores = st.integers(1, 64)
part_sizes = st.integers(5 * MI, 2 * GI)


def default_budget(cores: int, part_size: int = 25 * MI, most: int = 8 * GI) -> memory_budget.MemoryBudget:
    total = memory_budget.default_total(cores=cores, part_size=part_size, least=512 * MI, most=most)
    return memory_budget.divide(total, cores=cores, part_size=part_size)


def test_two_concurrent_tasks_take_less_than_2_gb() -> None:
    memory = default_budget(2)
    assert memory.total < 2_000_000_000
    assert memory.heap == 512 * MI
    assert memory.part_buffers == 3
    assert memory.budget >= 100 * MI


@given(cores, part_sizes, st.integers(0, 64 * GI))
def test_the_sum_of_all_processes_does_not_exceed_the_total(cores: int, part_size: int, more: int) -> None:
    total = memory_budget.min_total(cores=cores, part_size=part_size) + more
    memory = memory_budget.divide(total, cores=cores, part_size=part_size)
    task = memory.budget + (memory.part_buffers + 1) * part_size + memory_budget.BATCHES
    tree = memory.heap + memory_budget.JVM_BESIDE_HEAP + memory_budget.DRIVER + cores * (memory_budget.WORKER + task)
    assert tree <= total
    assert memory.budget >= memory_budget.MIN_TASK_MEMORY
    assert 1 <= memory.part_buffers <= memory_budget.MAX_PART_BUFFERS


@given(cores, part_sizes)
def test_less_than_the_minimum_memory_is_rejected(cores: int, part_size: int) -> None:
    minimum = memory_budget.min_total(cores=cores, part_size=part_size)
    with pytest.raises(ConfigurationError, match="is too little"):
        memory_budget.divide(minimum - 1, cores=cores, part_size=part_size)


def test_large_parts_increase_the_default_memory() -> None:
    assert default_budget(2, 512 * MI).total > default_budget(2).total


def test_parts_that_do_not_fit_are_rejected_with_the_required_memory() -> None:
    with pytest.raises(
        ConfigurationError, match=r"8Gi is too little for 4 concurrent tasks .*partSize 2Gi: 18248Mi are required"
    ):
        default_budget(4, 2 * GI)


def test_small_parts_are_uploaded_concurrently() -> None:
    assert default_budget(2, 5 * MI).part_buffers == memory_budget.MAX_PART_BUFFERS
    assert default_budget(2, 64 * MI).part_buffers == 1


def test_the_spec_limits_the_default_memory() -> None:
    assert memory_budget.default_total(cores=2, part_size=25 * MI, least=4 * GI, most=8 * GI) == 4 * GI
    assert memory_budget.default_total(cores=16, part_size=25 * MI, least=512 * MI, most=3 * GI) == 3 * GI


PARQUET = FormatSpec(output=OutputFormat.PARQUET, parquet=ParquetSpec(row_group=32 * MI))


def test_a_task_that_writes_parquet_has_memory_for_one_row_group() -> None:
    encoding = memory_budget.encoding_memory(PARQUET)
    assert encoding == memory_budget.PER_ROW_GROUP * 32 * MI
    rows = memory_budget.divide(2 * GI, cores=2, part_size=25 * MI)
    columns = memory_budget.divide(2 * GI, cores=2, part_size=25 * MI, encoding=encoding)
    assert (rows.budget + rows.part_buffers * 25 * MI) - (columns.budget + columns.part_buffers * 25 * MI) == encoding


def test_bloom_filters_need_memory_in_each_task() -> None:
    parquet = ParquetSpec(row_group=32 * MI, bloom_filters=["a", "b"])
    filters = FormatSpec(output=OutputFormat.PARQUET, parquet=parquet)
    added = memory_budget.encoding_memory(filters) - memory_budget.encoding_memory(PARQUET)
    assert added == memory_budget.PER_BLOOM_FILTER * 2 * MI
    assert memory_budget.max_bloom_filter(64 * MI) == 2 * MI
    assert memory_budget.max_bloom_filter(64 * MI - 1) == MI


@pytest.mark.parametrize("cores", [1, 2, 4])
def test_the_default_memory_has_room_for_a_row_group_in_each_task(cores: int) -> None:
    encoding = memory_budget.encoding_memory(PARQUET)
    total = memory_budget.default_total(cores=cores, part_size=25 * MI, encoding=encoding, least=0, most=1 << 60)
    plain = memory_budget.default_total(cores=cores, part_size=25 * MI, least=0, most=1 << 60)
    assert total == plain + cores * encoding
    assert memory_budget.divide(total, cores=cores, part_size=25 * MI, encoding=encoding).budget > 0


def test_too_little_memory_for_a_row_group_is_reported_with_its_setting() -> None:
    encoding = memory_budget.encoding_memory(PARQUET)
    with pytest.raises(ConfigurationError, match=r"160Mi to encode a row group or block: .* or spec\.format\.rowGroup"):
        memory_budget.divide(1 * GI, cores=1, part_size=25 * MI, encoding=encoding)


def test_json_needs_no_memory_to_encode_blocks() -> None:
    assert memory_budget.encoding_memory(FormatSpec()) == 0
