"""Spark with Iceberg's runtime, a reader and a maintainer of tables that is independent of PyIceberg.

Iceberg has a runtime for Spark 4.1 and none for the PySpark of the product. So that version is in a folder of the
cache, without the jars that it does not need here, and runs in a process of its own, which answers scripts one after
the other.
`tools/iceberg_spark.lock` has its hash.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from devtools.iceberg_rest.jars import rest_jars
from devtools.processes import LOOPBACK, ServerFailedError, kill_session
from devtools.s3 import ACCESS_KEY, REGION, SECRET_KEY
from sink_job.engine.cache import cache_dir
from sink_job.kafka.jvm import spark_jars
from sink_job.spark.jar_table import jar_table
from sink_job.spark.jars import cached_jars

_LOCK: Final = Path(__file__).resolve().parents[1] / "tools" / "iceberg_spark.lock"
_RUNTIME: Final = jar_table("""
    org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.11.0
        d6ea6c5d099288daeb7d5a92061bd3d7d8f296492632b42378e5f2f0e3066242
""")
_UNUSED: Final = re.compile(
    r"(rocksdbjni|connect-repl|spark-connect|kubernetes-|hive-|spark-hive|datanucleus|derby|breeze|spire|cats-kernel"
    r"|spark-mllib|netty-codec-native-quic)"
)
"""Jars of Spark that these scripts need not: half of its size."""
_HIVE_CLIENT: Final = (
    "hive-metastore-*.jar",
    "hive-common-*.jar",
    "hive-exec-*-core.jar",
    "hive-serde-*.jar",
    "hive-shims-*.jar",
)
"""Jars of the PySpark of the product that a client of the metastore needs."""
_TIMEOUT_S: Final = 300
_PROGRAM: Final = """
import json, os, sys
from pyspark.sql import SparkSession

replies = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
spark = SparkSession.builder.config(map=json.loads(sys.stdin.readline())).getOrCreate()
spark.sparkContext.setLogLevel("ERROR")
for line in sys.stdin:
    names = {"spark": spark, "result": None}
    try:
        exec(json.loads(line), names)
        reply = {"result": names["result"]}
    except Exception as error:
        reply = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(reply, default=str), file=replies, flush=True)
"""


def packages() -> Path:
    """The folder of PySpark, for PYTHONPATH. Raises ServerFailedError where pip cannot fetch it."""
    digest = hashlib.sha256(_LOCK.read_bytes() + _UNUSED.pattern.encode()).hexdigest()[:12]
    folder = cache_dir() / f"iceberg-spark-{digest}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="iceberg-spark-") as work:
            _extract(_sdist(Path(work)), Path(work, "made"))
            with contextlib.suppress(OSError):  # another process was first; its copy is the same
                Path(work, "made").rename(folder)
    return folder


def _sdist(work: Path) -> Path:
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    words = [*pip, "--require-hashes", "--no-binary", "pyspark", "--dest", str(work), "-r", str(_LOCK)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)
    if done.returncode:
        raise ServerFailedError(f"pip cannot fetch {_LOCK.name}:\n{done.stderr[-4000:]}")
    (found,) = work.glob("pyspark-*.tar.gz")
    return found


def _extract(sdist: Path, made: Path) -> None:
    """PySpark's modules, its scripts and the jars that are needed, as an installed package has them."""
    with tarfile.open(sdist) as archive:
        for member in archive:
            _, _, name = member.name.partition("/")
            for start, end in (("pyspark/", ""), ("deps/jars/", "jars/"), ("deps/bin/", "bin/")):
                inner = f"{end}{name.removeprefix(start)}"
                if name.startswith(start) and member.isfile() and not _UNUSED.search(name.removeprefix("pyspark/")):
                    member.name = f"pyspark/{inner}"
                    archive.extract(member, made, filter="data")


class IcebergSpark:
    """A running Spark. Its catalog `rest` is the REST catalog, `hive` the metastore."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log

    def run(self, script: str) -> Any:
        """What the Python `script` assigns to `result`, as JSON. It has the session `spark`. Raises ServerFailedError
        with the error of the script."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(script) + "\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise ServerFailedError(f"Spark has ended:\n{self._log.read_text()[-4000:]}")
        reply = json.loads(line)
        if "error" in reply:
            raise ServerFailedError(reply["error"])
        return reply["result"]

    def rows(self, query: str) -> list[list[Any]]:
        """The rows of a query."""
        found: list[list[Any]] = self.run(f"result = [[*row] for row in spark.sql({query!r}).collect()]")
        return found


@contextlib.contextmanager
def iceberg_spark(
    folder: Path, endpoint: str, *, rest: str | None = None, hive: str | None = None
) -> Iterator[IcebergSpark]:
    """A Spark for tables of the REST catalog with the URL `rest`, and of the metastore with the URI `hive`, whose files
    are on the S3 server `endpoint`. `folder` is for its log and its files. Raises ServerFailedError."""
    aws = [jar for jar in rest_jars() if jar.name.startswith("iceberg-aws-bundle-")]
    client = [] if hive is None else [jar for name in _HIVE_CLIENT for jar in spark_jars().glob(name)]
    jars = [*cached_jars("iceberg-spark", _RUNTIME, "Iceberg's runtime, 48 MB"), *aws, *client]
    settings = _settings(jars)
    for name, uri in (("rest", rest), ("hive", hive)):
        if uri is not None:
            settings |= _catalog(name, uri, endpoint)
    environment = {
        **{name: value for name, value in os.environ.items() if name not in ("SPARK_HOME", "PYSPARK_SUBMIT_ARGS")},
        "PYTHONPATH": str(packages()),
        "TZ": "UTC",  # of the times that Python gets and gives
        "AWS_REGION": REGION,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    }
    log = folder / "spark.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
            env=environment,
            cwd=folder,
            start_new_session=True,
        )
    try:
        assert process.stdin is not None
        process.stdin.write(json.dumps(settings) + "\n")
        yield IcebergSpark(process, log)
    finally:
        kill_session(process.pid)
        process.communicate()


def _settings(jars: list[Path]) -> dict[str, str]:
    return {
        "spark.master": "local[1]",
        "spark.driver.host": LOOPBACK,
        "spark.driver.bindAddress": LOOPBACK,
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.driver.extraClassPath": os.pathsep.join(map(str, jars)),
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    }


def _catalog(name: str, uri: str, endpoint: str) -> dict[str, str]:
    """The settings of a catalog; `name` is its type, too."""
    key = f"spark.sql.catalog.{name}"
    return {
        key: "org.apache.iceberg.spark.SparkCatalog",
        f"{key}.type": name,
        f"{key}.uri": uri,
        f"{key}.cache-enabled": "false",
        f"{key}.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        f"{key}.s3.endpoint": endpoint,
        f"{key}.s3.path-style-access": "true",
    }
