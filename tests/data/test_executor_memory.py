"""The memory of new executors of a running Spark application."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark import SparkContext

from sink_job.api.units.quantities import MI
from sink_job.spark.executor_pods import ExecutorConfig
from sink_job.spark.executor_scaling import ExecutorScaler

pytestmark = [pytest.mark.data, pytest.mark.spark]


def test_new_executors_of_a_running_application_get_the_new_memory(spark: SparkContext) -> None:
    """As Spark's Kubernetes backend computes the memory of an executor pod."""
    jvm: Any = spark._jvm
    context = spark._jsc.sc()
    profiles = getattr(jvm.org.apache.spark.resource, "ResourceProfile$").__getattr__("MODULE$")
    nothing = getattr(jvm.scala.collection.immutable, "Map$").__getattr__("MODULE$").empty()
    requests = context.resourceProfileManager().defaultResourceProfile().executorResources()
    before = context.conf().clone()

    def overhead() -> int:
        conf = context.conf().clone()
        made = profiles.getResourcesForClusterManager(0, requests, 384, 0.1, conf, True, nothing)
        return int(made.memoryOverheadMiB())

    scaler = ExecutorScaler(spark, ExecutorConfig(properties={}, instances=1, cores=1, memory=1024 * MI))
    try:
        scaler.resize(2048 * MI)
        assert overhead() == 2048 - 480
        scaler.resize(600 * MI)
        assert overhead() == 384
    finally:
        context.conf().remove("spark.executor.memoryOverhead")
        profiles.reInitDefaultProfile(before)
