"""The objects of a sink by role, and which of them have to be read from the API server before a decision is applied.

Pure. The object cache follows the watches and may be outdated. A read is left out only where something else proves that
the decision is current:

- The sink: a status is written with the resourceVersion that was observed, before all other objects. The API server
  rejects it if the sink has changed since (409).
- The driver, for a decision that writes only the status: it answered with its token in this pass, so it runs.
- A child that is cached and that the decision does not write. One that is not cached may exist without the labels that
  the watches select.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

from s3sink_operator import names
from s3sink_operator.types import Decision, Json, Observed
from sink_job.api.report import Report


class Role(Enum):
    """An object of a sink: its kind, and the function that gives its name from that of the sink."""

    SINK = ("S3Sink", str)
    CONFIG_MAP = ("ConfigMap", names.config_map_name)
    SERVICE_ACCOUNT = ("ServiceAccount", names.service_account_name)
    ROLE_BINDING = ("RoleBinding", names.role_binding_name)
    DRIVER = ("Pod", names.driver_pod_name)
    OPERATION = ("Pod", names.operation_pod_name)

    @property
    def kind(self) -> str:
        return str(self.value[0])

    def object_name(self, sink: str) -> str:
        """The name of the object that belongs to the sink with this name."""
        name_of: Callable[[str], str] = self.value[1]
        return name_of(sink)


_PODS = frozenset({Role.DRIVER, Role.OPERATION})
_OTHERS = (Role.CONFIG_MAP, Role.SERVICE_ACCOUNT, Role.ROLE_BINDING)


def required_roles(decision: Decision, observed: Observed) -> frozenset[Role]:
    """What has to be read before `decision`, which was made from `observed`, is applied."""
    found = frozenset() if decision.status is not None else frozenset({Role.SINK})
    writes = decision.writes
    if writes.is_empty:
        return found if isinstance(observed.report, Report) else found | {Role.DRIVER}
    written = {manifest["kind"] for manifest in writes.apply} | {each.kind for each in writes.delete}
    absent = {role for role in _OTHERS if _is_absent(observed, role)} if writes.create else set()
    return found | _PODS | {role for role in _OTHERS if role.kind in written} | absent


def _is_absent(observed: Observed, role: Role) -> bool:
    """Whether a child other than a pod is not observed."""
    children: dict[Role, Json | None] = {
        Role.CONFIG_MAP: observed.config_map,
        Role.SERVICE_ACCOUNT: observed.service_account,
        Role.ROLE_BINDING: observed.role_binding,
    }
    return children[role] is None
