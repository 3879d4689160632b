"""A driver that is to be replaced by a larger one: the real API server decides whether that one is accepted.

The API server of these tests has no pods/resize, so that each growth replaces the pod.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from devtools.faults.kube_proxy import KubeFaults, Reject, Replay, call
from devtools.kube.client import Json, Kube
from devtools.kube.fake_kubelet import Harness
from devtools.processes import wait_until
from sink_job.api.report import MemoryReport
from sink_job.api.units.quantities import format_size, parse_size
from tests.support.operator_fixture import DRIVER, Operated, StartOperator, condition, is_ready, report

pytestmark = pytest.mark.cluster

LARGE = 3 << 30
EXECUTOR: Json = {"mode": "Local", "memory": {"max": format_size(LARGE)}}
HUNGRY = MemoryReport(
    slots=1, open_objects=400, max_open_objects=400, part_size=25 << 20, buffered_bytes=8 << 30, spilled_bytes=1 << 30
)


@pytest.fixture
def sink(kube: Kube, harness: Harness, faults: KubeFaults, start: StartOperator) -> Iterator[Operated]:
    known = kube.request("GET", "/api/v1")
    known["resources"] = [each for each in known["resources"] if each["name"] != "pods/resize"]
    faults.when(lambda each: each.path == "/api/v1", Replay(json.dumps(known).encode()), times=None)
    start()
    with harness.playing():
        yield Operated(kube, harness)


def limit(pod: Json) -> int:
    return parse_size(pod["spec"]["containers"][0]["resources"]["limits"]["memory"])


def hungers(sink: Operated) -> None:
    """Its driver reports that it needs more."""
    sink.harness.report(DRIVER, report(memory=HUNGRY))
    sink.annotate(look="now")


def quota(sink: Operated, name: str, **hard: str) -> None:
    """A quota whose use is known. `hard`: `memory` means limits.memory."""
    limits = {each.replace("memory", "limits.memory"): value for each, value in hard.items()}
    sink.kube.create(
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name}, "spec": {"hard": limits}}
    )
    sink.kube.wait("ResourceQuota", name, lambda found: found.get("status", {}).get("used"), what="its use")


def is_kept(sink: Operated, driver: Json) -> Json:
    """The condition WriteRejected, once a larger pod was rejected. The driver is the one before."""
    found = sink.wait(lambda found: condition(found, "WriteRejected"), "the condition WriteRejected")
    assert is_ready(found)
    assert sink.driver["metadata"]["uid"] == driver["metadata"]["uid"]
    assert "deletionTimestamp" not in sink.driver["metadata"]
    return dict(condition(found, "WriteRejected"))


def test_a_driver_is_kept_if_a_quota_has_no_room_for_the_larger_one(sink: Operated) -> None:
    driver = sink.started(executor=EXECUTOR)
    quota(sink, "small", memory=format_size(LARGE - 1))
    hungers(sink)
    rejected = is_kept(sink, driver)
    assert rejected["reason"] == "QuotaExceeded"
    assert "exceeded quota: small" in rejected["message"]
    wait_until(lambda: "WriteRejected" in {each["reason"] for each in sink.events()}, "the event", seconds=60)


def test_a_driver_is_replaced_if_the_quota_has_room_for_the_larger_one_without_it(sink: Operated) -> None:
    driver = sink.started(executor=EXECUTOR)
    quota(sink, "exact", memory=format_size(LARGE), pods="2")
    hungers(sink)
    after = sink.next_driver(driver)
    assert limit(after) == LARGE
    assert not condition(sink.wait_ready(), "WriteRejected")


def test_a_driver_is_kept_if_the_second_of_two_quotas_has_no_room(sink: Operated) -> None:
    """The API server names only the first one, which would have room."""
    driver = sink.started(executor=EXECUTOR)
    for name in ("a", "c"):
        quota(sink, name, memory=format_size(LARGE))
    quota(sink, "b", memory=format_size(LARGE - 1))
    hungers(sink)
    is_kept(sink, driver)


def test_a_driver_is_kept_while_a_webhook_that_checks_pods_does_not_answer(sink: Operated, faults: KubeFaults) -> None:
    driver = sink.started(executor=EXECUTOR)
    message = 'Internal error occurred: failed calling webhook "pods.example.com": connection refused'
    faults.when(call("create pods"), Reject(500, message))
    hungers(sink)
    assert message in is_kept(sink, driver)["message"]
