"""The picture of the demo: what it shows, and that it needs nothing but itself."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from xml.etree import ElementTree

import pytest

from devtools import recording

OUTPUT = """\
s3sink demo

1. Real servers, on this machine alone
   kill -9 of all its processes at part 2 of lake/k.json
"""


def visible(svg: str) -> str:
    """The text of the picture, line breaks left out."""
    return unescape("".join(ElementTree.fromstring(svg).itertext())).replace("\xa0", " ")


def test_the_picture_has_the_command_and_its_output() -> None:
    text = visible(recording.picture(OUTPUT))
    for line in ("$ make demo", *filter(None, OUTPUT.splitlines())):
        assert line.strip() in text


def test_the_picture_refers_to_nothing_on_the_network() -> None:
    svg = recording.picture(OUTPUT)
    assert set(re.findall(r"https?://[^\s\"')]+", svg)) <= {
        "http://www.w3.org/2000/svg",
        "https://www.textualize.io",
    }
    assert "@font-face" not in svg


def test_the_same_output_gives_the_same_picture() -> None:
    assert recording.picture(OUTPUT) == recording.picture(OUTPUT)


def test_a_long_list_is_shortened_and_the_number_of_lines_left_out_is_shown() -> None:
    items = [f"│   ├── flights+0+{n:010}.json" for n in range(10)]
    assert recording.shortened(["before", *items, "after"]) == [
        "before",
        *items[:3],
        "   … 6 more lines",
        items[-1],
        "after",
    ]


@pytest.mark.parametrize("count", [1, recording.KEPT, recording.KEPT + 1])
def test_a_short_list_is_shown_whole(count: int) -> None:
    items = [f"flights-{n} 1 2 3" for n in range(count)]
    assert recording.shortened(items) == items


def test_an_output_that_exists_is_drawn_without_running_anything(tmp_path: Path) -> None:
    text, output = tmp_path / "output.txt", tmp_path / "images" / "demo.svg"
    text.write_text(OUTPUT, encoding="utf-8")
    assert recording.main(["--text", str(text), "--output", str(output)]) == 0
    assert "Real servers" in visible(output.read_text(encoding="utf-8"))


def test_a_command_that_fails_leaves_the_picture_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(recording, "COMMAND", ("sh", "-c", "echo the demo failed; exit 3"))
    output = tmp_path / "demo.svg"
    assert recording.main(["--output", str(output)]) == 3
    assert not output.exists()
    assert "the demo failed" in capsys.readouterr().out
