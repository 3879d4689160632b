"""What the plug-in prints: text and JSON with escapes for control characters, and errors on standard error."""

from __future__ import annotations

import json
import sys
from typing import TextIO

from s3sink_operator.kubectl.formatting import printable
from s3sink_operator.types import Json


def write(text: str, *, file: TextIO | None = None) -> None:
    """Prints a line to `file`, by default to standard output."""
    print(printable(text), file=file)


def note(text: str) -> None:
    """Prints a line to standard error."""
    write(text, file=sys.stderr)


def write_json(data: Json) -> None:
    """Prints indented JSON."""
    write(json.dumps(data, indent=2, ensure_ascii=False))


def fail(message: str, *, code: int = 1) -> int:
    """Prints the error. Returns the exit code."""
    note(f"kubectl s3sink: {message}")
    return code
