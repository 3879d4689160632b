"""Shows plans, as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from sink_job.api.units.quantities import format_duration
from sink_job.plan.plan import Plan
from sink_job.plan.sample import Sample
from sink_job.plan.tables import cost_rows, request_rows, side_by_side, topic_rows


def text(plans: Sequence[Plan]) -> str:
    """The figures of all plans side by side, then what to know of each. They are of one sample."""
    return "\n".join(_lines(plans))


def _lines(plans: Sequence[Plan]) -> Iterator[str]:
    sample = plans[0].sample
    span = format_duration(max(1, sample.end - sample.start))
    yield f"Sample: {sample.records:,} records, {span} to {_time(sample)}. Figures of a day are extrapolated from it."
    for number, topic in enumerate(plans[0].figures.topics):
        yield ""
        rows = side_by_side([topic_rows(plan.figures.topics[number]) for plan in plans])
        yield from _table([[topic.topic, *_names(plans)], *rows])
    yield ""
    rows = side_by_side([[*request_rows(plan), *cost_rows(plan)] for plan in plans])
    yield from _table([["requests and cost", *_names(plans)], *rows])
    for plan in plans:
        if plan.findings:
            yield ""
            yield f"{plan.name}:"
            yield from (f"- {each}" for each in plan.findings)


def _names(plans: Sequence[Plan]) -> list[str]:
    return [plan.name for plan in plans]


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for number, row in enumerate(rows):
        first = row[0] if number == 0 else f"  {row[0]}"
        cells = (cell.ljust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        yield "  ".join([first.ljust(widths[0] + 2), *cells]).rstrip()


def _time(sample: Sample) -> str:
    return datetime.fromtimestamp(sample.end / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def as_json(plans: Sequence[Plan]) -> str:
    """One document with a list of plans."""
    return json.dumps(
        {
            "sample": {
                "start": plans[0].sample.start,
                "end": plans[0].sample.end,
                "records": plans[0].sample.records,
            },
            "plans": [
                {
                    "manifest": plan.name,
                    **asdict(plan.figures),
                    "resources": asdict(plan.resources),
                    "cost": {**asdict(plan.cost), "currency": plan.prices.currency},
                    "findings": list(plan.findings),
                }
                for plan in plans
            ],
        },
        indent=2,
        ensure_ascii=False,
    )
