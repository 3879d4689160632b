"""The picture of the demo in the README: runs a command, and draws what it prints as an SVG of a terminal.

`python -m devtools.recording` runs the demo and writes docs/images/demo.svg. `--text FILE` draws an output that exists.
Long lists are shortened, and the picture says by how many lines; nothing else of the output is changed.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT: Final = Path(__file__).resolve().parents[1]
PICTURE: Final = ROOT / "docs" / "images" / "demo.svg"
COMMAND: Final = (sys.executable, "-m", "demo", "run")
PROMPT: Final = "make demo"
COLUMNS: Final = 118
KEPT: Final = 4
"""Lines that are kept of a list: the first ones and the last one."""

_LIST_ITEM: Final = re.compile(r"^\s*[│├└┣┗─ ]+\S.* lines\s+[0-9.]+ MB$|^\S+-\d+ .*$|^ *2013-\d\d .*$|^[│ ]*[├└]── .*$")
_STYLES: Final = (
    (r"^\d+\. .*$", "bold"),
    (r"kill -9", "bold red"),
    (r"= source|equal$|\bOK\b", "green"),
    (r"NOT equal|FAILED", "bold red"),
    (r"^\$ .*$", "bold cyan"),
    (r"^ *… .*$", "dim"),
)
_FONT_FACE: Final = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


def shortened(lines: Sequence[str], kept: int = KEPT) -> list[str]:
    """`lines` with each list of more than `kept` + 1 items cut to its first ones and its last one."""
    result: list[str] = []
    items: list[str] = []
    for line in [*lines, None]:
        if line is not None and _LIST_ITEM.match(line):
            items.append(line)
            continue
        left_out = len(items) - kept
        if left_out > 1:
            items = [*items[: kept - 1], f"   … {left_out} more lines", items[-1]]
        result += items
        items = []
        if line is not None:
            result.append(line)
    return result


def picture(output: str, *, prompt: str = PROMPT, title: str = "s3sink") -> str:
    """The SVG of a terminal in which `prompt` printed `output`. It refers to nothing on the network."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, highlight=False)
    for line in [f"$ {prompt}", *shortened(output.rstrip().splitlines())]:
        text = Text(line)
        for pattern, style in _STYLES:
            text.highlight_regex(pattern, style)
        console.print(text, overflow="fold")
    return _FONT_FACE.sub("", console.export_svg(title=title, theme=MONOKAI, unique_id="s3sink"))


def main(argv: Sequence[str] | None = None) -> int:
    """Writes the picture; returns the exit code of the command that was recorded."""
    parser = argparse.ArgumentParser(prog="python -m devtools.recording", description=__doc__)
    parser.add_argument("--text", type=Path, help="draw the output in this file instead of running the demo")
    parser.add_argument("--output", type=Path, default=PICTURE, help="default: docs/images/demo.svg")
    args = parser.parse_args(argv)
    if args.text is not None:
        output = args.text.read_text(encoding="utf-8")
    else:
        done = subprocess.run(COMMAND, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            print(done.stdout, end="")
            print(f"the command ended with {done.returncode}; {args.output} was not written", file=sys.stderr)
            return done.returncode
        output = done.stdout
    args.output.parent.mkdir(parents=True, exist_ok=True)
    args.output.write_text(picture(output), encoding="utf-8")
    print(f"wrote {args.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
