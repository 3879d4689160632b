"""What configures Spark, and what a user may not."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sink_job.api.errors import ConfigurationError
from sink_job.spark import jars, session
from sink_job.spark.conf import SparkSettings, spark_conf


def conf(sockets: str = "/work/x", **given: str) -> dict[str, str]:
    settings = SparkSettings(
        app_name="sink", jars=[Path("/jars/a.jar"), Path("/jars/b.jar")], cores=3, heap=512 << 20, conf=given
    )
    return spark_conf(settings, Path("/work/x"), Path(sockets), Path("/conf/log4j2.properties"))


def test_failed_tasks_are_tried_again_in_local_mode() -> None:
    assert conf()["spark.master"] == "local[3,4]"


def test_batches_are_measured_in_bytes_and_speculation_is_off() -> None:
    made = conf()
    assert made["spark.sql.execution.arrow.maxRecordsPerBatch"] == "0"
    assert made["spark.sql.execution.arrow.maxBytesPerBatch"] == "1m"
    assert made["spark.speculation"] == "false"


@pytest.mark.parametrize(("length", "enabled"), [(60, "true"), (61, "false")])
def test_workers_are_reached_by_sockets_in_the_file_system_where_the_path_is_not_too_long(
    length: int, enabled: str
) -> None:
    assert conf("/" + "x" * (length - 1))["spark.python.unix.domain.socket.enabled"] == enabled


@pytest.mark.parametrize("key", ["spark.master", "spark.speculation", "spark.local.dir", "spark.driver.memory"])
def test_a_key_that_the_sink_owns_is_refused_by_name(key: str) -> None:
    with pytest.raises(ConfigurationError, match=key.replace(".", r"\.")):
        conf(**{key: "x"})


def test_the_users_keys_win_over_defaults() -> None:
    assert conf(**{"spark.locality.wait": "3s"})["spark.locality.wait"] == "3s"


def test_the_users_jvm_options_stand_beside_ours() -> None:
    options = conf(**{"spark.driver.extraJavaOptions": "-Da=b"})["spark.driver.extraJavaOptions"]
    assert options.startswith("-Da=b -")
    assert "-Dlog4j2.configurationFile=file:///conf/log4j2.properties" in options


def test_the_users_class_path_stands_behind_the_connector() -> None:
    path = conf(**{"spark.driver.extraClassPath": "/mine.jar"})["spark.driver.extraClassPath"]
    assert path == "/jars/a.jar:/jars/b.jar:/mine.jar"


def test_all_that_spark_writes_goes_into_one_folder() -> None:
    made = conf()
    for key in ("spark.local.dir", "spark.sql.warehouse.dir", "spark.python.unix.domain.socket.dir"):
        assert made[key].startswith("/work/x")
    assert "-Djava.io.tmpdir=/work/x" in made["spark.driver.extraJavaOptions"]


def test_the_folder_of_a_process_that_was_killed_goes_at_the_next_start_though_its_number_is_anothers_by_now(
    tmp_path: Path,
) -> None:
    number = os.getpid()
    left, foreign = tmp_path / f"s3sink-spark-{number}-abc", tmp_path / "s3sink-spark-x-abc"
    for folder in (left, foreign):
        folder.mkdir()
        (folder / "file").touch()
    with session._work_dir(tmp_path) as ours:
        assert ours.is_dir()
        assert (left.exists(), foreign.exists()) == (False, True)
    assert not ours.exists()


def test_a_killed_process_leaves_its_folder_to_the_next_start(tmp_path: Path) -> None:
    code = "import os, pathlib, sys; from sink_job.spark import session\n"
    code += "with session._work_dir(pathlib.Path(sys.argv[1])) as folder: os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    [left] = tmp_path.iterdir()
    with session._work_dir(tmp_path):
        assert not left.exists()


def test_the_folder_of_a_running_process_stays(tmp_path: Path) -> None:
    with session._work_dir(tmp_path) as first, session._work_dir(tmp_path):
        assert first.is_dir()


def test_the_jvm_takes_the_class_archive_where_one_was_made_for_these_jars(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jars, "cache_dir", lambda: tmp_path)
    jar = tmp_path / "a.jar"
    jar.touch()
    settings = SparkSettings(app_name="sink", jars=[jar])
    made = jars.archive_path([jar])

    def options() -> str:
        return spark_conf(settings, Path("/work/x"), Path("/work/x"), Path("/conf/x"))["spark.driver.extraJavaOptions"]

    assert "-XX:SharedArchiveFile" not in options()
    made.parent.mkdir()
    made.touch()
    assert f"-XX:SharedArchiveFile={made}" in options()


def test_a_class_archive_is_not_taken_for_other_jars(tmp_path: Path) -> None:
    one, other = tmp_path / "a.jar", tmp_path / "b.jar"
    one.touch()
    other.touch()
    assert jars.archive_path([one]) != jars.archive_path([one, other])
