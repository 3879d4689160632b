"""Go programs for tests and demo, built once a machine. Only the standard library is imported here."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from devtools.go_progress import BuildProgress
from devtools.processes import ServerFailedError
from sink_job.engine.cache import cache_dir

REPORT_INTERVAL_S = 5.0
Report = Callable[[str], None]


def go_version(folder: Path) -> str:
    """The version of Go that builds the module in `folder`, whose toolchain line counts; "no-go" without Go."""
    go = shutil.which("go")
    if not go:
        return "no-go"
    return subprocess.run(
        [go, "env", "GOVERSION"], cwd=folder, capture_output=True, text=True, check=True
    ).stdout.split()[0]


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def build_go(
    command: str,
    package: str,
    *flags: str,
    output: Path | None = None,
    work: Path,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    report: Report = say,
    interval_s: float = REPORT_INTERVAL_S,
) -> None:
    """Runs `go build` (to `output`) or `go install` (`command`) of `package`, with Go's caches in `work`.

    Reports every `interval_s` seconds how many packages are compiled. Raises `ServerFailedError` when it fails.
    """
    packages: list[str] = []
    if "@" not in package:  # a package of another module cannot be listed
        listing = run_go(
            ["list", "-deps", *flags, package], work=work, cwd=cwd, env=env, report=report, interval_s=interval_s
        )
        packages = [line for line in listing.splitlines() if not line.startswith("go: ")]
    target = [] if output is None else ["-o", str(output)]
    words, progress = [command, "-v", *flags, *target, package], BuildProgress(packages)
    run_go(words, work=work, cwd=cwd, env=env, progress=progress, report=report, interval_s=interval_s)


def run_go(
    arguments: Sequence[str],
    *,
    work: Path,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    progress: BuildProgress | None = None,
    report: Report = say,
    interval_s: float = REPORT_INTERVAL_S,
) -> str:
    """The output of a go command, with Go's caches in `work`. Raises `ServerFailedError` when it fails.

    Reports every `interval_s` seconds what `progress` has read from its output.
    """
    go = shutil.which("go")
    if not go:
        raise ServerFailedError(
            "go is not on PATH, and this program is built from source once: install Go 1.25 or newer"
        )
    # Where modules come from is the user's own setting of Go; where they are kept, and how they are built, is ours.
    settings = {
        "GOPATH": f"{work}/path",
        "GOMODCACHE": f"{work}/path/pkg/mod",
        "GOCACHE": f"{work}/cache",
        "GOFLAGS": "-buildvcs=false -modcacherw -trimpath",
        "CGO_ENABLED": "0",
        **(env or {}),
    }
    command = [go, *arguments]
    reader = _OutputReader(progress or BuildProgress())
    begin = time.monotonic()
    with subprocess.Popen(
        command, cwd=cwd, env={**os.environ, **settings}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        reader.start(process)
        while not reader.ended.wait(interval_s):
            report(f"  go {arguments[0]}: {reader.progress.text()}, {time.monotonic() - begin:.0f} s")
    if process.returncode:
        raise ServerFailedError(f"{' '.join(command)} failed:\n{reader.failure()}")
    return "".join(reader.output)


class _OutputReader:
    """Reads the output of a process in a thread. `ended`: it is complete."""

    def __init__(self, progress: BuildProgress) -> None:
        self.progress = progress
        self.output: list[str] = []
        self.ended = threading.Event()
        self._messages: list[str] = []

    def start(self, process: subprocess.Popen[str]) -> None:
        threading.Thread(target=self._read, args=(process,), name="go-output", daemon=True).start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        for line in process.stdout or ():
            self.output.append(line)
            if not self.progress.read(line):
                self._messages.append(line)
        self.ended.set()

    def failure(self) -> str:
        """The end of the messages, or of the whole output."""
        return "".join(self._messages or self.output)[-2000:]


def built_programs(name: str, sources: Path, packages: Mapping[str, str], *, tags: str = "") -> dict[str, Path]:
    """Programs (name to package) of the module in `sources`: from the cache, else built once a machine.

    The folder's name contains a hash of the sources and of the Go version, so programs of other ones are elsewhere.
    Raises `ServerFailedError` where building is impossible.
    """
    digest = hashlib.sha256(f"{tags} {sorted(packages.items())} {go_version(sources)}".encode())
    for path in sorted(sources.iterdir()):
        digest.update(path.read_bytes())
    folder = cache_dir() / "bin" / f"{name}-{digest.hexdigest()[:12]}"
    programs = {program: folder / program for program in packages}
    with locked(folder):
        if not all(program.exists() for program in programs.values()):
            with building([*programs.values()]) as work:
                for program, package in packages.items():
                    flags = ["-ldflags=-s -w", "-tags", tags]
                    build_go("build", package, *flags, output=work / program, work=work, cwd=sources)
                for program, path in programs.items():
                    (work / program).rename(path)
    return programs


@contextlib.contextmanager
def building(programs: Sequence[Path]) -> Iterator[Path]:
    """A temporary folder beside `programs` for building them; reports what is built, and how long it took."""
    names = " and ".join(program.name for program in programs)
    folder = programs[0].parent
    say(f"building {names} with Go (once a machine, into {folder}) ...")
    begin = time.monotonic()
    with tempfile.TemporaryDirectory(dir=folder, prefix="building-") as work:
        yield Path(work)
        size = sum(program.stat().st_size for program in programs)
        say(f"built {names} in {time.monotonic() - begin:.0f} s, {size / 1e6:.0f} MB")


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One builder at a time for `folder`, across all checkouts and test workers."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
