"""Rollouts of a new default image on a real API server: one sink after the other, and halted by the first failure."""

from __future__ import annotations

import re

import pytest

from devtools.kube.client import Json
from devtools.operator_process import IMAGE, Operator
from devtools.processes import wait_until
from s3sink_operator import names
from tests.support.operator_fixture import Operated, StartOperator, condition, is_ready

pytestmark = pytest.mark.cluster

SINKS = ("one", "two", "three")
NEW = "registry.example.com/s3sink-job:2"
BROKEN = "registry.example.com/s3sink-job:broken"


class Fleet:
    """Three sinks. `not_ready_at_start`: the sinks that were not Ready whenever a driver with the image NEW started."""

    def __init__(self, operated: Operated) -> None:
        self.operated, self.kube = operated, operated.kube
        self.not_ready_at_start: list[list[str]] = []
        for name in SINKS:
            operated.harness.at_start(names.driver_pod_name(name), self._starts)

    def apply(self) -> None:
        for name in SINKS:
            self.operated.apply(name, kafka={"bootstrapServers": "kafka:9092", "topics": [name]})
        self.wait(lambda: all(map(is_ready, self.sinks())), "all Ready")

    def _starts(self, pod: str) -> None:
        image = image_of(self.kube.get("Pod", pod))
        if image == BROKEN:
            self.operated.harness.waiting(pod, "ImagePullBackOff", "Back-off pulling image")
            return
        if image == NEW:
            self.not_ready_at_start.append([name for name, sink in self.by_name().items() if not is_ready(sink)])
        self.operated.starts(pod)

    def sinks(self) -> list[Json]:
        return list(self.by_name().values())

    def by_name(self) -> dict[str, Json]:
        return {name: self.kube.get("S3Sink", name) for name in SINKS}

    def drivers(self) -> dict[str, Json]:
        found = {name: self.kube.find("Pod", names.driver_pod_name(name)) for name in SINKS}
        return {name: pod for name, pod in found.items() if pod is not None}

    def images(self) -> dict[str, str]:
        return {name: image_of(pod) for name, pod in self.drivers().items()}

    def with_condition(self, kind: str) -> list[str]:
        return [name for name, sink in self.by_name().items() if condition(sink, kind)]

    def wait(self, is_so: object, what: str) -> None:
        assert callable(is_so)
        wait_until(is_so, what, seconds=60)


def image_of(pod: Json) -> str:
    return str(pod["spec"]["containers"][0]["image"])


def metric(operator: Operator, name: str) -> float:
    found = re.search(rf"^s3sink_operator_{name} ([0-9.]+)$", operator.metrics(), re.MULTILINE)
    assert found
    return float(found[1])


@pytest.fixture
def fleet(alone: Operated) -> Fleet:
    return Fleet(alone)


def test_a_broken_default_image_halts_the_rollout_and_a_rollback_recovers(fleet: Fleet, start: StartOperator) -> None:
    first = start()
    fleet.apply()
    assert first.terminate() == 0
    before = fleet.drivers()

    replica = ("--image", BROKEN, "--rollout-pause", "0s", "--resync", "500ms", "--lease-namespace")
    second = start(*replica, str(fleet.kube.namespace))
    third = start(*replica, str(fleet.kube.namespace))
    fleet.wait(lambda: len(fleet.with_condition("RolloutHalted")) == 2, "two sinks that wait")
    (down,) = [name for name, image in fleet.images().items() if image == BROKEN]
    others = [name for name in SINKS if name != down]
    assert condition(fleet.by_name()[down], "Ready")["reason"] == "ImagePullFailed"
    assert all(is_ready(fleet.by_name()[name]) for name in others)
    message = condition(fleet.by_name()[others[0]], "RolloutHalted")["message"]
    assert f"{fleet.kube.namespace}/{down} (ImagePullFailed)" in message
    assert metric(second, "rollout_halted") == 1
    assert metric(second, "rollout_pending_sinks") == 2
    fleet.wait(
        lambda: sorted(each["involvedObject"]["name"] for each in halted_events(fleet)) == sorted(others),
        "events",
    )
    fleet.wait(lambda: any("is halted with 2 sinks pending" in line for line in second.troubles()), "its log")
    assert metric(third, "rollout_halted") == metric(third, "rollout_pending_sinks") == 0
    second.terminate()

    fleet.wait(lambda: passes(third) >= 9, "passes of each sink by the other replica")
    assert metric(third, "rollout_halted") == 1
    assert fleet.images() == {name: BROKEN if name == down else IMAGE for name in SINKS}
    assert third.terminate() == 0

    start()
    fleet.wait(lambda: all(map(is_ready, fleet.sinks())), "all Ready after the rollback")
    fleet.wait(lambda: not fleet.with_condition("RolloutPending"), "no sink waits")
    after = fleet.drivers()
    assert set(fleet.images().values()) == {IMAGE}
    assert [name for name in SINKS if after[name]["metadata"]["uid"] != before[name]["metadata"]["uid"]] == [down]


def test_a_new_default_image_reaches_one_sink_after_the_other(fleet: Fleet, start: StartOperator) -> None:
    first = start()
    fleet.apply()
    assert first.terminate() == 0
    second = start("--image", NEW, "--rollout-pause", "0s")
    fleet.wait(lambda: set(fleet.images().values()) == {NEW} and all(map(is_ready, fleet.sinks())), "all updated")
    assert sorted(fleet.not_ready_at_start) == [[name] for name in sorted(SINKS)]
    fleet.wait(lambda: metric(second, "rollout_updated_sinks") == 3, "the metric of updated sinks")
    assert metric(second, "rollout_halted") == 0


def halted_events(fleet: Fleet) -> list[Json]:
    return [each for each in fleet.operated.events() if each["reason"] == "RolloutHalted"]


def passes(operator: Operator) -> float:
    found = re.search(r's3sink_operator_reconciles_total\{result="ok"\} ([0-9.]+)', operator.metrics())
    return float(found[1]) if found else 0.0
