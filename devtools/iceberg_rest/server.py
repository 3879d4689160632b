"""Iceberg's REST server for tests as a process, with its metadata in a bucket of an S3 server of the tests."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from devtools.iceberg_rest.jars import rest_jars
from devtools.processes import LOOPBACK, Process, accepts_connections, free_ports, killed_at_end, wait_until
from devtools.s3 import ACCESS_KEY, REGION, SECRET_KEY
from sink_job.kafka.java_classes import class_jar
from sink_job.kafka.jvm import java_binary, plain_jvm

_START_SECONDS = 60
_MAIN = "org.apache.iceberg.rest.LoopbackCatalog"


@contextlib.contextmanager
def iceberg_rest_server(folder: Path, endpoint: str, warehouse: str) -> Iterator[str]:
    """The URL of a server. `folder` is for its database and log, `endpoint` the S3 server, and `warehouse` the location
    of tables. Raises ServerFailedError."""
    jars = rest_jars()
    (port,) = free_ports(1)
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    path = os.pathsep.join(map(str, [_classes(jars, folder), *jars]))
    environment = {
        "CATALOG_WAREHOUSE": warehouse,
        "CATALOG_URI": f"jdbc:sqlite:{folder}/rest.db",
        "CATALOG_IO__IMPL": "org.apache.iceberg.aws.s3.S3FileIO",
        "CATALOG_S3_ENDPOINT": endpoint,
        "CATALOG_S3_PATH__STYLE__ACCESS": "true",
        "AWS_REGION": REGION,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    }
    command = [java_binary(), *options, "-cp", path, _MAIN, str(port)]
    with killed_at_end(Process(command, log=folder / "rest.log", env=environment)) as process:
        wait_until(lambda: accepts_connections(port), "the REST catalog", seconds=_START_SECONDS, unless=process.failed)
        yield f"http://{LOOPBACK}:{port}"


def _classes(jars: list[Path], folder: Path) -> Path:
    """A jar with the main class, which Janino compiles."""
    gateway = plain_jvm(jars)
    try:
        return class_jar(gateway, Path(__file__).parent / "LoopbackCatalog.java", _MAIN, folder=folder)
    finally:
        gateway.shutdown()
