"""The page of `s3sink plan` in a real browser."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from devtools.browser import Tab, tab
from devtools.chromium import chromium
from sink_job.plan.page import page
from sink_job.plan.plan import make_plan
from sink_job.plan.prices import DEFAULT
from tests.unit.plan.samples import partition, sample, sink

PHONE = (390, 844)
DESKTOP = (1280, 900)
SCHEMES = {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 29)"}

pytestmark = [pytest.mark.site, pytest.mark.skipif(chromium() is None, reason="there is no chromium")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Tab]:
    program = chromium()
    assert program is not None
    with tab(program) as opened:
        yield opened


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A page with the plans of two manifests."""
    given = sample({number: partition([1_000 * n for n in range(500)]) for number in range(3)})
    plans = [
        make_plan(f"flush-{size}.yaml", sink(rotation={"flushSize": size}), given, DEFAULT, None) for size in (50, 150)
    ]
    file = Path(tmp_path_factory.mktemp("plan"), "plan.html")
    file.write_text(page(plans), encoding="utf-8")
    return file.as_uri()


def test_every_bar_has_its_text_and_a_size(browser: Tab, url: str) -> None:
    browser.size(*DESKTOP)
    browser.open(url)
    bars = "[...document.querySelectorAll('.bar')]"
    assert browser.value(f"{bars}.length") == 3 * (10 + 4)
    assert browser.value(f"{bars}.every(bar => bar.title && bar.textContent)") is True
    assert browser.value(f"{bars}.every(bar => bar.offsetWidth >= 2 && bar.offsetHeight > 10)") is True


def test_the_page_needs_no_horizontal_scroll_on_a_phone(browser: Tab, url: str) -> None:
    browser.size(*PHONE)
    browser.open(url)
    assert browser.value("document.documentElement.scrollWidth") <= PHONE[0]


@pytest.mark.parametrize(("scheme", "ground"), SCHEMES.items())
def test_the_page_follows_the_colour_scheme(browser: Tab, url: str, scheme: str, ground: str) -> None:
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.open(url)
    assert browser.value("getComputedStyle(document.body).backgroundColor") == ground
    browser.call("Emulation.setEmulatedMedia", features=[])
