"""The command of the driver's JVM, compared with that of Spark's own launcher."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pyspark
import pytest

from sink_job.spark.conf import SparkSettings, spark_conf
from sink_job.spark.java_command import java_command

HOME = Path(pyspark.__file__).resolve().parent
SUBMIT = str(HOME / "bin" / "spark-submit")


def submit(conf: Mapping[str, str]) -> list[str]:
    return [SUBMIT, *(word for name, value in conf.items() for word in ("--conf", f"{name}={value}")), "pyspark-shell"]


def launched(words: list[str]) -> list[str]:
    """The words of the command that Spark's launcher puts together."""
    environment = {"PATH": os.environ["PATH"], "SPARK_HOME": str(HOME), "SPARK_SCALA_VERSION": "2.13"}
    launcher = [
        "java",
        "-Xmx128m",
        "-XX:TieredStopAtLevel=1",
        "-cp",
        f"{HOME}/jars/*",
        "org.apache.spark.launcher.Main",
    ]
    command = [*launcher, "org.apache.spark.deploy.SparkSubmit", *words[1:]]
    written = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout.decode()
    return written.lstrip("\n\0").rstrip("\0").split("\0")


def of_sink(tmp_path: Path, **conf: str) -> dict[str, str]:
    jars = [tmp_path / "with space" / "kafka-clients.jar"]
    return spark_conf(SparkSettings(app_name="a sink", jars=jars, cores=2, conf=conf), tmp_path, tmp_path, tmp_path)


USERS = {
    "spark.driver.extraJavaOptions": "-Da='b c' \"-Dd=e f\" -verbose:gc",
    "spark.driver.extraClassPath": "/more/*:/classes",
    "spark.executor.extraJavaOptions": "-XX:+UseParallelGC",
}


@pytest.mark.parametrize("users", [{}, USERS], ids=["none", "the user's"])
def test_the_command_is_that_of_sparks_launcher_after_the_path_of_java(tmp_path: Path, users: dict[str, str]) -> None:
    words = submit(of_sink(tmp_path, **users))
    command = java_command(words, {"PATH": os.environ["PATH"]})
    assert command is not None
    expected = launched(words)
    conf = expected.index("org.apache.spark.deploy.SparkSubmit") + 1
    assert command.words[1:conf] == expected[1:conf]
    assert sorted(command.words[conf:]) == sorted(expected[conf:]), "the launcher sorts properties by hash"
    assert os.path.realpath(command.words[0]) == os.path.realpath(expected[0])


def test_the_environment_has_what_sparks_scripts_add(tmp_path: Path) -> None:
    command = java_command(submit(of_sink(tmp_path)), {"PATH": os.environ["PATH"]})
    assert command is not None
    assert command.environment == {"SPARK_HOME": str(HOME), "SPARK_SCALA_VERSION": "2.13", "PYTHONHASHSEED": "0"}


def test_java_home_decides_which_java_runs(tmp_path: Path) -> None:
    command = java_command(submit(of_sink(tmp_path)), {"PATH": "/none", "JAVA_HOME": "/opt/java"})
    assert command is not None
    assert command.words[0] == "/opt/java/bin/java"


@pytest.mark.parametrize(
    "conf",
    [
        {"spark.driver.extraJavaOptions": "-Xmx1g"},
        {"spark.driver.extraJavaOptions": "-Da=b\\ c"},
        {"spark.driver.extraJavaOptions": "-Da='b"},
        {"spark.driver.defaultJavaOptions": "-Da=b"},
        {"spark.driver.extraLibraryPath": "/lib"},
    ],
    ids=lambda conf: " ".join(map("=".join, conf.items())),
)
def test_options_that_only_the_launcher_knows_are_left_to_it(conf: dict[str, str]) -> None:
    assert java_command(submit(conf), {"PATH": os.environ["PATH"]}) is None


@pytest.mark.parametrize("name", ["SPARK_CONF_DIR", "HADOOP_CONF_DIR", "SPARK_DIST_CLASSPATH", "SPARK_SUBMIT_OPTS"])
def test_an_environment_that_only_the_launcher_knows_is_left_to_it(tmp_path: Path, name: str) -> None:
    environment = {"PATH": os.environ["PATH"], name: "/elsewhere"}
    assert java_command(submit(of_sink(tmp_path)), environment) is None


def test_other_words_and_a_missing_java_are_left_to_the_launcher(tmp_path: Path) -> None:
    words = submit(of_sink(tmp_path))
    assert java_command([*words[:-1], "--verbose", "x", words[-1]], {"PATH": os.environ["PATH"]}) is None
    assert java_command(words, {"PATH": str(tmp_path)}) is None


def test_a_spark_with_a_folder_of_configuration_is_left_to_the_launcher(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    words = [str(tmp_path / "bin" / "spark-submit"), *submit({"spark.master": "local"})[1:]]
    assert java_command(words, {"PATH": os.environ["PATH"]}) is None
