"""The Spark configuration, in local mode and for executor pods."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import pytest

from sink_job.api.errors import ConfigurationError
from sink_job.api.memory_budget import heap_of
from sink_job.spark import jars
from sink_job.spark.conf import SparkSettings, java_option, spark_conf
from sink_job.spark.executor_pods import ExecutorConfig

SIZES = {
    "spark.executor.instances": "3",
    "spark.executor.cores": "2",
    "spark.executor.memory": "640m",
    "spark.executor.memoryOverhead": "1000m",
}


def conf(sockets: str = "/work/x", **given: str) -> dict[str, str]:
    settings = SparkSettings(
        app_name="sink", jars=[Path("/jars/a.jar"), Path("/jars/b.jar")], cores=3, heap=512 << 20, conf=given
    )
    return spark_conf(settings, Path("/work/x"), Path(sockets), Path("/conf/log4j2.properties"))


def test_failed_tasks_are_retried_in_local_mode() -> None:
    assert conf()["spark.master"] == "local[3,4]"


def test_speculation_is_disabled() -> None:
    assert conf()["spark.speculation"] == "false"


@pytest.mark.parametrize(("name", "enabled"), [("x" * 59, "true"), ("x" * 60, "false"), ("ü" * 30, "false")])
def test_workers_use_unix_domain_sockets_unless_the_path_is_too_long(name: str, enabled: str) -> None:
    assert conf("/" + name)["spark.python.unix.domain.socket.enabled"] == enabled


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


def test_the_users_class_path_follows_kafkas_client() -> None:
    path = conf(**{"spark.driver.extraClassPath": "/mine.jar"})["spark.driver.extraClassPath"]
    assert path == "/jars/a.jar:/jars/b.jar:/mine.jar"


def test_spark_writes_all_files_to_one_directory() -> None:
    properties = conf()
    for key in ("spark.local.dir", "spark.python.unix.domain.socket.dir"):
        assert properties[key].startswith("/work/x")
    assert "-Djava.io.tmpdir=/work/x" in properties["spark.driver.extraJavaOptions"]


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
    in_place = "-XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"
    assert f"-XX:SharedArchiveFile={archive} {in_place}" in options()


@pytest.mark.parametrize(
    ("path", "word"),
    [("/a b", '"-Dx=/a b"'), ('/a"\\b', '"-Dx=/a\\"\\\\b"'), ("/it's", '"-Dx=/it\'s"'), ("/ab", "-Dx=/ab")],
)
def test_an_option_with_any_path_is_one_word_of_the_jvms_options(path: str, word: str) -> None:
    assert java_option(f"-Dx={path}") == word
    assert shlex.split(word) == [f"-Dx={path}"]


def test_options_of_a_login_are_those_of_the_driver_and_of_executors() -> None:
    option = "-Dallowed.urls=https://login.example.com/token?a=b"
    cluster = ExecutorConfig(properties={}, instances=1, cores=1, memory=1 << 30)
    settings = SparkSettings(app_name="sink", jars=[], java_options=[option], cluster=cluster)
    properties = spark_conf(settings, Path("/work/x"), Path("/work/x"), Path("/conf/x"))
    for side in ("driver", "executor"):
        assert option in shlex.split(properties[f"spark.{side}.extraJavaOptions"])


def test_the_directories_of_a_session_may_have_spaces() -> None:
    settings = SparkSettings(app_name="sink", jars=[])
    properties = spark_conf(settings, Path("/work/my dir"), Path("/work/x"), Path("/conf/x"))
    assert "-Djava.io.tmpdir=/work/my dir" in shlex.split(properties["spark.driver.extraJavaOptions"])


def cluster_conf(**given: str) -> dict[str, str]:
    settings = SparkSettings(
        app_name="sink",
        jars=[Path("/jars/a.jar"), Path("/jars/b.jar")],
        heap=512 << 20,
        conf=given,
        cluster=ExecutorConfig.of(SIZES | {"spark.master": "k8s://https://here", "spark.driver.host": "10.1.2.3"}),
    )
    return spark_conf(settings, Path("/tmp/x"), Path("/tmp/x"), Path("/conf/log4j2.properties"))


def test_the_operators_properties_of_the_cluster_are_kept() -> None:
    properties = cluster_conf()
    assert (properties["spark.master"], properties["spark.driver.host"]) == ("k8s://https://here", "10.1.2.3")
    assert properties["spark.executor.instances"] == "3"
    assert "spark.driver.bindAddress" not in properties


def test_executors_use_the_same_paths_of_kafkas_client_and_logging_as_the_driver() -> None:
    properties = cluster_conf(
        **{"spark.executor.extraClassPath": "/mine.jar", "spark.executor.extraJavaOptions": "-Da=b"}
    )
    assert properties["spark.executor.extraClassPath"] == "/jars/a.jar:/jars/b.jar:/mine.jar"
    options = properties["spark.executor.extraJavaOptions"]
    assert options.startswith("-Da=b ")
    assert "-Dlog4j2.configurationFile=file:///conf/log4j2.properties" in options


def test_the_sockets_of_workers_in_a_pod_are_in_tmp() -> None:
    assert cluster_conf()["spark.python.unix.domain.socket.dir"] == "/tmp"


def test_a_task_in_a_pod_has_as_many_attempts_as_in_local_mode() -> None:
    assert cluster_conf()["spark.task.maxFailures"] == "4"


def test_the_number_of_concurrent_tasks_is_that_of_the_cpus_by_default() -> None:
    settings = SparkSettings(app_name="sink", jars=[])
    properties = spark_conf(settings, Path("/work/x"), Path("/work/x"), Path("/conf/x"))
    assert properties["spark.master"] == f"local[{len(os.sched_getaffinity(0))},4]"


def test_the_heap_is_in_whole_mebibytes() -> None:
    assert conf()["spark.driver.memory"] == "512m"


@pytest.mark.parametrize("key", ["spark.local.dir", "spark.master"])
def test_all_properties_that_the_sink_sets_are_named_at_once(key: str) -> None:
    with pytest.raises(ConfigurationError) as raised:
        conf(**{key: "x", "spark.task.maxFailures": "1", "spark.ui.port": "1"})
    assert str(raised.value) == (
        f"spec.sparkConf: {key}, spark.task.maxFailures: set by the sink; remove it from the spec"
    )


def test_the_packages_of_executors_follow_those_of_the_sink() -> None:
    own, *users = cluster_conf(**{"spark.executorEnv.PYTHONPATH": "/mine"})["spark.executorEnv.PYTHONPATH"].split(":")
    assert (Path(own) / "sink_job" / "spark").is_dir()
    assert users == ["/mine"]


@pytest.mark.parametrize(("cores", "processors"), [(1, 2), (2, 2), (8, 8)])
def test_the_jvm_of_an_executor_sees_its_cores_and_not_those_of_the_node(cores: int, processors: int) -> None:
    cluster = ExecutorConfig.of(SIZES | {"spark.executor.cores": str(cores)})
    settings = SparkSettings(app_name="sink", jars=[], cluster=cluster)
    properties = spark_conf(settings, Path("/tmp/x"), Path("/tmp/x"), Path("/conf/x"))
    assert f"-XX:ActiveProcessorCount={processors}" in properties["spark.executor.extraJavaOptions"].split()
    assert "ActiveProcessorCount" not in properties["spark.driver.extraJavaOptions"]


@pytest.mark.parametrize(
    ("cores", "options"),
    [
        (1, ["-XX:+UseSerialGC", "-Xmn72m", "-XX:SurvivorRatio=2"]),
        (4, ["-XX:+UseSerialGC", "-Xmn144m", "-XX:SurvivorRatio=2"]),
        (5, ["-XX:+UseParallelGC"]),
    ],
)
def test_the_fetches_of_each_task_fit_into_the_young_generation_of_a_serial_collector(
    cores: int, options: list[str]
) -> None:
    settings = SparkSettings(app_name="sink", jars=[], cores=cores)
    properties = spark_conf(settings, Path("/work/x"), Path("/work/x"), Path("/conf/x"))
    found = properties["spark.driver.extraJavaOptions"].split()
    assert [each for each in found if "GC" in each or "Xmn" in each or "Survivor" in each] == options


@pytest.mark.parametrize("option", ["-XX:+UseParallelGC", "-Xlog:gc -XX:+UseZGC", "-Xmn200m", "-XX:NewRatio=3"])
def test_a_users_collector_or_young_generation_replaces_those_of_the_sink(option: str) -> None:
    """A JVM with two collectors does not start."""
    users = {"spark.driver.extraJavaOptions": option, "spark.executor.extraJavaOptions": option}
    cluster = ExecutorConfig.of(SIZES)
    settings = SparkSettings(app_name="sink", jars=[], conf=users, cluster=cluster)
    properties = spark_conf(settings, Path("/work/x"), Path("/work/x"), Path("/conf/x"))
    for key in users:
        found = properties[key].split()
        assert [each for each in found if "GC" in each or "Xmn" in each or "New" in each or "Survivor" in each] == [
            each for each in option.split() if each != "-Xlog:gc"
        ]


def test_the_smallest_heap_leaves_spark_what_it_requires() -> None:
    """Spark asks for 450 MiB of the heap without one of the survivor spaces."""
    for cores in range(1, 33):
        survivors = (48 + 24 * cores) / 4 if cores <= 4 else heap_of(cores) / 2**20 / 3 / 8
        assert heap_of(cores) / 2**20 - survivors > 450


def test_a_jvm_and_its_workers_have_two_arenas_of_malloc() -> None:
    assert conf()["spark.executorEnv.MALLOC_ARENA_MAX"] == "2"


def test_the_modules_of_the_sinks_tasks_are_named_to_the_workers() -> None:
    settings = SparkSettings(app_name="sink", jars=[], task_modules=("a.b", "c"))
    properties = spark_conf(settings, Path("/work/x"), Path("/work/x"), Path("/conf/x"))
    assert properties["spark.executorEnv.S3SINK_TASK_MODULES"] == "a.b c"
