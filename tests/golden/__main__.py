"""Writes what the tests of docs/compatibility.md compare with: `make golden ENTRY="TEXT"`.

TEXT is part of an entry in a section "Changed" or "Added" of CHANGELOG.md, which describes the change of objects.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from tests.golden.objects import objects
from tests.golden.stored_types import fingerprints

ROOT = Path(__file__).resolve().parents[2]
FOLDER = Path(__file__).resolve().parent
OBJECTS = FOLDER / "objects.json"
STORED_TYPES = FOLDER / "stored_types.json"


def is_described(entry: str) -> bool:
    """Whether the changelog contains this text; line breaks do not matter."""
    return bool(entry.strip()) and " ".join(entry.split()) in " ".join((ROOT / "CHANGELOG.md").read_text().split())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--entry", required=True, help="a part of the entry in CHANGELOG.md that describes the change")
    entry = parser.parse_args().entry
    if not is_described(entry):
        print(f"CHANGELOG.md does not contain {entry!r}. Describe the change of keys or bytes there.", file=sys.stderr)
        return 1
    OBJECTS.write_text(json.dumps({"entry": entry, "objects": objects()}, indent=1) + "\n")
    STORED_TYPES.write_text(json.dumps(fingerprints(), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
