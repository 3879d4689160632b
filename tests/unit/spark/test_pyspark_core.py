"""PySpark without Spark SQL."""

from __future__ import annotations

import subprocess
import sys

import pytest

_CORE = """
import sys
from sink_job.spark.pyspark_core import SparkConf, SparkContext
print(sorted(name for name in sys.modules if name.startswith(("pyspark.sql", "pyspark.testing", "pandas"))))
"""
_SQL_AFTERWARDS = """
from sink_job.spark.pyspark_core import SparkContext
import pyspark
print(hasattr(pyspark, "Row"))
from pyspark.sql import Row, SparkSession
print(SparkSession.__module__, Row.__module__)
"""
_SQL_BEFORE = """
import pyspark, sys
from sink_job.spark.pyspark_core import SparkContext
print(SparkContext is pyspark.SparkContext, "pyspark.sql.session" in sys.modules, pyspark.Row.__module__)
"""


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        pytest.param(_CORE, "[]\n", id="nothing of Spark SQL is imported"),
        pytest.param(_SQL_AFTERWARDS, "False\npyspark.sql.session pyspark.sql.types\n", id="it can be imported later"),
        pytest.param(_SQL_BEFORE, "True True pyspark.sql.types\n", id="a PySpark imported before stays whole"),
    ],
)
def test_the_driver_needs_no_spark_sql(program: str, expected: str) -> None:
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")
