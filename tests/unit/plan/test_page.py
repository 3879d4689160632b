"""The page of a plan: a bar for each object, and nothing of a hostile name is markup."""

from __future__ import annotations

from html.parser import HTMLParser

from sink_job.plan.page import page
from sink_job.plan.plan import Plan, make_plan
from sink_job.plan.prices import DEFAULT
from sink_job.plan.timeline import MAX_BARS
from tests.unit.plan.samples import MINUTE, partition, sample, sink


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta",):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def _tags(text: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = _Tags()
    parser.feed(text)
    assert not parser.open
    return parser.tags


def _bars(text: str) -> list[dict[str, str | None]]:
    return [found for _, found in _tags(text) if (found.get("class") or "").startswith("bar")]


def _plan(stamps: list[int], values: list[bytes | None] | None = None, name: str = "sink.yaml") -> Plan:
    planned = sink(rotation={"flushSize": 50}, partitioner={"type": "Field", "fields": ["kind"]})
    return make_plan(name, planned, sample({0: partition(stamps, values)}), DEFAULT, None)


def test_each_object_has_a_bar_with_its_reason_and_its_text() -> None:
    bars = _bars(page([_plan([1_000 * n for n in range(120)])]))
    assert len(bars) == 3
    assert [(bar["class"], "closed by flushSize" in (bar["title"] or "")) for bar in bars] == [
        ("bar", True),
        ("bar", True),
        ("bar open", False),
    ]
    assert all(bar["aria-label"] == bar["title"] for bar in bars)
    assert "kind=a, offsets 0 to 49: 50 records" in (bars[0]["title"] or "")


def test_bars_lie_within_the_timeline() -> None:
    for bar in _bars(page([_plan([0, 9 * MINUTE, 30 * MINUTE] * 50)])):
        left, width = (float(each.split(":")[1].rstrip("%")) for each in (bar["style"] or "").split(";"))
        assert 0 <= left <= 100
        assert 0 <= width <= 100 - left + 0.01


def test_hostile_names_are_text() -> None:
    values: list[bytes | None] = [b'{"kind":"<script>alert(1)</script>\\"onload=x"}'] * 50
    text = page([_plan([0] * 50, values, name='"><img src=x onerror=alert(1)>.yaml')])
    assert {tag for tag, _ in _tags(text)} & {"script", "img"} == set()
    assert not [name for _, found in _tags(text) for name in found if name.startswith("on")]


def test_the_page_loads_nothing() -> None:
    text = page([_plan([0] * 50)])
    assert "default-src 'none'" in text
    assert not [found for _, found in _tags(text) if "src" in found or "href" in found]


def test_a_page_of_many_objects_reports_that_it_shows_some_of_them() -> None:
    given = sample({0: partition([0] * 1_000)})
    text = page([make_plan("sink.yaml", sink(rotation={"flushSize": 1}), given, DEFAULT, None)])
    assert 0 < len(_bars(text)) <= MAX_BARS
    assert "of 1,000 objects are shown" in text


def test_an_empty_sample_has_a_page() -> None:
    assert _bars(page([make_plan("sink.yaml", sink(), sample({}, of=1), DEFAULT, None)])) == []


def test_two_plans_are_below_each_other() -> None:
    text = page([_plan([0] * 50), _plan([0] * 50, name="other.yaml")])
    assert text.index("<h2>sink.yaml</h2>") < text.index("<h2>other.yaml</h2>")
