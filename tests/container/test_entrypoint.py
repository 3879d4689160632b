"""The entry point of the job image: a Spark executor if Spark requests one, otherwise the given command."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from container import entrypoint
from sink_job.kafka.jvm import java_binary

SPARK = Path("/opt/spark")
EXECUTOR = {
    "JAVA_HOME": "/opt/java",
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.1:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "640m",
    "SPARK_APPLICATION_ID": "flights-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.2",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "flights-1-exec-3",
}


def test_a_command_is_run_unchanged() -> None:
    assert entrypoint.command(["s3sink", "run", "sink.yaml"], {}, SPARK) == ["s3sink", "run", "sink.yaml"]


def test_an_executor_is_started_with_the_variables_of_spark() -> None:
    words = entrypoint.command(["executor"], EXECUTOR, SPARK)
    assert words[0] == "/opt/java/bin/java"
    assert words[1:5] == ["-Xms640m", "-Xmx640m", "-cp", "/opt/spark/conf:/opt/spark/jars/*"]
    arguments = words[words.index(entrypoint.BACKEND) + 1 :]
    assert dict(zip(arguments[::2], arguments[1::2], strict=True)) == {
        "--driver-url": "spark://CoarseGrainedScheduler@10.0.0.1:7078",
        "--executor-id": "3",
        "--cores": "2",
        "--app-id": "flights-1",
        "--hostname": "10.0.0.2",
        "--resourceProfileId": "0",
        "--podName": "flights-1-exec-3",
    }


def test_java_options_are_ordered_by_number() -> None:
    options = {f"SPARK_JAVA_OPT_{number}": f"-Dn={number}" for number in (10, 2, 0)}
    words = entrypoint.command(["executor"], EXECUTOR | options, SPARK)
    assert words[1:4] == ["-Dn=0", "-Dn=2", "-Dn=10"]


def test_the_class_path_of_spark_comes_first() -> None:
    words = entrypoint.command(["executor"], EXECUTOR | {"SPARK_CLASSPATH": "/extra/*"}, SPARK)
    assert words[words.index("-cp") + 1] == "/extra/*:/opt/spark/conf:/opt/spark/jars/*"


def test_executor_and_driver_have_the_same_class_path_for_the_cds_archive() -> None:
    home = entrypoint.spark_home()
    launcher = [java_binary(), "-cp", f"{home}/jars/*", "org.apache.spark.launcher.Main"]
    command = [
        *launcher,
        "org.apache.spark.deploy.SparkSubmit",
        "--conf",
        "spark.driver.extraClassPath=/a.jar",
        "shell",
    ]
    environment = {"PATH": os.environ["PATH"], "SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13"}
    of_driver = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.split("\0")
    of_executor = entrypoint.command(["executor"], EXECUTOR | {"SPARK_CLASSPATH": "/a.jar"}, home)
    assert of_executor[of_executor.index("-cp") + 1] == of_driver[of_driver.index("-cp") + 1]


def test_an_executor_without_its_variables_reports_the_missing_ones() -> None:
    with pytest.raises(SystemExit, match="SPARK_DRIVER_URL"):
        entrypoint.command(["executor"], EXECUTOR | {"SPARK_DRIVER_URL": ""}, SPARK)


def test_a_numeric_user_gets_a_name_that_all_programs_see(tmp_path: Path) -> None:
    set_up = entrypoint.naming(123456, 0, Path("/usr/lib/libnss_wrapper.so"), tmp_path)
    line = Path(set_up["NSS_WRAPPER_PASSWD"]).read_text()
    assert line == f"s3sink:x:123456:0::{tmp_path}:/usr/sbin/nologin\n"
    assert set_up["LD_PRELOAD"] == "/usr/lib/libnss_wrapper.so"


def test_root_has_a_name_and_a_cluster_uid_has_none() -> None:
    assert entrypoint.is_named(0)
    assert not entrypoint.is_named(1_000_680_000)
