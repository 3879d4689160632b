"""The JVM in which Spark puts together the command of the JVM that stays, where the sink leaves it to Spark."""

from __future__ import annotations

import sys

import pytest
from pyspark import java_gateway

from sink_job.spark.session import _recorded_process


@pytest.mark.parametrize(
    ("given", "expected"),
    [({}, "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"), ({"SPARK_LAUNCHER_OPTS": "-Xmx64m"}, "-Xmx64m")],
    ids=["default", "the user's"],
)
def test_the_launcher_has_options_of_a_short_run(given: dict[str, str], expected: str) -> None:
    environment = dict(given)
    with _recorded_process() as launched:
        java_gateway.Popen([sys.executable, "-c", ""], env=environment)  # type: ignore[attr-defined]
    assert launched[0].wait(60) == 0
    assert environment["SPARK_LAUNCHER_OPTS"] == expected
