"""The Python workers of a running Spark."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator

import pytest
from pyspark import SparkContext

pytestmark = [pytest.mark.data, pytest.mark.spark]


def test_a_worker_starts_with_the_imports_of_a_task_and_the_installed_pyspark(spark: SparkContext) -> None:
    def modules(rows: Iterable[int]) -> Iterator[tuple[bool, str]]:
        yield "sink_job.writer.task_attempt" in sys.modules, str(sys.modules["pyspark.worker"].__file__)

    [(imported, file)] = spark.parallelize([0], 1).mapPartitions(modules).collect()
    assert imported
    assert ".zip" not in file
