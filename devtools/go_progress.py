"""How far a Go build is, from the lines that go prints. Pure. Only the standard library is imported here.

`go list -deps` gives the number of packages; `go build -v` names each package that it compiles. Packages of Go's build
cache are not compiled again, so that number is the maximum.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

_PACKAGE: Final = re.compile(r"[\w.~+/-]+")
_DOWNLOAD: Final = "go: downloading "


class BuildProgress:
    """The progress of one go command. `packages`: all packages of the program, itself last; empty if unknown."""

    def __init__(self, packages: Sequence[str] = ()) -> None:
        self._total = len(packages)
        self._program = packages[-1] if packages else None
        self._downloaded = 0
        self._compiled = 0
        self._is_linking = False

    def read(self, line: str) -> bool:
        """Reads a line. Returns whether it is about progress; other lines are messages or results."""
        word = line.strip()
        if word.startswith(_DOWNLOAD):
            self._downloaded += 1
            return True
        if not _PACKAGE.fullmatch(word):
            return False
        self._compiled += 1
        self._is_linking = self._is_linking or word == self._program
        return True

    def text(self) -> str:
        """What is done so far."""
        if not self._compiled:
            return f"{self._downloaded:,} modules downloaded" if self._downloaded else "reading the packages"
        total = f" of at most {self._total:,}" if self._total else ""
        return f"{self._compiled:,}{total} packages compiled{', linking' if self._is_linking else ''}"
