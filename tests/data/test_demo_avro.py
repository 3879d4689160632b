"""`make demo ARGS=--avro` from start to end, with two months of the data set."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.demo import demo_output


@pytest.mark.data
@pytest.mark.spark
def test_two_versions_of_a_schema_by_turns_make_one_object_each_for_a_path(tmp_path: Path) -> None:
    output = demo_output(tmp_path, "--avro", "--months", "2")
    assert "in the registry: flights-value, version 2, schema id 2, with the new optional field weather" in output
    assert "kill -9 of all its processes at part 1 of lake/flights/year=2013/" in output
    assert "51,955 flights in 20 objects; the source has 51,955: equal" in output
    assert "with Separate: 20 objects, one for each path, partition and version" in output
