"""The reader in an executor's JVM: kills in the middle of a frame, and what many rounds leave in it.

Executors here are processes of Spark's master `local-cluster`; in Kubernetes they are pods with the same classes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from devtools.kafka import KafkaBroker
from devtools.processes import in_session, wait_until
from devtools.topics import Topics

pytestmark = [pytest.mark.data, pytest.mark.spark]

ROOT = Path(__file__).resolve().parents[2]
MB = 1_000_000
LARGE = 40
"""Records of 1 MB: more than the buffers between the broker and a worker hold."""
ROUNDS = int(os.environ.get("S3SINK_READER_ROUNDS", "60"))


class Executors:
    """The session of `tests.support.executor_reads`."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.sockets = self._line()

    def _line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the session has ended; its errors are above"
        return line.strip()

    def read(self, function: str, *given: str, topic: str, end: int) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([function, given, topic, end]) + "\n")
        self.process.stdin.flush()
        return self._line()

    def jvm(self) -> int:
        """The executor: the JVM whose command has its backend."""
        backend = b"CoarseGrainedExecutorBackend"
        return next(pid for pid in in_session(self.process.pid) if backend in _command(pid))

    def is_clean(self) -> bool:
        """Whether no reader's thread runs in the executor, and no socket's file is left."""
        threads = [_name(path) for path in Path(f"/proc/{self.jvm()}/task").glob("*/comm")]
        prefix = Path(self.sockets)
        return not [*prefix.parent.glob(f"{prefix.name}*")] and not [
            n for n in threads if n.startswith("s3sink reader")
        ]

    def files(self) -> int:
        return len([*Path(f"/proc/{self.jvm()}/fd").iterdir()])


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _name(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


@pytest.fixture(scope="module")
def large(topics: Topics) -> str:
    name = topics.create(f"large-{uuid.uuid4().hex[:8]}", settings={"max.message.bytes": str(2 * MB)})
    topics.produce_values(name, [b"x" * MB] * LARGE)
    return name


@pytest.fixture(scope="module")
def executors(kafka: KafkaBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Executors]:
    command = [sys.executable, "-m", "tests.support.executor_reads", kafka.bootstrap, str(tmp_path_factory.mktemp("e"))]
    path = os.pathsep.join(map(str, (ROOT, ROOT / "operator")))
    environment = {**os.environ, "PYTHONPATH": path}
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        yield Executors(process)
        process.communicate("\n", timeout=60)
        assert process.returncode == 0
        wait_until(lambda: not in_session(process.pid), "the end of all processes", seconds=30)
    finally:
        for pid in in_session(process.pid):
            os.kill(pid, 9)
        process.wait()


def test_a_task_whose_worker_is_killed_in_mid_frame_is_repeated(
    executors: Executors, large: str, tmp_path: Path
) -> None:
    attempts = tmp_path / "attempts"
    before = executors.jvm()
    assert executors.read("fail_first", "kill", str(attempts), topic=large, end=LARGE) == str(LARGE)
    assert attempts.exists()
    assert executors.jvm() == before
    wait_until(executors.is_clean, "the end of the readers", seconds=20)


def test_a_task_whose_executor_is_killed_in_mid_frame_is_repeated_in_another_one(
    executors: Executors, large: str, tmp_path: Path
) -> None:
    attempts = tmp_path / "attempts"
    before = executors.jvm()
    assert executors.read("kill_executor_first", str(attempts), topic=large, end=LARGE) == str(LARGE)
    assert attempts.exists()
    assert executors.jvm() != before
    wait_until(executors.is_clean, "the end of the readers", seconds=20)


def test_many_rounds_leave_nothing_in_the_executor(executors: Executors, large: str) -> None:
    for _ in range(5):
        assert executors.read("count", topic=large, end=4) == "4"
    wait_until(executors.is_clean, "the end of the readers", seconds=20)
    before = executors.files()
    for _ in range(ROUNDS):
        assert executors.read("count", topic=large, end=4) == "4"
    wait_until(executors.is_clean, "the end of the readers", seconds=20)
    assert executors.files() <= before + 10  # Spark's own vary
