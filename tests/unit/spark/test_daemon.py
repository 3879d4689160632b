"""The process from which Spark's Python workers are forked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sink_job.spark.conf import SparkSettings, spark_conf
from sink_job.spark.daemon import forget_archives, without_archives

_THREADS = """
import os, sys
from sink_job.spark.daemon import preload
preload()
others = set(os.listdir("/proc/self/task")) - {str(os.getpid())}
names = {open(f"/proc/self/task/{thread}/comm").read().strip() for thread in others}
assert "sink_job.writer.task_attempt" in sys.modules
print(names - {"jemalloc_bg_thd"})
"""

_WITHOUT_PANDAS = """
import sys
import pyarrow
from sink_job.spark.daemon import leave_out_pandas
leave_out_pandas()
pyarrow.array([1, None])
imported = "pandas" in sys.modules
import pandas
print(imported, "pandas" in sys.modules)
"""


def packages(folder: Path, *names: str) -> Path:
    """A folder with these files of packages, and Spark's archives in the package pyspark."""
    for name in (*names, "pyspark/python/lib/pyspark.zip", "pyspark/python/lib/py4j-1-src.zip"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def archives(site: Path) -> list[str]:
    names = ("python/lib/pyspark.zip", "python/lib/py4j-1-src.zip", "jars/spark-core_2.13-4.2.0.jar")
    return [str(site / "pyspark" / name) for name in names]


def test_the_archives_of_an_installed_pyspark_are_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = packages(tmp_path, "pyspark/worker.py", "py4j/__init__.py")
    monkeypatch.setattr(sys, "path", [str(site)])
    rest = ["/other/users.zip", str(site), "/work"]
    assert without_archives([*archives(site), *rest]) == rest


def test_what_was_read_of_an_archive_that_is_not_searched_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = packages(tmp_path, "pyspark/worker.py", "py4j/__init__.py")
    kept = [str(site), "/other/users.zip"]
    known = {each: None for path in [*archives(site), *kept] for each in (path, f"{path}/org")}
    monkeypatch.setattr(sys, "path", [*archives(site), *kept])
    monkeypatch.setattr(sys, "path_importer_cache", known)
    forget_archives()
    assert sys.path == kept
    assert [*known] == [each for path in kept for each in (path, f"{path}/org")]


@pytest.mark.parametrize("files", [["pyspark/worker.py"], ["py4j/__init__.py"], []])
def test_archives_without_installed_packages_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, files: list[str]
) -> None:
    site = packages(tmp_path, *files)
    monkeypatch.setattr(sys, "path", [str(site)])
    path = [*archives(site), str(site)]
    assert without_archives(path) == path


def test_archives_of_a_pyspark_that_is_not_searched_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = packages(tmp_path, "pyspark/worker.py", "py4j/__init__.py")
    monkeypatch.setattr(sys, "path", ["/elsewhere"])
    assert without_archives(archives(site)) == archives(site)


@pytest.mark.skipif(sys.platform != "linux", reason="threads are read from /proc")
def test_the_imports_start_no_thread_that_a_fork_would_lose() -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}  # as Spark sets it
    command = [sys.executable, "-c", _THREADS]
    assert subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout == "set()\n"


def test_a_conversion_of_a_list_in_a_worker_does_not_import_pandas() -> None:
    command = [sys.executable, "-c", _WITHOUT_PANDAS]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "False True\n"


def test_the_users_daemon_replaces_that_of_the_sink() -> None:
    def daemon(**conf: str) -> str:
        settings = SparkSettings(app_name="sink", jars=[], conf=conf)
        path = Path("/work")
        return spark_conf(settings, path, path, path / "log4j2.properties")["spark.python.daemon.module"]

    assert daemon() == "sink_job.spark.daemon"
    assert daemon(**{"spark.python.daemon.module": "pyspark.daemon"}) == "pyspark.daemon"
