"""Metrics of each sink, from the status in the object cache: they exist while no driver runs.

Names, labels and values are those that examples/kube-state-metrics/s3sinks.yaml gives in kube-state-metrics. The number
of series depends on the number of sinks alone. The text is made here: for 1,000 sinks, objects of the client library
would take a tenth of a second of CPU time at each scrape.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from s3sink_operator.status.status_model import ConditionStatus
from s3sink_operator.types import Json, to_ms

PREFIX: Final = "s3sink_status_"
ALWAYS: Final = ("Ready", "Reconciling", "Stalled")
"""The conditions that have series even without a status."""
FAMILIES: Final = {
    "condition": ("1 for the status of a condition, else 0.", ("condition", "status")),
    "phase": ("1 for the phase of the sink.", ("phase",)),
    "desired_state": ("1 for the desired state of the sink.", ("state",)),
    "consecutive_failures": ("Failures since the last stable run.", ()),
    "lag_records": ("Records that are not in a visible object.", ()),
    "last_publish_time_seconds": ("Time of the last publication of an object.", ()),
}
"""The metrics without their prefix: description, and labels beside `namespace` and `sink`. All are gauges."""
_STATUSES: Final = tuple(each.value for each in ConditionStatus)


def exposition(sinks: Iterable[Json]) -> bytes:
    """The metrics of the status of sinks in Prometheus' text format. A value that the status lacks has no sample."""
    lines = {
        name: [f"# HELP {PREFIX}{name} {about}", f"# TYPE {PREFIX}{name} gauge"]
        for name, (about, _) in FAMILIES.items()
    }
    for sink in sinks:
        meta, status = sink["metadata"], _section(sink, "status")
        labels = f'namespace="{meta["namespace"]}",sink="{meta["name"]}"'
        progress = _section(status, "progress")

        def add(name: str, value: float | None, more: str = "", labels: str = labels) -> None:
            if value is not None:
                lines[name].append(f"{PREFIX}{name}{{{labels}{more}}} {value}")

        for kind, found in _conditions(status).items():
            for each in _STATUSES:
                add("condition", int(each == found), f',condition="{_escaped(kind)}",status="{each}"')
        if phase := progress.get("phase"):
            add("phase", 1, f',phase="{_escaped(phase)}"')
        if state := status.get("desiredState"):
            add("desired_state", 1, f',state="{_escaped(state)}"')
        add("consecutive_failures", _section(status, "retry").get("failures") or 0)
        add("lag_records", _section(progress, "lag").get("records"))
        published = to_ms(progress.get("lastPublishTime"))
        add("last_publish_time_seconds", None if published is None else published / 1000)
    return "".join(f"{line}\n" for family in lines.values() for line in family).encode()


def _conditions(status: Json) -> dict[str, str]:
    """The status of each condition by its type. A condition that the operator has not written yet is Unknown."""
    found = {each["type"]: each["status"] for each in status.get("conditions") or ()}
    return dict.fromkeys(ALWAYS, ConditionStatus.UNKNOWN.value) | found


def _section(document: Json, name: str) -> dict[str, Any]:
    return document.get(name) or {}


def _escaped(value: str) -> str:
    """A label value. Other clients may write any text into the status."""
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
