"""`python -m s3sink_operator.crd` prints the CustomResourceDefinition; with `--check FILE...` it compares and says."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from s3sink_operator import crd


def main(arguments: Sequence[str]) -> int:
    """Exit code: 0, or 1 when a file given behind `--check` is not what the models make now."""
    if not arguments:
        sys.stdout.write(crd.text())
        return 0
    made = crd.text()
    drifted = [file for file in arguments[1:] if Path(file).read_text(encoding="utf-8") != made]
    for file in drifted:
        sys.stderr.write(f"{file} is not what sink_job.api makes now: run `make crd`\n")
    return 1 if drifted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
