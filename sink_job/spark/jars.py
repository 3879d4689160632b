"""The jar of Kafka's client beside Spark's own: its pinned version, its cache, and its download.

PySpark includes Spark with the libraries that Kafka's client needs (compression, logging), but not the client. It is
pinned with its checksum, and tested with the PySpark version of pyproject.toml. An image can contain it, in Spark's own
directory or in `$S3SINK_JARS`; then nothing is downloaded.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from sink_job.api.errors import ConfigurationError
from sink_job.engine.cache import cache_dir
from sink_job.kafka.jvm import java_binary, pyspark_file, spark_jars
from sink_job.spark.jar_table import Jar, jar_table

Report = Callable[[str], None]
_ARCHIVED_CLASSES = "3"
"""Changes with the classes that `class_data_sharing` loads, so that an archive of other ones is not used."""

CLIENT = jar_table("""
    org.apache.kafka:kafka-clients:3.9.2
        014b4ef36884478a932641818b080c36a8f8e2e92dc771e800c9d2694f4f83d8
""")


def client_jars(report: Report | None = None) -> list[Path]:
    """The paths of the jars of Kafka's client.

    Searches `$S3SINK_JARS`, Spark's jars directory and the cache, in this order. Missing jars are downloaded to the
    cache once. `report` receives a progress line for a download (default: standard error). Raises `ConfigurationError`
    if a file does not have the pinned checksum, and `TransientError` if the download fails.
    """
    for folder in (os.environ.get("S3SINK_JARS"), spark_jars()):
        present = _present(Path(folder), CLIENT) if folder else None
        if present is not None:
            return present
    return cached_jars("client", CLIENT, "Kafka's client", report=report)


def cached_jars(name: str, jars: Sequence[Jar], title: str, *, report: Report | None = None) -> list[Path]:
    """The paths of `jars` in the directory `name` of the cache, with verified checksums. Downloads missing jars.

    Several processes can call it concurrently. Raises the errors of `client_jars`.
    """
    folder = cache_dir() / "jars" / name
    found = [folder / jar.file_name for jar in jars]
    if all(_has_pinned_checksum(path, jar) for path, jar in zip(found, jars, strict=True)):
        return found  # the cache of an image is read-only
    folder.mkdir(parents=True, exist_ok=True)
    with _exclusive(folder / ".lock"):
        missing = [jar for jar in jars if not _has_pinned_checksum(folder / jar.file_name, jar)]
        if missing:
            from sink_job.spark.ivy import fetch  # slow imports, needed once per machine

            (report or _to_stderr)(f"downloading {title} (once, to {folder}) ...")
            fetch(missing, folder)
            for jar in missing:
                if not _has_pinned_checksum(folder / jar.file_name, jar):
                    (folder / jar.file_name).unlink(missing_ok=True)
                    raise ConfigurationError(
                        f"{jar.coordinates}: the downloaded file does not have the pinned SHA-256 checksum "
                        f"{jar.sha256}: check the mirror in S3SINK_MAVEN_ROOT"
                    )
    return found


def _present(folder: Path, jars: Sequence[Jar]) -> list[Path] | None:
    """One file for each of `jars` in `folder`, of any version, because an image may have others. None if one is
    missing."""
    found = []
    for jar in jars:
        of_jar = sorted(folder.glob(f"*{jar.artifact}-[0-9]*.jar"))
        if not of_jar:
            return None
        found.append(of_jar[-1])
    return found


def _has_pinned_checksum(path: Path, jar: Jar) -> bool:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest() == jar.sha256
    except FileNotFoundError:
        return False


@contextmanager
def _exclusive(lock: Path) -> Iterator[None]:
    with lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def archive_path(jars: Sequence[Path]) -> Path:
    """The path of the CDS archive (see `class_data_sharing`) for this Java and these jars. It may not exist."""
    java = Path(java_binary()).resolve()
    files = [java, pyspark_file(), *jars]
    identity = [_ARCHIVED_CLASSES, version("pyspark"), *(f"{file}:{file.stat().st_mtime_ns}" for file in files)]
    digest = hashlib.sha256("\n".join(identity).encode()).hexdigest()[:16]
    return cache_dir() / "jvm" / f"spark-{digest}.jsa"
