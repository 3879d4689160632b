"""The security context of pods."""

from __future__ import annotations

from dataclasses import replace

import pytest

from s3sink_operator import objects
from tests.operator.fake_cluster import SETTINGS
from tests.operator.objects.manifests import OWNER, SHAPE, sink


@pytest.mark.parametrize("mode", ["Local", "Cluster"])
def test_the_pods_fit_the_restricted_security_profile(mode: str) -> None:
    desired = sink(executor={"mode": mode})
    template = objects.executor_template(desired, SETTINGS, attempt=1)
    assert "resizePolicy" not in template["spec"]["containers"][0], "Spark 4.2 would repeat its items"
    operation = objects.operation_pod(desired, OWNER, SETTINGS, SHAPE, "Publish")
    for pod in (objects.driver_pod(desired, OWNER, SETTINGS, SHAPE), operation, template):
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        assert pod["spec"]["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & set(pod["spec"])
        for each in pod["spec"]["containers"]:
            security = each["securityContext"]
            assert security["allowPrivilegeEscalation"] is False
            assert security["readOnlyRootFilesystem"] is True
            assert security["capabilities"] == {"drop": ["ALL"]}
        allowed = {"configMap", "emptyDir", "secret", "projected"}
        assert all(allowed & set(volume) for volume in pod["spec"]["volumes"])


def test_a_cluster_that_assigns_uids_is_left_to_it() -> None:
    """OpenShift rejects a uid outside of its namespace's range."""
    settings = replace(SETTINGS, run_as_user=None)
    made = sink(executor={"mode": "Cluster"})
    pods = [
        objects.driver_pod(made, OWNER, settings, SHAPE),
        objects.operation_pod(made, OWNER, settings, SHAPE, "Publish"),
        objects.executor_template(made, settings, attempt=1),
    ]
    for pod in pods:
        assert pod["spec"]["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
