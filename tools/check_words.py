"""Finds words that docs/glossary.md replaces by a standard term: `python tools/check_words.py [PATH...]`.

Every tracked text file is checked, code included, except the changelog, which names old things on purpose. A line that
quotes such a word for a reason ends with `words: allow`. Prints path, line, word and replacement; exit code 1.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SKIPPED = {"CHANGELOG.md", "requirements.lock", "tools/check_words.py", "docs/glossary.md", "LICENSE"}
ALLOW = "words: allow"

REPLACED = {
    r"told|tells?|telling": "report, log",
    r"says so|said so|said by|what is said": "reports; message",
    r"mend|mends|mended|mending|mender": "fix, repair",
    r"anew": "again, re-created",
    r"goes on|go on|going on|went on": "continues",
    r"stands|standing|standstill": "is at, exists, is listed in",
    r"of before": "previous",
    r"a look|the look|looks at|each look|glances?": "reconcile pass; status poll; check",
    r"gist": "fingerprint",
    r"last words?": "final status, termination message",
    r"left-?overs?": "staged remainder, remainder",
    r"stretch|stretches": "offset range",
    r"packs?|packer": "columnar batch",
    r"pieces?": "row slice, chunk, element",
    r"bodies": "part buffers",
    r"begun": "started",
    r"holes?": "offset gaps",
    r"refused|refuses|refusals?": "rejected; a connection is refused",
    r"litter": "orphaned uploads and files",
    r"not built|unbuilt": "not supported",
    r"want of memory": "out of memory",
    r"needs? a person|a person must|for a person": "user action required",
    r"wanted": "desired, requested, required, expected",
    r"seam|floors?": "layer, interface; minimum",
    r"patience": "timeout, maximum elapsed time",
    r"complaints?": "error",
    r"mistakes": "errors",
    r"[«»]": '"',
    r"(?:MOST|LEAST|LONGEST|SHORTEST)_[A-Z_]+": "MAX_x, MIN_x",
    r"(?:PATIENCE|SILENCE)(?:_[A-Z]+)?|TRIES|LOOKS|MISSES|GRAVES|TOLD": "*_TIMEOUT_S, MAX_*_ATTEMPTS",
    r"made again": "rebuilt, re-created",
    r"nobody|somebody|somebody else": "no process, another program, another user",
    r"in the way": "conflicts with",
    r"by itself|by themselves": "automatically, without user action",
    r"whether it is so|not foreseen": "(a plain sentence)",
    r"fram(?:ing|ed)|unframed": "wire format, in wire format, bare value",
    r"shapings?": "object settings",
    r"heals|healed": "restarts, recovers",
}

STANDARD = re.compile(
    r"(?i)connections?( was)? refused|refuses.connections|connection to the server was refused|s3.refused"
    r"|ConnectionRefusedError(\(.*?\))?|message_?pack|\"pack\"|[\"`](?:framing|unframed)[\"`]"
)
"""Phrases of Kafka, Kubernetes and TCP, and names of formats, in which a replaced word has its standard sense."""

_PATTERNS = [
    (re.compile(rf"(?<![\w.\-/])(?:{words})(?![\w\-])", 0 if words.startswith("(?:") else re.IGNORECASE), replacement)
    for words, replacement in REPLACED.items()
]

_ANY = re.compile(rf"(?<![\w.\-/])(?i:{'|'.join(REPLACED)})(?![\w\-])")
"""Any replaced word, with its false positives: it selects the lines to look at. One search is faster than sixty."""


def tracked(paths: list[str]) -> Iterator[Path]:
    """The tracked files below `paths` (none: the whole repository). Ends the process when a path has none."""
    words = ["git", "ls-files", "-z", *(["--error-unmatch"] if paths else []), "--", *paths]
    done = subprocess.run(words, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(done.returncode)
    listed = done.stdout
    yield from (Path(name) for name in listed.split("\0") if name and name not in SKIPPED)


def split(line: str) -> str:
    """The line with identifiers as words: `left_overs_of` and `leftOversOf` read "left overs of"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[a-z])_(?=[a-z])", " ", line)


def findings(path: Path) -> Iterator[str]:
    """`path:line: word -> replacement` for each replaced word in a text file."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
        return
    for number, line in enumerate(lines, 1):
        if ALLOW in line or not (_ANY.search(line) or _ANY.search(split(line))):
            continue
        checked = STANDARD.sub("", line)
        for pattern, replacement in _PATTERNS:
            if found := pattern.search(checked) or pattern.search(split(checked)):
                yield f"{path}:{number}: {found.group()!r} -> {replacement}"


def main() -> None:
    found = [each for path in tracked(sys.argv[1:]) for each in findings(path)]
    print("\n".join(found) if found else "no replaced words")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
