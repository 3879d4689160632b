"""Timelines of topic-partitions in HTML: records by time, objects as bars, sizes as a histogram. Needs no other file
and runs no script."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from html import escape
from pathlib import Path
from typing import Final

import numpy as np

from sink_job.api.errors import InvalidSpec
from sink_job.api.topic_partition import TopicPartition
from sink_job.arrow.arrays import Integers
from sink_job.plan.planned_object import PlannedObject

MAX_ROWS: Final = 40
"""Topic-partitions with a timeline, and rows of bars of each."""

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


@dataclass(frozen=True)
class Timelines:
    """Objects and records between two times, in ms since the epoch. `arrivals` are those of the records of each
    topic-partition."""

    start: int
    end: int
    arrivals: Mapping[TopicPartition, Integers]
    objects: Sequence[PlannedObject]

    def topics(self) -> list[str]:
        return sorted({tp.topic for tp in self.arrivals})


def document(title: str, body: str) -> str:
    """A page with this body."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n"
        f"{body}\n</body>\n</html>\n"
    )


def objects_page(title: str, view: Timelines) -> str:
    """A page with the timelines and sizes of all topics."""
    lines = [f"<p>From {time_text(view.start)} to {time_text(view.end)}.</p>"]
    for topic in view.topics():
        lines += [f"<h3>{escape(topic)}</h3>", *timelines(view, topic), *sizes(view, topic)]
    return document(title, "\n".join(lines))


def timelines(view: Timelines, topic: str) -> Iterator[str]:
    """The records by time and the objects of each topic-partition of a topic."""
    tps = sorted(tp for tp in view.arrivals if tp.topic == topic)
    if not tps:
        return
    yield f'<p class="soft">Records by time, and below them the objects of each topic-partition. {_legend()}</p>'
    yield f'<div class="axis"><span>{time_text(view.start)}</span><span>{time_text(view.end)}</span></div>'
    for tp in tps[:MAX_ROWS]:
        yield from _timeline(view, tp)
    if len(tps) > MAX_ROWS:
        yield f'<p class="soft">{len(tps) - MAX_ROWS} more topic-partitions are not shown.</p>'


def _legend() -> str:
    return "A bar begins with the first record and ends where the object became visible; orange ones stay open."


def _timeline(view: Timelines, tp: TopicPartition) -> Iterator[str]:
    start, span = view.start, max(1, view.end - view.start)
    objects = [each for each in view.objects if each.tp == tp]
    objects.sort(key=lambda each: each.opened)
    yield f'<div class="soft">{escape(str(tp))}: {len(view.arrivals[tp]):,} records, {len(objects):,} objects</div>'
    yield _histogram(view.arrivals[tp] - start, span)
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


def sizes(view: Timelines, topic: str) -> Iterator[str]:
    """The sizes of the closed objects of a topic as a histogram."""
    closed = [each for each in view.objects if each.tp.topic == topic and each.visible is not None]
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


def bytes_text(size: float) -> str:
    """A size with decimal units."""
    for limit, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= limit:
            return f"{size / limit:.3g} {unit}"
    return f"{round(size)} B"


def time_text(ms: int) -> str:
    """A time in UTC."""
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def write_page(file: Path, text: str) -> None:
    """Writes a page, and its name to standard error. Raises InvalidSpec if the file cannot be written."""
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InvalidSpec([f"{file} cannot be written: {error.strerror}"]) from None
    print(f"{file}: written", file=sys.stderr)
