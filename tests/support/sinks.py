"""S3Sinks on a real API server: a namespace for them, and dry-run creation."""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator

from devtools.kube.client import ApiError, Json, Kube
from devtools.kube.control_plane import Cluster
from s3sink_operator import crd


@contextlib.contextmanager
def place_for_sinks(cluster: Cluster) -> Iterator[Kube]:
    """The API server with the current CRD, in a namespace that is deleted afterwards."""
    cluster.install_crd(crd.crd())
    everywhere = cluster.client()
    name = f"sinks-{secrets.token_hex(4)}"
    everywhere.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield everywhere.within(name)
    everywhere.delete("Namespace", name)


def tried(sinks: Kube, manifest: Json) -> Json:
    """Creates an object with strict validation as a dry run; returns it. Raises ApiError if the server rejects it."""
    path = f"/apis/s3sink.io/v1alpha1/namespaces/{sinks.namespace}/s3sinks"
    return sinks.request("POST", path, manifest, query={"dryRun": "All", "fieldValidation": "Strict"})


def causes(error: ApiError) -> list[str]:
    """The causes in a rejection."""
    return [str(cause["message"]) for cause in error.answer.get("details", {}).get("causes", ())]
