"""The rows of a plan."""

from __future__ import annotations

import pytest

from sink_job.plan.plan import make_plan
from sink_job.plan.prices import DEFAULT
from sink_job.plan.tables import Row, cost_rows, side_by_side, topic_rows
from sink_job.plan.timeline import bytes_text
from tests.unit.plan.samples import partition, sample, sink


@pytest.mark.parametrize(("size", "text"), [(0, "0 B"), (999, "999 B"), (1_500, "1.5 kB"), (2.5e9, "2.5 GB")])
def test_sizes_have_decimal_units(size: float, text: str) -> None:
    assert bytes_text(size) == text


def test_rows_that_one_plan_lacks_have_a_dash() -> None:
    assert side_by_side([[Row("a", "1"), Row("b", "2")], [Row("a", "3")]]) == [["a", "1", "3"], ["b", "2", "-"]]


def test_a_topic_without_objects_has_dashes() -> None:
    planned = make_plan("sink.yaml", sink(), sample({}, of=1), DEFAULT, None)
    rows = dict(topic_rows(planned.figures.topics[0]))
    assert rows["object size, p5 / p50 / p95"] == "-"
    assert rows["closed by"] == "-"


def test_estimated_objects_are_marked() -> None:
    planned = make_plan(
        "sink.yaml", sink(rotation={"scheduleInterval": "1h"}), sample({0: partition([0])}), DEFAULT, None
    )
    assert dict(topic_rows(planned.figures.topics[0]))["objects a day"] == "about 24"


def test_the_source_of_the_prices_is_shown() -> None:
    planned = make_plan("sink.yaml", sink(), sample({0: partition([0])}), DEFAULT, None)
    assert "us-east-1" in dict(cost_rows(planned))["prices"]
