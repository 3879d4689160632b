"""Builds the manifests of a sink's objects from the sink and the settings of the operator. Pure.

A manifest has no fields that the API server sets, so it can be compared with the current object: `differs` returns
whether an apply would change it.
"""

from s3sink_operator.objects.allocation import current_allocation, memory_bounds
from s3sink_operator.objects.configmap import (
    config_map,
    job_manifest,
    source_hash,
    spec_hash,
    supporting_objects,
    template_hash,
)
from s3sink_operator.objects.diff import differs
from s3sink_operator.objects.pod_template import CONTAINER, merge_template
from s3sink_operator.objects.pods import (
    EXECUTOR_MEMORY_ANNOTATION,
    OPERATION_ANNOTATION,
    RESTARTED_FOR_ANNOTATION,
    PodShape,
    driver_pod,
    executor_template,
    has_executors,
    image_of,
    memory_limit,
    operation_of,
    operation_pod,
    report_port,
    sized_memory,
)
from s3sink_operator.objects.rbac import role_binding, service_account, service_account_of
from s3sink_operator.objects.spark_properties import spark_properties

__all__ = [
    "CONTAINER",
    "EXECUTOR_MEMORY_ANNOTATION",
    "OPERATION_ANNOTATION",
    "RESTARTED_FOR_ANNOTATION",
    "PodShape",
    "config_map",
    "current_allocation",
    "differs",
    "driver_pod",
    "executor_template",
    "has_executors",
    "image_of",
    "job_manifest",
    "memory_bounds",
    "memory_limit",
    "merge_template",
    "operation_of",
    "operation_pod",
    "report_port",
    "role_binding",
    "service_account",
    "service_account_of",
    "sized_memory",
    "source_hash",
    "spark_properties",
    "spec_hash",
    "supporting_objects",
    "template_hash",
]
