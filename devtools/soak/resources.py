"""What the processes of a session hold: memory, open files, threads, sockets; in its JVM also Kafka consumers."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from devtools.processes import in_session, proportional_set_size

_MB = 1_000_000
_CONSUMER = "org.apache.kafka.clients.consumer.KafkaConsumer"
_SECONDS = 60.0


class Resources(NamedTuple):
    """The sums over the processes of a session; `memory_mb` in MB of PSS (shared pages count once)."""

    memory_mb: float
    files: int
    threads: int
    sockets: int


class JvmObjects(NamedTuple):
    """What lives in a JVM's heap after a full collection: Kafka consumers, and all objects in MB."""

    consumers: int
    heap_mb: float


def resources(session: int) -> Resources:
    """What the processes of `session` hold at this moment; all zero if none runs."""
    memory = files = threads = sockets = 0
    for pid in in_session(session):
        process = Path("/proc") / str(pid)
        memory += proportional_set_size(process)
        threads += _count(process / "task")
        names = _links(process / "fd")
        files += len(names)
        sockets += sum(name.startswith("socket:") for name in names)
    return Resources(memory / _MB, files, threads, sockets)


def jvm_objects(session: int) -> JvmObjects | None:
    """The objects of the largest JVM of `session`; None without a JVM, or without `jcmd` of a JDK.

    `jcmd` makes the JVM run a full collection first, so what is counted is in use.
    """
    jcmd = shutil.which("jcmd")
    jvms = [pid for pid in in_session(session) if _name(pid) == "java"]
    if jcmd is None or not jvms:
        return None
    jvm = max(jvms, key=lambda pid: proportional_set_size(Path("/proc") / str(pid)))
    try:
        output = subprocess.run(
            [jcmd, str(jvm), "GC.class_histogram"], capture_output=True, text=True, timeout=_SECONDS, check=True
        ).stdout
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):  # it ended meanwhile
        return None
    return parsed(output)


def parsed(histogram: str) -> JvmObjects:
    """The consumers and the total of a class histogram, whose lines are `number: instances bytes class`."""
    consumers, heap = 0, 0
    for line in histogram.splitlines():
        words = line.split()
        if len(words) >= 4 and words[3] == _CONSUMER:
            consumers = int(words[1])
        elif len(words) == 3 and words[0] == "Total":
            heap = int(words[2])
    return JvmObjects(consumers, heap / _MB)


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def _count(folder: Path) -> int:
    try:
        return sum(1 for _ in folder.iterdir())
    except OSError:
        return 0


def _links(folder: Path) -> list[str]:
    names = []
    try:
        for entry in folder.iterdir():
            try:
                names.append(str(entry.readlink()))
            except OSError:  # closed meanwhile
                continue
    except OSError:  # the process ended
        pass
    return names
