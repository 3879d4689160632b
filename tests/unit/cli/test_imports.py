"""What `s3sink` imports before it does anything."""

from __future__ import annotations

import subprocess
import sys

import pytest

_COMMAND = """
import sys
from sink_job.cli.main import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
names = {name.partition(".")[0] for name in sys.modules}
print(*names & {"pyspark", "py4j", "pandas", "numpy", "pyarrow", "botocore", "rich"}, file=sys.stderr)
"""


@pytest.mark.parametrize("arguments", ["--help", "run --help", "status --help", "verify --help", "--version"])
def test_help_needs_no_large_package(arguments: str) -> None:
    command = [sys.executable, "-c", _COMMAND, *arguments.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout
    assert done.stderr == "\n"
