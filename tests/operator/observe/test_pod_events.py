"""When the events of a pod that does not start are asked for, and which of them counts."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import cast

import pytest

from s3sink_operator.kube.kube_api import ApiError, KubeApi
from s3sink_operator.observe.pod_events import EVENT_POLL_S, MAX_EVENTS, PodEventReader, is_waiting_to_start
from s3sink_operator.types import Json

WAITS: Json = {
    "metadata": {"name": "flights-s3sink-driver", "namespace": "data", "uid": "1"},
    "spec": {"nodeName": "node-1"},
    "status": {
        "phase": "Pending",
        "containerStatuses": [{"name": "s3sink", "state": {"waiting": {"reason": "ContainerCreating"}}}],
    },
}


@dataclass
class Events:
    """In the API's place: events of the pod, how often they were asked for, and whether that is allowed."""

    found: list[Json] = field(default_factory=list)
    asked: int = 0
    forbidden: bool = False

    async def list(self, kind: str, namespace: str, *, fields: str, most: int) -> list[Json]:
        assert (kind, namespace, fields, most) == ("Event", "data", "involvedObject.uid=1", MAX_EVENTS)
        self.asked += 1
        if self.forbidden:
            raise ApiError(403, "Forbidden", "no")
        return self.found


@dataclass
class Time:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def events() -> Events:
    return Events()


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def kubelet(events: Events, clock: Time) -> PodEventReader:
    return PodEventReader(cast("KubeApi", events), clock)


def event(kind: str, message: str, at: str) -> Json:
    return {"type": kind, "reason": "FailedMount", "message": message, "lastTimestamp": at}


def said(kubelet: PodEventReader, pod: Json = WAITS) -> str | None:
    found = asyncio.run(kubelet.last_warning(pod))
    return None if found is None else found.message


def test_events_are_listed_after_a_delay_and_then_at_intervals(
    kubelet: PodEventReader, events: Events, clock: Time
) -> None:
    events.found = [event("Warning", "no secret", "2026-01-01T00:00:02Z")]
    assert said(kubelet) is None
    for _ in range(3):
        clock.now = EVENT_POLL_S
        assert said(kubelet) == "no secret"
    assert events.asked == 1
    clock.now = 2 * EVENT_POLL_S
    assert said(kubelet) == "no secret"
    assert events.asked == 2


def test_a_warning_that_is_followed_by_better_news_is_over(
    kubelet: PodEventReader, events: Events, clock: Time
) -> None:
    events.found = [
        event("Normal", "pulling the image", "2026-01-01T00:00:03Z"),
        event("Warning", "no secret", "2026-01-01T00:00:02Z"),
    ]
    said(kubelet)
    clock.now = EVENT_POLL_S
    assert said(kubelet) is None


def test_another_pod_of_that_name_has_its_own_delay(kubelet: PodEventReader, events: Events, clock: Time) -> None:
    said(kubelet)
    clock.now = EVENT_POLL_S
    assert said(kubelet, WAITS | {"metadata": WAITS["metadata"] | {"uid": "2"}}) is None
    assert events.asked == 0


def test_without_permission_to_list_events_there_is_no_event(
    kubelet: PodEventReader, events: Events, clock: Time
) -> None:
    events.forbidden = True
    said(kubelet)
    clock.now = EVENT_POLL_S
    assert said(kubelet) is None
    assert events.asked == 1


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"status": {"phase": "Running"}}, id="it runs"),
        pytest.param({"spec": {}}, id="it has no node, as its own condition says"),
        pytest.param({"metadata": {"deletionTimestamp": "now"}}, id="it is going"),
        pytest.param(
            {"status": {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull"}}}]}},
            id="its own status says why",
        ),
    ],
)
def test_events_are_not_listed_for_a_pod_with_a_known_state(change: Json) -> None:
    assert is_waiting_to_start(WAITS)
    assert not is_waiting_to_start(WAITS | change)
