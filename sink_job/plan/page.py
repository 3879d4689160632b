"""A page of HTML for plans: a timeline of each topic-partition, sizes, requests and costs. It needs no other file and
runs no script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from typing import Final

import numpy as np

from sink_job.api.topic_partition import TopicPartition
from sink_job.api.units.quantities import format_duration
from sink_job.arrow.arrays import Integers
from sink_job.plan.plan import Plan
from sink_job.plan.replay import PlannedObject
from sink_job.plan.tables import Row, bytes_text, cost_rows, request_rows, topic_rows

MAX_ROWS: Final = 40
"""Topic-partitions of a plan with a timeline."""

MAX_BARS: Final = 400
"""Objects of a topic-partition with a bar."""

BINS: Final = 60
_EDGES: Final = [1 << power for power in range(10, 32, 2)]

_STYLE: Final = """
:root { color-scheme: light dark; --text: #1d2430; --soft: #5b6573; --line: #d5dae1; --ground: #fff; --shade: #f4f6f8;
  --closed: #2f6fbd; --open: #c77700; --records: #7a8798; --note: #8a5a00; }
@media (prefers-color-scheme: dark) { :root { --text: #e3e7ed; --soft: #9aa5b3; --line: #39424e; --ground: #14181d;
  --shade: #1d232a; --closed: #6ea8ec; --open: #f0a94a; --records: #76828f; --note: #f0b95c; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 70rem; padding: 1rem; color: var(--text); background: var(--ground);
  font: 15px/1.45 system-ui, sans-serif; }
h1 { font-size: 1.4rem; } h2 { font-size: 1.15rem; margin-top: 2rem; } h3 { font-size: 1rem; margin-bottom: .3rem; }
p, li { max-width: 48rem; } .soft { color: var(--soft); } li.note { color: var(--note); }
.wide { overflow-x: auto; }
table { border-collapse: collapse; } th, td { text-align: right; padding: .2rem .6rem; border-bottom: 1px solid
  var(--line); vertical-align: top; overflow-wrap: anywhere; } th:first-child, td:first-child { text-align: left; }
.track { position: relative; height: 1.5rem; background: var(--shade); margin: 2px 0 6px; overflow: hidden; }
.bar { position: absolute; top: 2px; bottom: 2px; min-width: 2px; background: var(--closed); color: var(--ground);
  border-left: 1px solid var(--ground); font-size: .7rem; line-height: 1.2rem; overflow: hidden; white-space: nowrap;
  padding-left: 2px; }
.bar.open { background: var(--open); }
.bins { display: flex; align-items: flex-end; height: 2.2rem; gap: 1px; }
.bins div { flex: 1; background: var(--records); }
.sizes { display: grid; grid-template-columns: minmax(6rem, max-content) 1fr max-content; gap: .15rem .6rem; }
.sizes .length { background: var(--closed); height: 1rem; align-self: center; min-width: 1px; }
.axis { display: flex; justify-content: space-between; color: var(--soft); font-size: .8rem; }
"""


def page(plans: Sequence[Plan]) -> str:
    """The page. All plans are of one sample."""
    body = "\n".join(line for plan in plans for line in _plan(plan))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>s3sink plan</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>s3sink plan</h1>\n"
        f"{_about(plans[0])}\n{body}\n</body>\n</html>\n"
    )


def _about(plan: Plan) -> str:
    sample = plan.sample
    return (
        f"<p>{sample.records:,} records from {_time(sample.start)} to {_time(sample.end)} "
        f"({format_duration(max(1, sample.end - sample.start))}). Figures of a day are extrapolated from them.</p>"
    )


def _plan(plan: Plan) -> Iterator[str]:
    yield f"<h2>{escape(plan.name)}</h2>"
    if plan.findings:
        yield "<ul>" + "".join(f'<li class="note">{escape(each)}</li>' for each in plan.findings) + "</ul>"
    for topic in plan.figures.topics:
        yield f"<h3>{escape(topic.topic)}</h3>"
        yield _table(topic_rows(topic))
        yield from _timelines(plan, topic.topic)
        yield from _sizes([each for each in plan.replay.closed if each.tp.topic == topic.topic])
    yield "<h3>Requests and cost</h3>"
    yield _table(request_rows(plan))
    yield _table(cost_rows(plan))


def _table(rows: Sequence[Row]) -> str:
    lines = "".join(f"<tr><td>{escape(row.name)}</td><td>{escape(row.value)}</td></tr>" for row in rows)
    return f'<div class="wide"><table>{lines}</table></div>'


def _timelines(plan: Plan, topic: str) -> Iterator[str]:
    tps = sorted(tp for tp in plan.sample.partitions if tp.topic == topic)
    if not tps:
        return
    yield f'<p class="soft">Records by time, and below them the objects of each topic-partition. {_legend()}</p>'
    yield f'<div class="axis"><span>{_time(plan.sample.start)}</span><span>{_time(plan.sample.end)}</span></div>'
    for tp in tps[:MAX_ROWS]:
        yield from _timeline(plan, tp)
    if len(tps) > MAX_ROWS:
        yield f'<p class="soft">{len(tps) - MAX_ROWS} more topic-partitions are not shown.</p>'


def _legend() -> str:
    return "A bar begins with the first record and ends where the object became visible; orange ones stay open."


def _timeline(plan: Plan, tp: TopicPartition) -> Iterator[str]:
    start, span = plan.sample.start, max(1, plan.sample.end - plan.sample.start)
    objects = [each for each in (*plan.replay.closed, *plan.replay.open) if each.tp == tp]
    objects.sort(key=lambda each: each.opened)
    yield f'<div class="soft">{escape(str(tp))}: {plan.replay.records[tp]:,} records, {len(objects):,} objects</div>'
    yield _histogram(plan.sample.partitions[tp].arrivals - start, span)
    shown = objects if len(objects) <= MAX_BARS else objects[:: -(-len(objects) // MAX_BARS)]
    for path in sorted({each.path for each in shown})[:MAX_ROWS]:
        bars = "".join(_bar(each, start, span) for each in shown if each.path == path)
        yield f'<div class="track" role="list">{bars}</div>'
    if len(shown) < len(objects):
        yield f'<p class="soft">{len(shown)} of {len(objects):,} objects are shown.</p>'


def _histogram(arrivals: Integers, span: int) -> str:
    counts, _ = np.histogram(arrivals, bins=BINS, range=(0, span))
    most = max(1, int(counts.max()))
    bins = "".join(
        f'<div style="height:{round(100 * count / most)}%" title="{count:,} records"></div>' for count in counts
    )
    return f'<div class="bins" aria-hidden="true">{bins}</div>'


def _bar(each: PlannedObject, start: int, span: int) -> str:
    end = start + span if each.visible is None else each.visible
    left = min(100.0, max(0.0, 100 * (each.opened - start) / span))
    width = max(0.0, min(100.0 - left, 100 * (end - each.opened) / span))
    why = "stays open" if each.reason is None else f"closed by {each.reason.value}"
    text = (
        f"{each.path or 'no path'}, offsets {each.first} to {each.last}: {each.records:,} records, "
        f"{bytes_text(each.bytes)}, {why}"
    )
    label = "open" if each.reason is None else each.reason.value
    kind = "bar open" if each.visible is None else "bar"
    return (
        f'<div class="{kind}" role="listitem" style="left:{left:.3f}%;width:{width:.3f}%" title="{escape(text)}" '
        f'aria-label="{escape(text)}">{escape(label)}</div>'
    )


def _sizes(closed: Sequence[PlannedObject]) -> Iterator[str]:
    """The sizes of objects as a histogram."""
    if not closed:
        return
    counts = Counter(next((edge for edge in _EDGES if each.bytes <= edge), _EDGES[-1]) for each in closed)
    most = max(counts.values())
    rows = "".join(
        f"<span>up to {bytes_text(edge)}</span>"
        f'<span class="length" style="width:{100 * counts[edge] / most:.1f}%"></span><span>{counts[edge]:,}</span>'
        for edge in _EDGES
        if min(counts) <= edge <= max(counts)
    )
    yield f'<p class="soft">Sizes of the {len(closed):,} closed objects</p><div class="sizes">{rows}</div>'


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
