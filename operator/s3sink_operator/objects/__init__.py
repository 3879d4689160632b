"""Builders of a sink's objects: a sink and what the operator was started with in, the whole manifest out. Pure.

What is built says all that it needs and nothing that the API server fills in, so that it can be compared with what is
there: `differs` tells whether an apply would change anything.
"""

from s3sink_operator.objects.configmap import base, config_map, manifest, spec_hash
from s3sink_operator.objects.diff import differs
from s3sink_operator.objects.pod_template import CONTAINER, merged
from s3sink_operator.objects.pods import (
    EXECUTOR_MEMORY,
    RESTARTED_FOR,
    TASK_REQUEST,
    Shape,
    driver_pod,
    executor_template,
    has_executors,
    image_of,
    memory_of,
    request_of,
    size_of,
    task_pod,
)
from s3sink_operator.objects.rbac import account, account_of, binding
from s3sink_operator.objects.spark_properties import spark_properties

__all__ = [
    "CONTAINER",
    "EXECUTOR_MEMORY",
    "RESTARTED_FOR",
    "TASK_REQUEST",
    "Shape",
    "account",
    "account_of",
    "base",
    "binding",
    "config_map",
    "differs",
    "driver_pod",
    "executor_template",
    "has_executors",
    "image_of",
    "manifest",
    "memory_of",
    "merged",
    "request_of",
    "size_of",
    "spark_properties",
    "spec_hash",
    "task_pod",
]
