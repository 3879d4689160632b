"""Hive's own metastore server and Spark as its client, from PySpark's jars: `python -m devtools.hive_metastore FOLDER`.

The server listens on all interfaces (Hive 2.3 has no setting for that), so both run in a network namespace of their
own, which `in_hive` makes. Statements come from standard input as JSON; the rows of each go to standard output.
"""

from __future__ import annotations

import fcntl
import functools
import json
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyspark

from devtools.processes import LOOPBACK, Process, accepts_connections, wait_until

SCRIPT: Final = "#!python\n"
"""The beginning of a statement that is a script in Python: it gets the URI of the metastore and prints rows as JSON."""
_PORT: Final = 9083
_SIOCSIFFLAGS: Final = 0x8914
_UP_AND_RUNNING: Final = 0x41
_NAMESPACE: Final = ("unshare", "--net", "--map-root-user")
_JAVA: Final = ("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
_JARS: Final = Path(pyspark.__file__).parent / "jars"


@functools.cache
def why_not() -> str | None:
    """Why this system cannot run it; None if it can."""
    if shutil.which("unshare") is None:
        return "there is no unshare (util-linux)"
    found = subprocess.run([*_NAMESPACE, "true"], capture_output=True, check=False)
    return found.stderr.decode().strip() if found.returncode else None


def in_hive(statements: Sequence[str], folder: Path) -> list[list[list[Any]]]:
    """The rows of each statement, with a new metastore in `folder`. Raises CalledProcessError, after the error was
    printed, if Hive or Spark rejects one."""
    folder.mkdir(parents=True)
    command = [*_NAMESPACE, sys.executable, "-m", "devtools.hive_metastore", str(folder)]
    done = subprocess.run(command, input=json.dumps(statements).encode(), stdout=subprocess.PIPE, check=True)
    found: list[list[list[Any]]] = json.loads(done.stdout)
    return found


@contextmanager
def _metastore(folder: Path) -> Iterator[str]:
    """The URI of a running server."""
    properties = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={folder}/metastore;create=true",
        "hive.metastore.warehouse.dir": f"file://{folder}/warehouse",
        "hive.metastore.schema.verification": "false",
        "datanucleus.schema.autoCreateAll": "true",
        "hive.async.log.enabled": "false",  # it needs a library that PySpark does not have
    }
    named = (f"<property><name>{name}</name><value>{value}</value></property>" for name, value in properties.items())
    (folder / "hive-site.xml").write_text(f"<configuration>{''.join(named)}</configuration>")
    command = [*_JAVA, "-cp", f"{folder}:{_JARS}/*", "org.apache.hadoop.hive.metastore.HiveMetaStore", "-p", str(_PORT)]
    server = Process(command, log=folder / "metastore.log", cwd=folder)
    try:
        wait_until(lambda: accepts_connections(_PORT), "Hive's metastore", seconds=120, unless=server.failed)
        yield f"thrift://{LOOPBACK}:{_PORT}"
    finally:
        server.kill()


def _rows(uri: str, folder: Path, statements: Sequence[str]) -> list[list[list[Any]]]:
    from pyspark.sql import SparkSession

    settings: dict[str, bool | float | int | str | None] = {
        "spark.master": "local[1]",
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.ui.enabled": "false",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": f"file://{folder}/warehouse",
        "spark.sql.hive.convertMetastoreParquet": "false",  # Hive's own reader, and not Spark's
        "spark.hadoop.hive.metastore.uris": uri,
    }
    session = SparkSession.builder.config(map=settings).getOrCreate()
    try:
        return [_scripted(uri, each) if each.startswith(SCRIPT) else _queried(session, each) for each in statements]
    finally:
        session.stop()


def _queried(session: Any, statement: str) -> list[list[Any]]:
    return [[*row] for row in session.sql(statement).collect()]


def _scripted(uri: str, statement: str) -> list[list[Any]]:
    command = [sys.executable, "-c", statement.removeprefix(SCRIPT), uri]
    found: list[list[Any]] = json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)
    return found


def _start_loopback() -> None:
    """The loopback interface of a new namespace is down."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh", b"lo", _UP_AND_RUNNING))


def main() -> int:
    folder, statements = Path(sys.argv[1]), json.load(sys.stdin)
    _start_loopback()
    with _metastore(folder) as uri:
        print(json.dumps(_rows(uri, folder, statements)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
