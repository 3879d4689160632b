"""The parts of a pod's status as a kubelet writes them; pure."""

from __future__ import annotations

import copy
import datetime

from devtools.kube.client import Json
from devtools.kube.fake_driver_report import REPORT_PORT


def container_status(pod: Json, container: Json, state: Json, *, ready: bool) -> Json:
    """One of `containerStatuses`, for a container that was never restarted."""
    status = {
        "name": container["name"],
        "image": container["image"],
        "imageID": f"sha256:{container['name']}",
        "containerID": f"containerd://{pod['metadata']['uid']}-{container['name']}",
        "restartCount": 0,
        "ready": ready,
        "started": "running" in state,
        "state": state,
    }
    if "waiting" in state:
        del status["containerID"]
        status["imageID"] = ""
    return with_resources(status, container) if "running" in state else status


def containers_of(pod: Json) -> list[Json]:
    containers: list[Json] = pod["spec"]["containers"]
    return containers


def conditions_of(pod: Json) -> list[Json]:
    conditions: list[Json] = pod.get("status", {}).get("conditions") or []
    return conditions


def condition(kind: str, status: str, reason: str, message: str) -> Json:
    said = {key: value for key, value in (("reason", reason), ("message", message)) if value}
    return {"type": kind, "status": status, "lastTransitionTime": now(), **said}


def about_resize(condition: Json) -> bool:
    return str(condition["type"]).startswith("PodResize")


def with_resources(status: Json, container: Json) -> Json:
    """The container has what it asked for: its real limits, and what the node has set aside for it."""
    resources = copy.deepcopy(container.get("resources") or {})
    return {**status, "resources": resources, "allocatedResources": resources.get("requests", {})}


def wants_resize(pod: Json) -> bool:
    has = {each["name"]: each.get("resources") or {} for each in pod["status"].get("containerStatuses", ())}
    return any((each.get("resources") or {}) != has.get(each["name"]) for each in containers_of(pod))


def report_port(pod: Json) -> int:
    """The container port named `report`, else the job's own."""
    ports = [port for container in containers_of(pod) for port in container.get("ports", ())]
    return next((int(port["containerPort"]) for port in ports if port.get("name") == "report"), REPORT_PORT)


def now() -> str:
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
