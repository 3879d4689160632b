"""`make demo ARGS=--table` from start to end, with two months of the data set."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.demo import demo_output


@pytest.mark.data
@pytest.mark.spark
def test_the_table_of_a_killed_sink_has_each_record_once(tmp_path: Path) -> None:
    output = demo_output(tmp_path, "--table", "--months", "2")
    assert "kill -9 of all its processes at part 1 of lake/flights/year=2013/" in output
    assert "51,955 flights in 10 objects; the source has 51,955: equal" in output
    assert re.search(r"51,955 rows after [1-9] commits; the source has 51,955: equal", output)
