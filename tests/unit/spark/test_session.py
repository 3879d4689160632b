"""The Spark configuration, and the files of a session."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from sink_job.api.errors import ConfigurationError
from sink_job.spark import jars, session
from sink_job.spark.conf import SparkSettings, java_option, spark_conf
from sink_job.spark.executor_pods import ExecutorConfig


def conf(sockets: str = "/work/x", **given: str) -> dict[str, str]:
    settings = SparkSettings(
        app_name="sink", jars=[Path("/jars/a.jar"), Path("/jars/b.jar")], cores=3, heap=512 << 20, conf=given
    )
    return spark_conf(settings, Path("/work/x"), Path(sockets), Path("/conf/log4j2.properties"))


def test_failed_tasks_are_retried_in_local_mode() -> None:
    assert conf()["spark.master"] == "local[3,4]"


def test_batches_are_limited_by_bytes_and_speculation_is_disabled() -> None:
    properties = conf()
    assert properties["spark.sql.execution.arrow.maxRecordsPerBatch"] == "0"
    assert properties["spark.sql.execution.arrow.maxBytesPerBatch"] == "1m"
    assert properties["spark.speculation"] == "false"


@pytest.mark.parametrize(("length", "enabled"), [(60, "true"), (61, "false")])
def test_workers_use_unix_domain_sockets_unless_the_path_is_too_long(length: int, enabled: str) -> None:
    assert conf("/" + "x" * (length - 1))["spark.python.unix.domain.socket.enabled"] == enabled


@pytest.mark.parametrize("key", ["spark.master", "spark.speculation", "spark.local.dir", "spark.driver.memory"])
def test_the_error_for_a_property_that_the_sink_sets_names_it(key: str) -> None:
    with pytest.raises(ConfigurationError, match=key.replace(".", r"\.")):
        conf(**{key: "x"})


def pod_conf(**given: str) -> dict[str, str]:
    cluster = ExecutorConfig(properties=given, instances=1, cores=1, memory=1 << 30)
    settings = SparkSettings(app_name="sink", jars=[], cluster=cluster)
    return spark_conf(settings, Path("/work/x"), Path("/work/x"), Path("/conf/log4j2.properties"))


def test_spark_does_not_count_failed_executors_since_it_would_count_rejected_pods() -> None:
    assert pod_conf()["spark.executor.maxNumFailures"] == "2147483647"


def test_the_users_limit_of_failed_executors_is_kept() -> None:
    assert pod_conf(**{"spark.executor.maxNumFailures": "7"})["spark.executor.maxNumFailures"] == "7"
    assert "spark.executor.maxNumFailures" not in pod_conf(**{"spark.executor.failuresValidityInterval": "1h"})


def test_the_users_properties_override_defaults() -> None:
    assert conf(**{"spark.locality.wait": "3s"})["spark.locality.wait"] == "3s"


def test_the_users_jvm_options_precede_those_of_the_sink() -> None:
    options = conf(**{"spark.driver.extraJavaOptions": "-Da=b"})["spark.driver.extraJavaOptions"]
    assert options.startswith("-Da=b -")
    assert "-Dlog4j2.configurationFile=file:///conf/log4j2.properties" in options


def test_the_users_class_path_follows_the_connector() -> None:
    path = conf(**{"spark.driver.extraClassPath": "/mine.jar"})["spark.driver.extraClassPath"]
    assert path == "/jars/a.jar:/jars/b.jar:/mine.jar"


def test_spark_writes_all_files_to_one_directory() -> None:
    properties = conf()
    for key in ("spark.local.dir", "spark.sql.warehouse.dir", "spark.python.unix.domain.socket.dir"):
        assert properties[key].startswith("/work/x")
    assert "-Djava.io.tmpdir=/work/x" in properties["spark.driver.extraJavaOptions"]


def test_the_directory_of_a_killed_process_is_removed_although_its_process_id_is_in_use(
    tmp_path: Path,
) -> None:
    number = os.getpid()
    orphaned, foreign = tmp_path / f"s3sink-spark-{number}-abc", tmp_path / "s3sink-spark-x-abc"
    for folder in (orphaned, foreign):
        folder.mkdir()
        (folder / "file").touch()
    with session._work_dir(tmp_path) as own:
        assert own.is_dir()
        assert (orphaned.exists(), foreign.exists()) == (False, True)
    assert not own.exists()


def test_the_directory_of_a_killed_process_is_removed_at_the_next_start(tmp_path: Path) -> None:
    code = "import os, pathlib, sys; from sink_job.spark import session\n"
    code += "with session._work_dir(pathlib.Path(sys.argv[1])) as folder: os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    [orphaned] = tmp_path.iterdir()
    with session._work_dir(tmp_path):
        assert not orphaned.exists()


def test_the_directory_of_a_running_process_is_kept(tmp_path: Path) -> None:
    with session._work_dir(tmp_path) as first, session._work_dir(tmp_path):
        assert first.is_dir()


def test_the_jvm_uses_the_cds_archive_of_its_jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jars, "cache_dir", lambda: tmp_path)
    jar = tmp_path / "a.jar"
    jar.touch()
    settings = SparkSettings(app_name="sink", jars=[jar])
    archive = jars.archive_path([jar])

    def options() -> str:
        return spark_conf(settings, Path("/work/x"), Path("/work/x"), Path("/conf/x"))["spark.driver.extraJavaOptions"]

    assert "-XX:SharedArchiveFile" not in options()
    archive.parent.mkdir()
    archive.touch()
    assert f"-XX:SharedArchiveFile={archive}" in options()


@pytest.mark.parametrize(
    ("path", "word"),
    [("/a b", '"-Dx=/a b"'), ('/a"\\b', '"-Dx=/a\\"\\\\b"'), ("/it's", '"-Dx=/it\'s"'), ("/ab", "-Dx=/ab")],
)
def test_an_option_with_any_path_is_one_word_of_the_jvms_options(path: str, word: str) -> None:
    assert java_option(f"-Dx={path}") == word
    assert shlex.split(word) == [f"-Dx={path}"]


def test_the_directories_of_a_session_may_have_spaces() -> None:
    settings = SparkSettings(app_name="sink", jars=[])
    properties = spark_conf(settings, Path("/work/my dir"), Path("/work/x"), Path("/conf/x"))
    assert "-Djava.io.tmpdir=/work/my dir" in shlex.split(properties["spark.driver.extraJavaOptions"])


def test_other_jars_have_another_cds_archive(tmp_path: Path) -> None:
    one, other = tmp_path / "a.jar", tmp_path / "b.jar"
    one.touch()
    other.touch()
    assert jars.archive_path([one]) != jars.archive_path([one, other])
