"""What a driver does at SIGTERM: its `StopAction`, sent with each poll of its report.

A deleted namespace ends the driver at once, no other pod can be created in it, and the S3Sink is deleted only after the
pods. So a driver with deletionPolicy Publish asks at SIGTERM, and publishes if its namespace is terminating. For every
other end, such as a restart or a drained node, the next driver continues with the open objects.
"""

from __future__ import annotations

from s3sink_operator.types import Json, is_terminating
from sink_job.api.enums import DeletionPolicy, StopAction


def has_publish_policy(sink: Json) -> bool:
    """Whether deletionPolicy is Publish, as it is written."""
    spec = sink.get("spec")
    return isinstance(spec, dict) and spec.get("deletionPolicy") == DeletionPolicy.PUBLISH.value


def stop_action(sink: Json, driver: Json, *, namespace_terminating: bool) -> StopAction:
    """The action of `driver`. `namespace_terminating` matters once the pod is being deleted."""
    if not has_publish_policy(sink):
        return StopAction.EXIT
    if not is_terminating(driver):
        return StopAction.ASK
    return StopAction.PUBLISH if namespace_terminating else StopAction.EXIT
