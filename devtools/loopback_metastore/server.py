"""Hive's own metastore as a process that listens on loopback, from PySpark's jars, with a database in a folder.

The metastore looks for the folders of tables, so buckets have a file system in which each folder exists.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from devtools.processes import LOOPBACK, Process, accepts_connections, free_ports, killed_at_end, wait_until
from sink_job.kafka.java_classes import class_jar
from sink_job.kafka.jvm import java_binary, plain_jvm, spark_jars

_HERE: Final = Path(__file__).parent
_MAIN: Final = "org.apache.hadoop.hive.metastore.LoopbackMetastore"
_START_SECONDS: Final = 120


@contextmanager
def metastore(folder: Path, lock_s: int = 60) -> Iterator[str]:
    """The URI of a running server. `folder` is for its database and log. It removes a lock after `lock_s` without a
    heartbeat. Raises ServerFailedError."""
    properties = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        "hive.metastore.warehouse.dir": f"file://{folder}/warehouse",
        "hive.metastore.schema.verification": "false",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.async.log.enabled": "false",  # it needs a library that PySpark does not have
        "datanucleus.connectionPoolingType": "NONE",  # so do pools
        "hive.support.concurrency": "true",
        "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
        "hive.txn.timeout": f"{lock_s}s",
        "hive.timedout.txn.reaper.start": "1s",
        "hive.timedout.txn.reaper.interval": "1s",
        **{f"fs.{scheme}.impl": "org.apache.hadoop.hive.metastore.BucketFolders" for scheme in ("s3", "s3a")},
    }
    named = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in properties.items())
    (folder / "hive-site.xml").write_text(f"<configuration>{''.join(named)}</configuration>")
    (port,) = free_ports(1)
    path = os.pathsep.join(map(str, [folder, _classes(folder), f"{spark_jars()}/*"]))
    options = ["-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command = [java_binary(), *options, "-cp", path, _MAIN, str(port)]
    with killed_at_end(Process(command, log=folder / "metastore.log", cwd=folder)) as process:
        wait_until(lambda: accepts_connections(port), "Hive's metastore", seconds=_START_SECONDS, unless=process.failed)
        yield f"thrift://{LOOPBACK}:{port}"


def _classes(folder: Path) -> Path:
    """A jar with the main class and the file system, which Janino compiles."""
    gateway = plain_jvm(sorted(spark_jars().glob("*.jar")))
    try:
        return class_jar(gateway, _HERE / "LoopbackMetastore.java", _MAIN, _HERE / "BucketFolders.java", folder=folder)
    finally:
        gateway.shutdown()
