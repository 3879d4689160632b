"""A page of HTML for plans: what to know of each, the figures and timelines of its topics, requests and costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from sink_job.api.units.quantities import format_duration
from sink_job.plan.plan import Plan
from sink_job.plan.tables import Row, cost_rows, request_rows, topic_rows
from sink_job.plan.timeline import Timelines, document, sizes, time_text, timelines


def page(plans: Sequence[Plan]) -> str:
    """The page. All plans are of one sample."""
    lines = [_about(plans[0]), *(line for plan in plans for line in _plan(plan))]
    return document("s3sink plan", "\n".join(lines))


def _about(plan: Plan) -> str:
    sample = plan.sample
    return (
        f"<p>{sample.records:,} records from {time_text(sample.start)} to {time_text(sample.end)} "
        f"({format_duration(max(1, sample.end - sample.start))}). Figures of a day are extrapolated from them.</p>"
    )


def _plan(plan: Plan) -> Iterator[str]:
    view = Timelines(
        plan.sample.start,
        plan.sample.end,
        {tp: each.arrivals for tp, each in plan.sample.partitions.items()},
        [*plan.replay.closed, *plan.replay.open],
    )
    yield f"<h2>{escape(plan.name)}</h2>"
    if plan.findings:
        yield "<ul>" + "".join(f'<li class="note">{escape(each)}</li>' for each in plan.findings) + "</ul>"
    for topic in plan.figures.topics:
        yield f"<h3>{escape(topic.topic)}</h3>"
        yield _table(topic_rows(topic))
        yield from timelines(view, topic.topic)
        yield from sizes(view, topic.topic)
    yield "<h3>Requests and cost</h3>"
    yield _table(request_rows(plan))
    yield _table(cost_rows(plan))


def _table(rows: Sequence[Row]) -> str:
    lines = "".join(f"<tr><td>{escape(row.name)}</td><td>{escape(row.value)}</td></tr>" for row in rows)
    return f'<div class="wide"><table>{lines}</table></div>'
