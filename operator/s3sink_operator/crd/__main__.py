"""`python -m s3sink_operator.crd` prints the CustomResourceDefinition; `--check FILE...` compares files with it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from s3sink_operator import crd


def main(arguments: Sequence[str]) -> int:
    """Returns 0, or 1 if a file after `--check` differs from the generated one."""
    if not arguments:
        sys.stdout.write(crd.text())
        return 0
    made = crd.text()
    drifted = [file for file in arguments[1:] if Path(file).read_text(encoding="utf-8") != made]
    for file in drifted:
        sys.stderr.write(f"{file} differs from the models in sink_job.api: run `make crd`\n")
    return 1 if drifted else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
