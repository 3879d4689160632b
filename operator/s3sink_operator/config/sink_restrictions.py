"""Which pod settings the author of an S3Sink may choose: `sinkRestrictions` of the operator's configuration. Pure.

The operator creates pods, so without restrictions the right to write S3Sinks is the right to run any pod in the
namespace. The list of fields is an allow-list: a field that a later version of Kubernetes adds is rejected until it is
listed. It follows the Restricted profile of the Pod Security Standards
(https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted), without what chooses a program, an
identity or a node. The chart's ValidatingAdmissionPolicy is made of the same lists (`admission`).

Restrictions apply to what a sink sets, not to `sinkDefaults`: those are the administrator's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any, Final

from pydantic import Field, field_validator

from sink_job.api.base_model import SpecModel

ALLOWED_FIELDS: Final = (
    "apiVersion=v1",
    "kind=Pod",
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "spec.affinity",
    "spec.automountServiceAccountToken",
    "spec.containers.env",
    "spec.containers.envFrom",
    "spec.containers.imagePullPolicy",
    "spec.containers.name=s3sink",
    "spec.containers.ports.containerPort",
    "spec.containers.ports.name",
    "spec.containers.ports.protocol",
    "spec.containers.resources.limits",
    "spec.containers.resources.requests",
    "spec.containers.securityContext.allowPrivilegeEscalation=false",
    "spec.containers.securityContext.appArmorProfile.type=RuntimeDefault",
    "spec.containers.securityContext.capabilities.drop=ALL",
    "spec.containers.securityContext.privileged=false",
    "spec.containers.securityContext.readOnlyRootFilesystem",
    "spec.containers.securityContext.runAsGroup",
    "spec.containers.securityContext.runAsNonRoot=true",
    "spec.containers.securityContext.runAsUser",
    "spec.containers.securityContext.seccompProfile.localhostProfile",
    "spec.containers.securityContext.seccompProfile.type=Localhost",
    "spec.containers.securityContext.seccompProfile.type=RuntimeDefault",
    "spec.containers.volumeMounts",
    "spec.dnsConfig",
    "spec.dnsPolicy",
    "spec.enableServiceLinks",
    "spec.hostAliases",
    "spec.hostIPC=false",
    "spec.hostNetwork=false",
    "spec.hostPID=false",
    "spec.imagePullSecrets",
    "spec.nodeSelector",
    "spec.securityContext.appArmorProfile.type=RuntimeDefault",
    "spec.securityContext.fsGroup",
    "spec.securityContext.fsGroupChangePolicy",
    "spec.securityContext.runAsGroup",
    "spec.securityContext.runAsNonRoot=true",
    "spec.securityContext.runAsUser",
    "spec.securityContext.seccompProfile.localhostProfile",
    "spec.securityContext.seccompProfile.type=Localhost",
    "spec.securityContext.seccompProfile.type=RuntimeDefault",
    "spec.securityContext.supplementalGroups",
    "spec.terminationGracePeriodSeconds",
    "spec.tolerations",
    "spec.topologySpreadConstraints",
    "spec.volumes.configMap",
    "spec.volumes.csi",
    "spec.volumes.downwardAPI",
    "spec.volumes.emptyDir",
    "spec.volumes.ephemeral",
    "spec.volumes.name",
    "spec.volumes.persistentVolumeClaim",
    "spec.volumes.projected",
    "spec.volumes.secret",
)
"""Fields of a pod template that each sink may set, with all fields below them. `field=value` allows that value only;
of a list, each item must have it. List items have no step of their own in a path."""

LISTS: Final = frozenset({"spec.containers", "spec.containers.ports", "spec.volumes"})
"""Paths in `ALLOWED_FIELDS` whose value is a list of objects."""

UNSAFE_ANNOTATION: Final = "container.apparmor.security.beta.kubernetes.io/"
"""Prefix of annotations that the API server copies into a security context."""

SPARK_PODS: Final = "spark.kubernetes."
"""Prefix of Spark properties that change executor pods: volumes, service accounts, schedulers, images."""
ALLOWED_SPARK: Final = (
    "spark.kubernetes.allocation.batch.delay",
    "spark.kubernetes.allocation.batch.size",
    "spark.kubernetes.executor.limit.cores",
    "spark.kubernetes.executor.request.cores",
)
"""Spark properties with this prefix that a sink may set."""

PROCESSES: Final = ("driver", "executor")
_MAX_ERRORS: Final = 10
_MAX_NAME: Final = 80


def inner_paths() -> tuple[str, ...]:
    """The paths whose fields are checked one by one, from the top down. The empty path is the template."""
    found = {""}
    for field in ALLOWED_FIELDS:
        steps = field.partition("=")[0].split(".")[:-1]
        found |= {".".join(steps[: length + 1]) for length in range(len(steps))}
    return tuple(sorted(found, key=lambda path: (path.count(".") if path else -1, path)))


INNER_PATHS: Final = inner_paths()


class SinkRestrictions(SpecModel):
    """The section `sinkRestrictions`. The lists add to what is allowed without them."""

    enabled: bool = True
    pod_template_fields: list[str] = Field(default_factory=list)
    images: list[str] = Field(default_factory=list)
    service_accounts: list[str] = Field(default_factory=list)

    @field_validator("pod_template_fields")
    @classmethod
    def _known_parents(cls, fields: list[str]) -> list[str]:
        for field in fields:
            path = field.partition("=")[0]
            parent = path.rpartition(".")[0]
            if not path or path.endswith(".") or parent not in INNER_PATHS:
                known = ", ".join(path or "the template itself" for path in INNER_PATHS)
                raise ValueError(f"{field or 'an empty text'} is not a field below one of these: {known}")
        return fields

    def errors(self, spec: Any) -> Sequence[str]:
        """What is not allowed in the spec of a sink, as the user wrote it; empty for an allowed one. The first ten."""
        if not self.enabled or not isinstance(spec, dict):
            return ()
        found = list(islice(self._all_errors(spec), _MAX_ERRORS + 1))
        return [*found[:_MAX_ERRORS], "and more"] if len(found) > _MAX_ERRORS else found

    def message(self, spec: Any) -> str:
        """The errors with what to do; empty for an allowed spec."""
        found = self.errors(spec)
        if not found:
            return ""
        return (
            f"{'; '.join(found)}. Remove the fields, or ask the cluster administrator to allow them (sinkRestrictions)"
        )

    def _all_errors(self, spec: dict[str, Any]) -> Iterator[str]:
        yield from self._identity_errors(spec)
        yield from self._spark_errors(spec)
        allowed = frozenset((*ALLOWED_FIELDS, *self.pod_template_fields))
        for process in PROCESSES:
            section = spec.get(process)
            template = section.get("podTemplate") if isinstance(section, dict) else None
            if template is not None:
                yield from (f"spec.{process}.podTemplate{error}" for error in _rejected(template, "", allowed))

    def _identity_errors(self, spec: dict[str, Any]) -> Iterator[str]:
        image, account = spec.get("image"), spec.get("serviceAccount")
        name = account.get("name") if isinstance(account, dict) else None
        if image is not None and not _matches(image, self.images):
            yield f"spec.image: the image {_short(image)} is not allowed"
        if name is not None and not _matches(name, self.service_accounts):
            yield f"spec.serviceAccount.name: the service account {_short(name)} is not allowed"

    def _spark_errors(self, spec: dict[str, Any]) -> Iterator[str]:
        properties = spec.get("sparkConf")
        for name in properties if isinstance(properties, dict) else ():
            if isinstance(name, str) and name.startswith(SPARK_PODS) and name not in ALLOWED_SPARK:
                yield f"spec.sparkConf: {_short(name)} is not allowed, since it changes executor pods"


NO_RESTRICTIONS: Final = SinkRestrictions(enabled=False)


def _rejected(node: Any, path: str, allowed: frozenset[str]) -> Iterator[str]:
    """The paths below `node`, the value at the inner path `path`, that are not allowed; each begins with a dot."""
    items = node if isinstance(node, list) and path in LISTS else [node]
    for item in items:
        if not isinstance(item, dict) or (path in LISTS and not isinstance(node, list)):
            expected = "a list of mappings" if path in LISTS else "a mapping"
            yield f"{path and '.' + path} is not {expected}"
            continue
        for name, value in item.items():
            field = f"{path}.{name}" if path else str(name)
            if field in allowed:
                if field == "metadata.annotations":
                    yield from _unsafe_annotations(value)
            elif field in INNER_PATHS:
                yield from _rejected(value, field, allowed)
            elif not _is_allowed_value(field, value, allowed):
                yield f".{_short(field)} is not allowed{_expected(field, allowed)}"


def _is_allowed_value(field: str, value: Any, allowed: frozenset[str]) -> bool:
    values = value if isinstance(value, list) else [value]
    return bool(values) and all((text := _scalar(item)) is not None and f"{field}={text}" in allowed for item in values)


def _scalar(value: Any) -> str | None:
    """A value as CEL's string() writes it; None for one that no entry of the list can name."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value) if isinstance(value, int | str) else None


def _expected(field: str, allowed: frozenset[str]) -> str:
    values = sorted(entry.partition("=")[2] for entry in allowed if entry.startswith(f"{field}="))
    return f" with this value, only {' or '.join(values)}" if values else ""


def _unsafe_annotations(annotations: Any) -> Iterator[str]:
    for name in annotations if isinstance(annotations, dict) else ():
        if isinstance(name, str) and name.startswith(UNSAFE_ANNOTATION):
            yield f".metadata.annotations: {_short(name)} is not allowed"


def _matches(value: Any, patterns: Sequence[str]) -> bool:
    return isinstance(value, str) and any(fnmatchcase(value, _literal(pattern)) for pattern in patterns)


def _literal(pattern: str) -> str:
    """The pattern with `*` as its only wildcard."""
    return pattern.replace("[", "[[]").replace("?", "[?]")


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _MAX_NAME else f"{text[: _MAX_NAME - 1]}…"
