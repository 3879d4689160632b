"""`python -m devtools.kafka_classes` builds a class data sharing (CDS) archive of the broker's classes, once a machine.

A broker that has it starts with two thirds of the CPU time. As Spark's archive it is optional, and a JVM to which it
does not belong ignores it.
"""

from __future__ import annotations

import fcntl
import os
import sys
import tempfile
from pathlib import Path

from devtools.jars import broker_class_path
from devtools.kafka import KafkaBroker, class_archive
from devtools.processes import ServerFailedError
from devtools.topics import Record, Topics
from sink_job.api.errors import SinkError


def build_class_archive() -> Path:
    """Builds the archive (50 MB) if it does not exist, and returns its path.

    Starts a broker that answers a few requests; its JVM writes the loaded classes when it ends.
    """
    path = class_archive(broker_class_path())
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            _build(path)
    return path


def _build(path: Path) -> None:
    new = path.with_suffix(f".{os.getpid()}")
    with tempfile.TemporaryDirectory(prefix="s3sink-kafka-") as name:
        broker = KafkaBroker(Path(name), short_lived=True, jvm=[f"-XX:ArchiveClassesAtExit={new}"])
        try:
            broker.start()
            _use(Topics(broker.bootstrap))
        finally:
            broker.stop()
    new.replace(path)


def _use(topics: Topics) -> None:
    """Requests of the kinds that tests make."""
    topics.create("archive")
    topics.produce_values("archive", [b"value"])
    topics.transaction("archive", [Record(value=b"value")])
    topics.commit("group", "archive", {0: 1})
    topics.committed("group", "archive")


def main() -> None:
    try:
        build_class_archive()
    except (SinkError, ServerFailedError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
