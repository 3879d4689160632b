"""The ServiceAccount of a sink's pods and its RoleBinding."""

from __future__ import annotations

import hashlib
import json
from typing import Final

from s3sink_operator import names
from s3sink_operator.names import Component
from s3sink_operator.types import Json, Settings
from sink_job.api.spec import GROUP, Sink

ANNOTATIONS_HASH_ANNOTATION: Final = f"{GROUP}/annotations-hash"
"""Annotation of a ServiceAccount: a digest of the annotations in the spec, which detects a removed one."""


def service_account_of(sink: Sink) -> str:
    """The name of the ServiceAccount of the pods: that of the spec, or the one that the operator creates."""
    return sink.spec.service_account.name or names.service_account_name(sink.name)


def service_account(sink: Sink, owner: Json) -> Json:
    """The ServiceAccount of the sink. It is created even if the spec names another one, so that an edited sink has the
    same objects as a new one."""
    made = child_object("v1", "ServiceAccount", names.service_account_name(sink.name), sink, owner)
    if annotations := sink.spec.service_account.annotations:
        digest = hashlib.sha256(json.dumps(annotations, sort_keys=True).encode()).hexdigest()[:16]
        made["metadata"]["annotations"] = annotations | {ANNOTATIONS_HASH_ANNOTATION: digest}
    return made


def role_binding(sink: Sink, owner: Json, settings: Settings) -> Json:
    """The RoleBinding of the driver to the ClusterRole of the chart, in its own namespace. For Cluster mode only."""
    group = "rbac.authorization.k8s.io"
    return child_object(f"{group}/v1", "RoleBinding", names.role_binding_name(sink.name), sink, owner) | {
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": settings.driver_cluster_role},
        "subjects": [{"kind": "ServiceAccount", "name": service_account_of(sink), "namespace": sink.namespace}],
    }


def child_object(version: str, kind: str, name: str, sink: Sink, owner: Json) -> Json:
    """The metadata of an object beside the pods."""
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": sink.namespace,
            "labels": names.labels(sink.name, Component.CONFIG),
            "ownerReferences": [owner],
        },
    }
