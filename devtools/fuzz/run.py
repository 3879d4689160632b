"""Runs the child processes of a converter, and turns their ends into findings."""

from __future__ import annotations

import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

import msgspec

from devtools.fuzz.child import Broken, Progress

MAX_CRASHES: Final = 5
"""The maximum number of crashes after which a run ends. Each costs the start of a process."""

PROGRAM: Final = (sys.executable, "-u", "-m", "devtools.fuzz.child")

_DECODER: Final = msgspec.json.Decoder(Progress | Broken)
_DUMP_TIMEOUT_S: Final = 10
_MAX_STDERR: Final = 4000


@dataclass(frozen=True)
class Limits:
    """Limits of a run and its child processes: seconds of CPU time, the number of batches that a child runs at least
    (it may exceed the CPU time for them), seconds for a batch, seconds from the start of a child to its first batch,
    and bytes of address space."""

    cpu_s: float = 60
    batches: int = 1
    batch_s: float = 20
    start_s: float = 300
    memory: int = 4 * 1024**3


@dataclass(frozen=True)
class Finding:
    """A batch for which a property does not hold, or that ended the process. Findings with one `kind` may have one
    cause."""

    batch: int
    kind: str
    text: str


@dataclass
class Result:
    """What a run has done. `batches` counts those of the findings too; `cpu_s` is CPU time in seconds."""

    batches: int = 0
    cpu_s: float = 0
    texts: int = 0
    rejected: int = 0
    findings: list[Finding] = field(default_factory=list)

    def add(self, progress: Progress, first: int) -> None:
        """Adds the last progress of a process that began with the batch `first`."""
        self.batches += progress.batch - first
        self.cpu_s += progress.cpu_s
        self.texts += progress.texts
        self.rejected += progress.rejected


def fuzz(converter: str, seed: int, limits: Limits, first: int = 0, program: Sequence[str | Path] = PROGRAM) -> Result:
    """Runs the batches of a seed from `first` on in `program`. After a crash it continues with the next batch."""
    result = Result()
    for _ in range(MAX_CRASHES):
        arguments = [converter, seed, first, max(limits.cpu_s - result.cpu_s, 0), limits.batches, limits.memory]
        progress, crash = _Child([*program, *map(str, arguments)], limits, first).run(result.findings)
        result.add(progress, first)
        if crash is None:
            break
        result.findings.append(crash)
        result.batches += 1
        first = progress.batch + 1
        if result.cpu_s >= limits.cpu_s and result.batches >= limits.batches:
            break
    return result


class _Child:
    """A process whose first batch is `first`."""

    def __init__(self, command: Sequence[str | Path], limits: Limits, first: int) -> None:
        self._limits = limits
        self._process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=Path(__file__).parents[2]
        )
        self._progress = Progress(first, 0, 0, 0)
        self._is_started = False
        self._lines: queue.Queue[bytes | None] = queue.Queue()
        self._stderr = b""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._threads = [
            threading.Thread(target=self._read_lines, args=(self._process.stdout,), daemon=True),
            threading.Thread(target=self._read_errors, args=(self._process.stderr,), daemon=True),
        ]

    def run(self, findings: list[Finding]) -> tuple[Progress, Finding | None]:
        """The last progress, and the finding if the process did not end as it should. Adds its other findings."""
        for thread in self._threads:
            thread.start()
        try:
            reason = self._follow(findings)
        finally:
            self._process.kill()
            code = self._process.wait()
            for thread in self._threads:
                thread.join()
        if reason is None and code:
            reason = f"exit by {signal.Signals(-code).name}" if code < 0 else f"exit with code {code}"
        errors = self._stderr.decode(errors="replace")
        return self._progress, None if reason is None else Finding(self._progress.batch, reason, errors)

    def _follow(self, findings: list[Finding]) -> str | None:
        """Reads the output to its end. The reason why that failed, None if it did not."""
        while True:
            try:
                limit = self._limits.batch_s if self._is_started else self._limits.start_s
                line = self._lines.get(timeout=limit)
            except queue.Empty:
                self._dump_stacks()
                return f"no progress within {limit:g} s"
            if line is None:
                self._process.wait(_DUMP_TIMEOUT_S)
                return None
            self._receive(_DECODER.decode(line), findings)

    def _receive(self, message: Progress | Broken, findings: list[Finding]) -> None:
        if isinstance(message, Progress):
            self._progress, self._is_started = message, True
        else:
            findings.append(Finding(message.batch, message.place, message.text))

    def _dump_stacks(self) -> None:
        """Makes the child print the stacks of its threads, and end."""
        self._process.send_signal(signal.SIGABRT)
        try:
            self._process.wait(_DUMP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            return

    def _read_lines(self, stream: IO[bytes]) -> None:
        for line in stream:
            self._lines.put(line)
        self._lines.put(None)

    def _read_errors(self, stream: IO[bytes]) -> None:
        for line in stream:
            self._stderr = (self._stderr + line)[-_MAX_STDERR:]
