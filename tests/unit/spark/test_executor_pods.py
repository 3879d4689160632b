"""Executors in pods of their own: how they are described, and what Spark is told of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s3sink_operator.objects.spark_properties import properties_file
from sink_job.api.errors import ConfigurationError
from sink_job.api.quantities import MI
from sink_job.spark.conf import SparkSettings, spark_conf
from sink_job.spark.executor_pods import ExecutorConfig, parse_properties, read_executor_config

SIZES = {
    "spark.executor.instances": "3",
    "spark.executor.cores": "2",
    "spark.executor.memory": "640m",
    "spark.executor.memoryOverhead": "1000m",
}


def conf(**given: str) -> dict[str, str]:
    settings = SparkSettings(
        app_name="sink",
        jars=[Path("/jars/a.jar"), Path("/jars/b.jar")],
        heap=512 << 20,
        conf=given,
        cluster=ExecutorConfig.of(SIZES | {"spark.master": "k8s://https://here", "spark.driver.host": "10.1.2.3"}),
    )
    return spark_conf(settings, Path("/tmp/x"), Path("/tmp/x"), Path("/conf/log4j2.properties"))


def test_executors_are_counted_and_sized_by_sparks_own_properties() -> None:
    found = ExecutorConfig.of(SIZES)
    assert (found.instances, found.cores, found.slots, found.memory) == (3, 2, 6, 1640 * MI)


@pytest.mark.parametrize("name", SIZES)
@pytest.mark.parametrize("value", ["", "many", "0.5g"])
def test_a_size_that_is_none_is_refused_by_name(name: str, value: str) -> None:
    with pytest.raises(ConfigurationError, match=name.replace(".", r"\.")):
        ExecutorConfig.of(SIZES | {name: value})


@given(st.dictionaries(st.from_regex(r"spark\.[a-z.]{1,9}", fullmatch=True), st.text(st.characters(codec="latin-1"))))
def test_the_file_that_the_operator_writes_is_read_as_it_was_meant(properties: dict[str, str]) -> None:
    meant = {name: value for name, value in properties.items() if value.isprintable()}
    assert dict(parse_properties(properties_file(meant))) == meant


def test_the_environment_fills_in_what_only_the_pod_knows(tmp_path: Path) -> None:
    file = tmp_path / "spark.properties"
    file.write_text(properties_file(SIZES | {"spark.driver.host": "${POD_IP}"}))
    assert read_executor_config(file, {"POD_IP": "10.1.2.3"}).properties["spark.driver.host"] == "10.1.2.3"


def test_a_variable_that_is_not_set_is_told_with_the_property_that_needs_it(tmp_path: Path) -> None:
    file = tmp_path / "spark.properties"
    file.write_text(properties_file(SIZES | {"spark.driver.host": "${POD_IP}"}))
    with pytest.raises(ConfigurationError, match=r"spark\.driver\.host needs \$POD_IP"):
        read_executor_config(file, {})


def test_a_file_that_is_not_there_is_told_by_its_path(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"--spark-properties .*nothing\.properties"):
        read_executor_config(tmp_path / "nothing.properties", {})


def test_what_the_operator_says_of_the_cluster_stands() -> None:
    made = conf()
    assert (made["spark.master"], made["spark.driver.host"]) == ("k8s://https://here", "10.1.2.3")
    assert made["spark.executor.instances"] == "3"
    assert "spark.driver.bindAddress" not in made


def test_executors_find_the_connector_and_the_logging_where_the_driver_does() -> None:
    made = conf(**{"spark.executor.extraClassPath": "/mine.jar", "spark.executor.extraJavaOptions": "-Da=b"})
    assert made["spark.executor.extraClassPath"] == "/jars/a.jar:/jars/b.jar:/mine.jar"
    assert made["spark.executor.extraJavaOptions"].startswith("-Da=b -XX:+UseParallelGC")
    assert "-Dlog4j2.configurationFile=file:///conf/log4j2.properties" in made["spark.executor.extraJavaOptions"]


def test_workers_sockets_are_where_every_pod_has_a_folder_of_its_own() -> None:
    assert conf()["spark.python.unix.domain.socket.dir"] == "/tmp"


def test_a_task_is_tried_as_often_as_in_one_process() -> None:
    assert conf()["spark.task.maxFailures"] == "4"
