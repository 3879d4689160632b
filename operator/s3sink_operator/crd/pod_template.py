"""The part of a pod template's schema in the CustomResourceDefinition, so that `kubectl apply` reports a wrong type.

The whole schema of a pod is ten times the rest of the definition and belongs to one version of Kubernetes, so unknown
fields are kept at each level and left to `template_check`. What is here rejects nothing that a pod accepts: the types
are those of the API of core/v1 (https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/pod-v1/), each
field may be null, required are only the keys by which lists are merged, and quantities, which may be numbers with a
fraction, have no type.
"""

from __future__ import annotations

from typing import Any, Final

Json = dict[str, Any]

PATHS: Final = ("spec.driver.podTemplate", "spec.executor.podTemplate")
"""The fields with a pod template."""


def _open(required: tuple[str, ...] = (), **properties: Json) -> Json:
    """A mapping with further fields than `properties`. With `required` ones it is an item of a list, and not null."""
    made: Json = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    made |= {"required": list(required)} if required else {"nullable": True}
    if properties:
        made["properties"] = {
            name: {key: value for key, value in each.items() if key != "nullable" or name not in required}
            for name, each in properties.items()
        }
    return made


def _list(items: Json) -> Json:
    return {"type": "array", "nullable": True, "items": items}


_TEXT: Final[Json] = {"type": "string", "nullable": True}
_FLAG: Final[Json] = {"type": "boolean", "nullable": True}
_NUMBER: Final[Json] = {"type": "integer", "format": "int64", "nullable": True}
_TEXTS: Final[Json] = {"type": "object", "nullable": True, "additionalProperties": {"type": "string"}}
_ANY: Final = _open()

_CONTAINER: Final = _open(
    ("name",),
    name=_TEXT,
    image=_TEXT,
    imagePullPolicy=_TEXT,
    command=_list({"type": "string"}),
    args=_list({"type": "string"}),
    env=_list(_open(("name",), name=_TEXT, value=_TEXT, valueFrom=_ANY)),
    envFrom=_list(_ANY),
    ports=_list(_open(("containerPort",), containerPort=_NUMBER, name=_TEXT)),
    resources=_open(limits=_ANY, requests=_ANY),
    securityContext=_ANY,
    volumeMounts=_list(_open(("name", "mountPath"), name=_TEXT, mountPath=_TEXT, readOnly=_FLAG)),
)

SCHEMA: Final = {
    "apiVersion": _TEXT,
    "kind": _TEXT,
    "metadata": _open(labels=_TEXTS, annotations=_TEXTS),
    "spec": _open(
        affinity=_ANY,
        containers=_list(_CONTAINER),
        initContainers=_list(_CONTAINER),
        hostAliases=_list(_ANY),
        imagePullSecrets=_list(_open(name=_TEXT)),
        nodeSelector=_TEXTS,
        priorityClassName=_TEXT,
        runtimeClassName=_TEXT,
        schedulerName=_TEXT,
        securityContext=_ANY,
        terminationGracePeriodSeconds=_NUMBER,
        tolerations=_list(_open(key=_TEXT, operator=_TEXT, value=_TEXT, effect=_TEXT, tolerationSeconds=_NUMBER)),
        topologySpreadConstraints=_list(_ANY),
        volumes=_list(_open(("name",), name=_TEXT)),
    ),
}
"""The `properties` of a pod template."""
