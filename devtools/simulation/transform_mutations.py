"""Deliberate defects of transforms, as in `devtools.simulation.mutations`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

import pyarrow as pa

from sink_job.api.topic_partition import TopicPartition
from sink_job.arrow.arrays import Mask
from sink_job.converters.base import Converted
from sink_job.records.fields import Rejections
from sink_job.writer.null_values import NullPolicy
from sink_job.writer.object_rebuilder import RebuildTask

Patches = Sequence[AbstractContextManager[Any]]


def filtered_records_written() -> Patches:
    """A filtered record has a row in an object."""
    original = NullPolicy.skipped

    def skipped(self: NullPolicy, converted: Converted, rejected: Rejections) -> Mask:
        return original(self, replace(converted, filtered=None), rejected)

    return [patch.object(NullPolicy, "skipped", skipped)]


def rebuilds_without_transforms() -> Patches:
    """A rebuild reads the values as they are in Kafka."""
    original = RebuildTask.__call__

    def call(self: RebuildTask, tp: TopicPartition, task_input: bytes, batches: Iterator[pa.RecordBatch]) -> bytes:
        with patch.object(self, "pipeline", replace(self.pipeline, transforms=None)):
            return original(self, tp, task_input, batches)

    return [patch.object(RebuildTask, "__call__", call)]


TRANSFORM_MUTATIONS: dict[str, Callable[[], Patches]] = {
    each.__name__: each for each in (filtered_records_written, rebuilds_without_transforms)
}

TRANSFORM_INCLUDE = {
    "filtered_records_written": ("transforms",),
    "rebuilds_without_transforms": ("transforms", "lifecycle"),
}
"""The features that a run needs to find a defect."""
