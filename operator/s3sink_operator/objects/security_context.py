"""Security contexts of the restricted Pod Security Standard."""

from __future__ import annotations

from s3sink_operator.types import Json, Settings


def of_pod(settings: Settings) -> Json:
    """The `securityContext` of a pod."""
    made: Json = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    if settings.run_as_user is not None:
        made |= {"runAsUser": settings.run_as_user, "runAsGroup": settings.run_as_user, "fsGroup": settings.run_as_user}
    return made


def of_container() -> Json:
    """The `securityContext` of a container."""
    return {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
        "seccompProfile": {"type": "RuntimeDefault"},
    }
