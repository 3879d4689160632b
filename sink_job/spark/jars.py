"""The jars of Spark's Kafka connector: which ones, where they are kept, and how they come there.

PySpark brings Spark but not its Kafka connector. The set below goes with the PySpark version of pyproject.toml and
passed the exact-offset tests with it; it is pinned here alone, each file with its checksum. An image that holds the
jars already (in Spark's own folder or in `$S3SINK_JARS`) is asked first, so that nothing is fetched there.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyspark

from sink_job.api.errors import ConfigurationError
from sink_job.kafka.jvm import java_binary
from sink_job.spark.cache import cache_dir

Report = Callable[[str], None]


@dataclass(frozen=True, order=True)
class Jar:
    """One file of a jar set, by its Maven coordinates; `sha256` in hexadecimal."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def coordinates(self) -> str:
        return f"{self.group}:{self.artifact}:{self.version}"

    @property
    def file_name(self) -> str:
        return f"{self.artifact}-{self.version}.jar"


def jar_table(text: str) -> tuple[Jar, ...]:
    """The jars of a table of `group:artifact:version` and `sha256`, in turn, with white space between."""
    words = iter(text.split())
    return tuple(_jar(coordinates, sha256) for coordinates, sha256 in zip(words, words, strict=True))


def _jar(coordinates: str, sha256: str) -> Jar:
    group, artifact, version = coordinates.split(":")
    return Jar(group, artifact, version, sha256)


CONNECTOR = jar_table("""
    org.apache.spark:spark-sql-kafka-0-10_2.13:4.2.0
        64539c45e5d39f7ddb747312c239f38f5208d08c1a0ddf7d70beb2fbd9373705
    org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.0-preview1
        ab6e27a8a47ce63348dd0ecbd5543dc6212b4783180305cde5749e79684ea97b
    org.apache.kafka:kafka-clients:3.9.2
        014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8
    org.apache.commons:commons-pool2:2.13.1
        f77a5060d6936a9144023584232f9de3f2248f1abfe156e9d31795f18770674f
""")


def connector_jars(report: Report | None = None) -> list[Path]:
    """The connector's jars on this machine, fetched once when there is no other way.

    Looked for in `$S3SINK_JARS`, in Spark's own jars folder and in the cache, in this order. `report` takes a line for
    people when something is fetched; it goes to standard error when left out. Raises `ConfigurationError` when a file
    has another checksum than pinned and `TransientError` when the registry cannot be reached.
    """
    for folder in (os.environ.get("S3SINK_JARS"), _spark_jars()):
        present = _present(Path(folder), CONNECTOR) if folder else None
        if present is not None:
            return present
    return cached_jars("connector", CONNECTOR, "Spark's Kafka connector", report=report)


def cached_jars(name: str, jars: Sequence[Jar], title: str, *, report: Report | None = None) -> list[Path]:
    """The paths of `jars` in the cache's folder `name`, each with its pinned checksum; what is missing is fetched.

    Safe to be called by several processes at once. Raises as `connector_jars` does.
    """
    folder = cache_dir() / "jars" / name
    folder.mkdir(parents=True, exist_ok=True)
    with _one_at_a_time(folder / ".lock"):
        missing = [jar for jar in jars if not _is_right(folder / jar.file_name, jar)]
        if missing:
            from sink_job.spark.ivy import fetch  # a JVM's worth of imports, needed once a machine

            (report or _to_stderr)(f"fetching {len(missing)} jars of {title} (once, into {folder}) ...")
            fetch(missing, folder)
            for jar in missing:
                if not _is_right(folder / jar.file_name, jar):
                    (folder / jar.file_name).unlink(missing_ok=True)
                    raise ConfigurationError(
                        f"{jar.coordinates}: the file that was fetched does not have the pinned checksum {jar.sha256}"
                    )
    return [folder / jar.file_name for jar in jars]


def _spark_jars() -> str | None:
    """The folder of jars of the Spark that will run: `$SPARK_HOME`'s, else the one inside the PySpark package."""
    if home := os.environ.get("SPARK_HOME"):
        return str(Path(home) / "jars")
    import importlib.util

    spec = importlib.util.find_spec("pyspark")
    return str(Path(spec.origin).parent / "jars") if spec and spec.origin else None


def _present(folder: Path, jars: Sequence[Jar]) -> list[Path] | None:
    """One file for each of `jars` in `folder`, whatever its version: who builds an image chooses; None if one lacks."""
    found = []
    for jar in jars:
        of_jar = sorted(folder.glob(f"*{jar.artifact}-[0-9]*.jar"))
        if not of_jar:
            return None
        found.append(of_jar[-1])
    return found


def _is_right(path: Path, jar: Jar) -> bool:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == jar.sha256
    except FileNotFoundError:
        return False


@contextmanager
def _one_at_a_time(lock: Path) -> Iterator[None]:
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def archive_path(jars: Sequence[Path]) -> Path:
    """Where the class archive (see `archive`) for this Java and these jars is kept, made or not."""
    java = Path(java_binary()).resolve()
    files = [java, Path(pyspark.__file__), *jars]
    identity = [pyspark.__version__, *(f"{file}:{file.stat().st_mtime_ns}" for file in files)]
    digest = hashlib.sha256("\n".join(identity).encode()).hexdigest()[:16]
    return cache_dir() / "jvm" / f"spark-{digest}.jsa"
