"""The text of plans."""

from __future__ import annotations

from sink_job.cli.plan_output import text
from sink_job.plan.plan import make_plan
from sink_job.plan.prices import DEFAULT
from tests.unit.plan.samples import partition, sample, sink


def test_columns_of_two_plans_are_aligned_below_the_names_of_their_manifests() -> None:
    given = sample({0: partition([0] * 100)})
    one, other = (make_plan(name, sink(), given, DEFAULT, None) for name in ("one.yaml", "a-long-name.yaml"))
    lines = text([one, other]).splitlines()
    head = next(line for line in lines if line.startswith("t "))
    row = next(line for line in lines if line.startswith("  records a day"))
    assert row.index("14,400") == head.index("one.yaml")
    assert row.rindex("14,400") == head.index("a-long-name.yaml")
    assert all(line == line.rstrip() for line in lines)


def test_what_to_know_of_a_plan_has_its_name_above() -> None:
    planned = make_plan("one.yaml", sink(), sample({}, of=1), DEFAULT, None)
    assert "\none.yaml:\n- t: no record in the sample." in text([planned])
