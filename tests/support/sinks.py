"""S3Sinks on a real API server: a place for them, and trying one out without keeping it."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator

from devtools.kube.client import ApiError, Json, Kube
from devtools.kube.control_plane import Cluster
from s3sink_operator import crd


@contextlib.contextmanager
def place_for_sinks(cluster: Cluster) -> Iterator[Kube]:
    """The API server with the CRD as the models make it now, in a namespace that is gone afterwards."""
    cluster.install_crd(crd.crd())
    everywhere = cluster.client()
    name = f"sinks-{secrets.token_hex(4)}"
    everywhere.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield everywhere.within(name)
    everywhere.delete("Namespace", name)


def tried(sinks: Kube, manifest: Json) -> Json:
    """What the API server would make of a new object, strictly read. Raises ApiError where it refuses it."""
    path = f"/apis/s3sink.io/v1alpha1/namespaces/{sinks.namespace}/s3sinks"
    return sinks.request("POST", path, manifest, query={"dryRun": "All", "fieldValidation": "Strict"})


def causes(error: ApiError) -> list[str]:
    """What a refusal names, one by one."""
    return [str(cause["message"]) for cause in error.answer.get("details", {}).get("causes", ())]
