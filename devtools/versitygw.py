"""VersityGW's program. Only the standard library is imported here: it is built while packages are installed."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from devtools.go_tool import building, locked, run_go
from devtools.processes import ServerFailedError
from sink_job.spark.cache import cache_dir

MODULE = "github.com/versity/versitygw/cmd/versitygw"
VERSION = "v1.8.0"


def versitygw_binary() -> Path:
    """VersityGW's program: from the cache, else built once by Go; `ServerFailedError` where that is impossible."""
    program = _program()
    with locked(program.parent):
        if not program.exists():
            with building([program]) as work:
                run_go(
                    ["install", "-ldflags=-s -w", f"{MODULE}@{VERSION}"], work=work, cwd=work, env={"GOBIN": str(work)}
                )
                (work / "versitygw").rename(program)
    return program


def versitygw_possible() -> bool:
    """Whether `versitygw_binary` can give one: it is built already, or Go is installed."""
    return _program().exists() or shutil.which("go") is not None


def _program() -> Path:
    return cache_dir() / "bin" / f"versitygw-{VERSION}"


def main() -> None:
    """`python -m devtools.versitygw`: builds it ahead."""
    if not versitygw_possible():
        print("go is not on PATH: the demo uses moto, and tests of data fail", file=sys.stderr)
        return
    try:
        print(versitygw_binary())
    except ServerFailedError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
