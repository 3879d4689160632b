"""The rows of a plan, for the text and for the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from sink_job.api.units.quantities import MI, format_duration
from sink_job.plan.plan import Plan
from sink_job.plan.prices import DAYS
from sink_job.plan.statistics import Spread, TopicFigures
from sink_job.plan.timeline import bytes_text


class Row(NamedTuple):
    """The name of a figure and its text."""

    name: str
    value: str


def topic_rows(topic: TopicFigures) -> list[Row]:
    """The figures of one topic."""
    about = "about " if topic.estimated else ""
    rows = [
        Row("partitions read", f"{topic.read:,} of {topic.partitions:,}"),
        Row("records in the sample", f"{topic.records:,}"),
        Row("records a day", f"{topic.records_a_day:,}"),
        Row("bytes of rows a day", bytes_text(topic.bytes_a_day)),
        Row("bytes stored a day", bytes_text(topic.stored_a_day)),
        Row("objects a day", f"{about}{topic.objects_a_day:,}"),
        Row("object size, p5 / p50 / p95", _spread(topic.size, bytes_text)),
        Row("until visible, p5 / p50 / p95", _spread(topic.delay, _duration)),
        Row("open objects, most at a time", f"{topic.peak_open:,}"),
        Row("paths", f"{topic.paths:,}"),
        Row("closed by", "; ".join(f"{name} {count:,}" for name, count in topic.reasons.items()) or "-"),
    ]
    optional = {
        "late records": topic.late,
        "objects below 1 MiB": topic.small,
        "rejected records": topic.rejected,
        "dropped null values": topic.ignored,
        "filtered records": topic.filtered,
    }
    return rows + [Row(name, f"{count:,}") for name, count in optional.items() if count]


def request_rows(plan: Plan) -> list[Row]:
    """S3 requests a day by operation."""
    return [Row(f"{name} a day", f"{count:,}") for name, count in plan.figures.requests_a_day.items() if count]


def cost_rows(plan: Plan) -> list[Row]:
    """What a month costs, and the resources."""
    prices, given = plan.prices, plan.resources
    plural = "" if given.executors == 1 else "s"
    executors = f"{given.executors} executor{plural} of " if given.executors else "one pod (Local mode) of "
    source = ", ".join(each for each in (prices.source, prices.date) if each)
    return [
        Row(f"requests in {DAYS} days", f"{plan.cost.requests:,.2f} {prices.currency}"),
        Row(f"storage of {DAYS} days, a month", f"{plan.cost.storage:,.2f} {prices.currency}"),
        Row("prices", source or "of --prices"),
        Row("memory", f"{executors}{given.memory // MI:,} MiB"),
    ]


def side_by_side(tables: Sequence[Sequence[Row]]) -> list[list[str]]:
    """Rows of several plans with the same names in one line: the name, then the value of each plan."""
    names = dict.fromkeys(row.name for table in tables for row in table)
    values = [dict(table) for table in tables]
    return [[name, *(each.get(name, "-") for each in values)] for name in names]


def _duration(ms: float) -> str:
    return format_duration(max(1000, round(ms / 1000) * 1000)) if ms >= 1000 else f"{round(ms)}ms"


def _spread(spread: Spread | None, text: Callable[[float], str]) -> str:
    if spread is None:
        return "-"
    return " / ".join(text(each) for each in (spread.p5, spread.p50, spread.p95))
