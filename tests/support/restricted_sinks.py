"""Sections of S3Sinks, and what the restrictions of the operator reject in them: for the operator and for the chart's
admission policy, which must agree."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

Json = dict[str, Any]


class Case(NamedTuple):
    """`spec`: fields of a spec. `rejected`: the words that name each rejected field; empty for an allowed spec."""

    id: str
    spec: Json
    rejected: tuple[str, ...] = ()


def _pod(**spec: Any) -> Json:
    return {"driver": {"podTemplate": {"spec": spec}}}


def _container(**fields: Any) -> Json:
    return _pod(containers=[{"name": "s3sink", **fields}])


def _secured(**context: Any) -> Json:
    return _container(securityContext=context)


_T: Final = "spec.driver.podTemplate.spec"
_C: Final = f"{_T}.containers"
_S: Final = f"{_C}.securityContext"

ALLOWED: Final = (
    Case("nothing", {}),
    Case("an empty template", {"driver": {"podTemplate": {}}}),
    Case(
        "labels and annotations", {"driver": {"podTemplate": {"metadata": {"labels": {"a": "b"}, "annotations": {}}}}}
    ),
    Case("a pod with its kind", {"driver": {"podTemplate": {"apiVersion": "v1", "kind": "Pod", "spec": {}}}}),
    Case("a node selector", _pod(nodeSelector={"disk": "ssd"}, tolerations=[{"operator": "Exists"}])),
    Case("an environment", _container(env=[{"name": "A", "value": "b"}], envFrom=[{"secretRef": {"name": "a"}}])),
    Case("resources", _container(resources={"limits": {"cpu": 1}, "requests": {"cpu": "100m"}})),
    Case("a named port", _container(ports=[{"containerPort": 9999, "name": "jmx"}])),
    Case("the restricted profile", _secured(runAsNonRoot=True, privileged=False, capabilities={"drop": ["ALL"]})),
    Case("a uid", _pod(securityContext={"runAsUser": 10002, "fsGroup": 3, "seccompProfile": {"type": "Localhost"}})),
    Case("a volume", _pod(volumes=[{"name": "tmp", "emptyDir": {"sizeLimit": "1Gi"}}])),
    Case("a host network that is off", _pod(hostNetwork=False)),
    Case("executors with a node selector", {"executor": {"podTemplate": {"spec": {"nodeSelector": {"a": "b"}}}}}),
    Case("the CPU of executors", {"sparkConf": {"spark.kubernetes.executor.request.cores": "0.1"}}),
    Case("a Spark property", {"sparkConf": {"spark.ui.enabled": "true"}}),
    Case("annotations of the own service account", {"serviceAccount": {"annotations": {"role": "a"}}}),
)
REJECTED: Final = (
    Case("a privileged container", _secured(privileged=True), (f"{_S}.privileged",)),
    Case("a container that gains privileges", _secured(allowPrivilegeEscalation=True), ("allowPrivilegeEscalation",)),
    Case("an added capability", _secured(capabilities={"add": ["SYS_ADMIN"]}), (f"{_S}.capabilities.add",)),
    Case("default capabilities", _secured(capabilities={"drop": []}), (f"{_S}.capabilities.drop",)),
    Case("one dropped capability", _secured(capabilities={"drop": ["ALL", "CHOWN"]}), (f"{_S}.capabilities.drop",)),
    Case("root by the container", _secured(runAsNonRoot=False), (f"{_S}.runAsNonRoot",)),
    Case("root by the pod", _pod(securityContext={"runAsNonRoot": False}), (f"{_T}.securityContext.runAsNonRoot",)),
    Case("no seccomp", _secured(seccompProfile={"type": "Unconfined"}), (f"{_S}.seccompProfile.type",)),
    Case("no AppArmor", _secured(appArmorProfile={"type": "Unconfined"}), (f"{_S}.appArmorProfile.type",)),
    Case("an unmasked proc", _secured(procMount="Unmasked"), (f"{_S}.procMount",)),
    Case("SELinux options", _pod(securityContext={"seLinuxOptions": {"type": "spc_t"}}), ("seLinuxOptions",)),
    Case("sysctls", _pod(securityContext={"sysctls": [{"name": "a", "value": "b"}]}), ("sysctls",)),
    Case(
        "a path of the host", _pod(volumes=[{"name": "host", "hostPath": {"path": "/"}}]), (f"{_T}.volumes.hostPath",)
    ),
    Case(
        "a volume over the network",
        _pod(volumes=[{"name": "a", "nfs": {"server": "b", "path": "/"}}]),
        ("volumes.nfs",),
    ),
    Case("the network of the host", _pod(hostNetwork=True), (f"{_T}.hostNetwork",)),
    Case("the processes of the host", _pod(hostPID=True, hostIPC=True), (f"{_T}.hostPID", f"{_T}.hostIPC")),
    Case("a user namespace that is off", _pod(hostUsers=True), (f"{_T}.hostUsers",)),
    Case("a port of the host", _container(ports=[{"containerPort": 1, "hostPort": 22}]), (f"{_C}.ports.hostPort",)),
    Case("another service account", _pod(serviceAccountName="admin"), (f"{_T}.serviceAccountName",)),
    Case("the old field of it", _pod(serviceAccount="admin"), (f"{_T}.serviceAccount ",)),
    Case("a node", _pod(nodeName="control-plane"), (f"{_T}.nodeName",)),
    Case("a priority class", _pod(priorityClassName="system-node-critical"), (f"{_T}.priorityClassName",)),
    Case("a runtime class", _pod(runtimeClassName="host"), (f"{_T}.runtimeClassName",)),
    Case("another image", _container(image="evil"), (f"{_C}.image",)),
    Case("a command", _container(command=["sh"], args=["-c", "id"]), (f"{_C}.command", f"{_C}.args")),
    Case("a hook", _container(lifecycle={"postStart": {"exec": {"command": ["id"]}}}), (f"{_C}.lifecycle",)),
    Case("a probe with a command", _container(livenessProbe={"exec": {"command": ["id"]}}), ("livenessProbe",)),
    Case("a second container", _pod(containers=[{"name": "other"}]), (f"{_C}.name",)),
    Case("a container without a name", _pod(containers=[{"image": "a"}, {"name": "s3sink"}]), (f"{_C}.image",)),
    Case("an init container", _pod(initContainers=[{"name": "a", "image": "b"}]), (f"{_T}.initContainers",)),
    Case("an ephemeral container", _pod(ephemeralContainers=[{"name": "a"}]), (f"{_T}.ephemeralContainers",)),
    Case("shared processes", _pod(shareProcessNamespace=True), (f"{_T}.shareProcessNamespace",)),
    Case("a field that does not exist", _pod(nodeselector={"a": "b"}), (f"{_T}.nodeselector",)),
    Case("an owner", {"driver": {"podTemplate": {"metadata": {"ownerReferences": []}}}}, ("metadata.ownerReferences",)),
    Case("a status", {"driver": {"podTemplate": {"status": {}}}}, ("spec.driver.podTemplate.status",)),
    Case(
        "AppArmor by an annotation",
        {
            "driver": {
                "podTemplate": {"metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/a": "u"}}}
            }
        },
        ("container.apparmor.security.beta.kubernetes.io/a",),
    ),
    Case("the template of executors", {"executor": {"podTemplate": {"spec": {"hostPID": True}}}}, ("spec.executor",)),
    Case(
        "both templates", _pod(hostPID=True) | {"executor": {"podTemplate": {"spec": {"hostIPC": True}}}}, ("hostPID",)
    ),
    Case("lists of containers as a mapping", _pod(containers={"name": "s3sink"}), (f"{_C} is not a list",)),
    Case("a spec that is a text", {"driver": {"podTemplate": {"spec": "a"}}}, (f"{_T} is not a mapping",)),
    Case("a volume that is a text", _pod(volumes=["a"]), (f"{_T}.volumes is not a list of mappings",)),
    Case("an image of the sink", {"image": "evil:1"}, ("spec.image", "evil:1")),
    Case("a service account of the sink", {"serviceAccount": {"name": "admin"}}, ("spec.serviceAccount.name", "admin")),
    Case(
        "a volume by Spark",
        {"sparkConf": {"spark.kubernetes.executor.volumes.hostPath.a.mount.path": "/"}},
        ("spec.sparkConf", "spark.kubernetes.executor.volumes"),
    ),
)
EXTENDED: Final = {
    "podTemplateFields": ["spec.priorityClassName=batch", "spec.volumes.hostPath", "spec.initContainers"],
    "images": ["registry.example.com/s3sink-job:*"],
    "serviceAccounts": ["lake-*"],
}
"""Restrictions that allow more."""
EXTENDED_CASES: Final = (
    Case("an allowed priority class", _pod(priorityClassName="batch")),
    Case("another priority class", _pod(priorityClassName="batch2"), (f"{_T}.priorityClassName", "only batch")),
    Case("an allowed volume", _pod(volumes=[{"name": "a", "hostPath": {"path": "/"}}])),
    Case("allowed init containers", _pod(initContainers=[{"name": "a", "image": "b", "command": ["c"]}])),
    Case("an allowed image", {"image": "registry.example.com/s3sink-job:2"}),
    Case("an image with more before it", {"image": "evil/registry.example.com/s3sink-job:2"}, ("spec.image",)),
    Case("an image whose dots are other letters", {"image": "registry-example.com/s3sink-job:2"}, ("spec.image",)),
    Case("an allowed service account", {"serviceAccount": {"name": "lake-writer"}}),
    Case("another service account", {"serviceAccount": {"name": "a-lake-writer"}}, ("spec.serviceAccount.name",)),
    Case("what is not allowed otherwise", _pod(hostPID=True), ("hostPID",)),
)
