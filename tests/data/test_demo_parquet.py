"""`make demo ARGS=--parquet` from start to end, with two months of the data set."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.demo import demo_output


@pytest.mark.data
@pytest.mark.spark
def test_json_with_a_schema_becomes_parquet_objects_with_the_same_sums(tmp_path: Path) -> None:
    output = demo_output(tmp_path, "--parquet", "--months", "2")
    assert "kill -9 of all its processes at part 1 of lake/flights/year=2013/" in output
    assert "10 objects, 51,955 records" in output
    assert "51,955 flights in 10 objects; the source has 51,955: equal" in output
