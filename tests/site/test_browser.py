"""The documentation site in a real browser, which reaches no host but this one."""

from __future__ import annotations

import functools
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from devtools.browser import Tab, tab
from devtools.chromium import chromium
from devtools.docs_site.build import build
from devtools.docs_site.packages import mermaid_is_available
from devtools.processes import LOOPBACK, wait_until

ROOT = Path(__file__).resolve().parents[2]
DIAGRAMS = {
    "": "README.md",
    "architecture/": "docs/architecture.md",
    "exactly-once/": "docs/exactly-once.md",
    "adr/0044-records-past-sparks-rows/": "docs/adr/0044-records-past-sparks-rows.md",
}
PHONE_PAGES = ("", "spec/", "failure-modes/", "helm/", "schemas/", "migrating/", "adr/", "benchmarks/")
PHONE = (390, 844)
DESKTOP = (1280, 900)
WAIT_S = 60

pytestmark = [
    pytest.mark.site,
    pytest.mark.skipif(chromium() is None, reason="there is no chromium"),
    pytest.mark.skipif(not mermaid_is_available(), reason="no npm on PATH, which fetches the script of diagrams"),
]


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of the site, built strictly."""
    folder = tmp_path_factory.mktemp("site")
    build(folder)
    with ThreadingHTTPServer((LOOPBACK, 0), functools.partial(Handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{LOOPBACK}:{server.server_port}/"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Tab]:
    program = chromium()
    assert program is not None
    with tab(program) as opened:
        yield opened


@pytest.fixture
def page(browser: Tab) -> Iterator[Tab]:
    """A tab of the size of a desktop. Its console may have no error when the test ends."""
    browser.size(*DESKTOP)
    browser.errors.clear()
    yield browser
    browser.value("0")  # receives what was reported until now
    assert browser.errors == []


def test_the_search_finds_a_field_of_the_manifest(site: str, page: Tab) -> None:
    page.open(site)
    page.value("document.querySelector('input.md-search__input').focus()")
    page.call("Input.insertText", text="flushSize")
    results = "[...document.querySelectorAll('.md-search-result__link')].map(link => link.pathname)"
    wait_until(lambda: bool(page.value(results)), "results of the search", seconds=WAIT_S)
    assert "/spec/" in page.value(results)


@pytest.mark.parametrize(("path", "source"), DIAGRAMS.items(), ids=DIAGRAMS.values())
def test_every_diagram_is_drawn(site: str, page: Tab, path: str, source: str) -> None:
    expected = (ROOT / source).read_text(encoding="utf-8").count("```mermaid")
    page.open(site + path)
    # The theme puts each drawing into a closed shadow root, so its size is what is seen of it.
    drawn = "[...document.querySelectorAll('div.mermaid')].filter(box => box.clientHeight > 100).length"
    wait_until(lambda: page.value(drawn) == expected, f"{expected} diagrams of {source}", seconds=WAIT_S)
    assert page.value("document.querySelectorAll('pre.mermaid').length") == 0


@pytest.mark.parametrize("path", PHONE_PAGES)
def test_a_page_needs_no_horizontal_scroll_on_a_phone(site: str, page: Tab, path: str) -> None:
    page.size(*PHONE)
    page.open(site + path)
    assert page.value("document.documentElement.scrollWidth") <= PHONE[0]


def test_all_pages_with_diagrams_are_listed_here() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = {str(file.relative_to(ROOT)) for file in pages if "```mermaid" in file.read_text(encoding="utf-8")}
    assert found == {*DIAGRAMS.values()}
