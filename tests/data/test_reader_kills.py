"""SIGKILL while the reader is in the middle of a frame: of the JVM, of the worker, and of all processes of a sink."""

from __future__ import annotations

import os
import signal
import time
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from devtools import bucket_listing
from devtools.faults.s3_proxy import FaultProxy, Hold
from devtools.faults.s3_requests import S3Request
from devtools.kafka import KafkaBroker
from devtools.processes import Process, in_session, wait_until
from devtools.s3 import S3Server
from devtools.sink_process import local_spec, manifest, short_run, sink_command
from devtools.topics import Topics

pytestmark = [pytest.mark.data, pytest.mark.spark]

MB = 1_000_000
RECORDS = 120
"""Of 1 MB each: more than the first part and all buffers between the broker and the worker hold."""
VALUES = [b"%06d" % number + b"x" * (MB - 6) for number in range(RECORDS)]
PART = "5Mi"
START_TIMEOUT_S = 120


@pytest.fixture(scope="module")
def large_topic(topics: Topics) -> str:
    name = topics.create(f"large-{uuid.uuid4().hex[:8]}", settings={"max.message.bytes": str(2 * MB)})
    topics.produce_values(name, VALUES)
    return name


def kill_jvm(process: Process) -> int:
    os.kill(next(pid for pid in in_session(process.pid) if _words(pid)[0].endswith("java")), signal.SIGKILL)
    return 75


def kill_all(process: Process) -> int:
    process.kill()
    return -signal.SIGKILL


def kill_worker(process: Process) -> int | None:
    """The worker is the child of the daemon that works on a task; Spark repeats the task in a new one."""
    commands = {pid: _words(pid) for pid in in_session(process.pid)}
    daemons = [pid for pid, words in commands.items() if "-m" in words and "sink_job.spark.daemon" in words]
    workers = [pid for pid in daemons if _parent(pid) in daemons]
    os.kill(max(workers, key=_cpu_ticks), signal.SIGKILL)
    return None


@pytest.mark.parametrize("kill", [kill_jvm, kill_all, kill_worker])
def test_a_kill_in_mid_frame_ends_the_sink_or_repeats_the_task_and_leaves_nothing_behind(
    kill: Callable[[Process], int | None],
    kafka: KafkaBroker,
    s3: S3Server,
    s3_proxy: FaultProxy,
    bucket: str,
    large_topic: str,
    unique_name: str,
    tmp_path: Path,
    sink_imports: Sequence[str],
) -> None:
    spec = local_spec(
        bootstrap=kafka.bootstrap,
        topics=[large_topic],
        endpoint=s3_proxy.endpoint,
        bucket=bucket,
        format={"converter": "Bytes", "output": "Bytes", "bytes": {"separator": "\n"}},
        rotation={"flushSize": RECORDS},
        s3={"partSize": PART},
    )
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    environment = {"TMPDIR": str(temporary)}
    document = short_run(manifest(unique_name, spec))
    with sink_command(tmp_path / "sink", document, env=environment, imports=sink_imports) as sink:
        hold = Hold()
        with s3_proxy.when(lambda request: _is_part(request, large_topic), hold, times=None) as rule:
            process = sink.start("run")
            rule.wait(START_TIMEOUT_S)
            wait_until(_waits(process), "a reader that waits for its worker", seconds=60)
            expected = kill(process)
            if expected is not None:
                assert process.wait(60) == expected
                wait_until(lambda: not in_session(process.pid), "the end of all processes", seconds=30)
        hold.release.set()
        if expected is not None:
            sink.catch_up()
        else:
            sink.wait_for(lambda: bool(bucket_listing.objects(s3.client(), bucket)), "the object", process)
            process.terminate()
        assert [*temporary.iterdir()] == []
        (key,) = bucket_listing.objects(s3.client(), bucket)
        assert bucket_listing.lines(s3.client(), bucket, key) == VALUES


def _is_part(request: S3Request, topic: str) -> bool:
    """Whether it is a part of the sink's object, not of the probe at its start."""
    return request.kind == "UploadPart" and f"/{topic}/" in request.key


def _reader(process: Process) -> tuple[str, ...]:
    """The threads of the reader with the CPU time that they have used, if all of them sleep; else empty."""
    threads = []
    for pid in in_session(process.pid):
        for task in Path(f"/proc/{pid}/task").glob("*"):
            try:
                fields = (task / "stat").read_text()
            except OSError:  # ended meanwhile
                continue
            name, _, rest = fields.partition("(")[2].rpartition(")")
            if name.startswith("s3sink reader"):
                state, *numbers = rest.split()
                if state != "S":
                    return ()
                threads.append(" ".join((task.name, *numbers[10:12])))
    return tuple(threads)


def _waits(process: Process) -> Callable[[], bool]:
    """Whether the reader has slept for ten looks without using CPU time: it waits until its worker reads on."""
    seen: list[tuple[str, ...]] = []

    def so() -> bool:
        time.sleep(0.1)
        seen.append(_reader(process))
        return len(seen) > 10 and bool(seen[-1]) and len({*seen[-10:]}) == 1

    return so


def _words(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return [""]


def _parent(pid: int) -> int:
    return int(_numbers(pid)[1])


def _cpu_ticks(pid: int) -> int:
    return sum(map(int, _numbers(pid)[11:13]))


def _numbers(pid: int) -> list[str]:
    """The fields of `/proc/PID/stat` from the state on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
