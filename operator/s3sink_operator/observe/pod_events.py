"""Reads the last event of a pod that has a node and does not start. A missing Secret is reported nowhere else.

Events are not watched, since most of them do not matter here. They are listed for a pod that waits for some time.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from s3sink_operator.kube.kube_api import ApiError, KubeApi
from s3sink_operator.types import Json, PodEvent, is_terminating, uid_of

_log = logging.getLogger(__name__)

EVENT_POLL_S: Final = 8.0
"""Time before the events of a waiting pod are listed, and between two such requests."""

MAX_EVENTS: Final = 100
"""Events that are read of a pod. Users can create any number of them, of 1 MB each."""


@dataclass
class PodEventReader:
    """`clock` returns seconds. Without the permission to list events there is no event, which is not an error."""

    api: KubeApi
    clock: Callable[[], float] = time.monotonic
    _known: dict[tuple[str, str], tuple[str, float, PodEvent | None]] = field(default_factory=dict)

    async def last_warning(self, pod: Json) -> PodEvent | None:
        """The last event of the pod, if it is a warning; None for a pod that has started or only just waits."""
        meta = pod["metadata"]
        key, uid, now = (str(meta.get("namespace")), str(meta["name"])), uid_of(pod), self.clock()
        if not is_waiting_to_start(pod):
            self._known.pop(key, None)
            return None
        before, due, event = self._known.get(key, ("", now, None))
        if before != uid:
            self._known[key] = uid, now + EVENT_POLL_S, None
            return None
        if now < due:
            return event
        event = await self._fetch(key, uid)
        self._known[key] = uid, now + EVENT_POLL_S, event
        return event

    def forget(self, namespace: str, pod: str) -> None:
        """Removes what is known about a pod of a deleted sink."""
        self._known.pop((namespace, pod), None)

    async def _fetch(self, key: tuple[str, str], uid: str) -> PodEvent | None:
        namespace, pod = key
        try:
            events = await self.api.list("Event", namespace, fields=f"involvedObject.uid={uid}", most=MAX_EVENTS)
        except (ApiError, OSError, TimeoutError) as error:
            _log.warning("%s/%s: the events of this pod cannot be listed: %s", namespace, pod, error)
            return None
        last = max(events, key=_event_time, default={})
        if last.get("type") != "Warning":
            return None
        return PodEvent(pod=pod, reason=str(last.get("reason")), message=str(last.get("message") or ""))


def is_waiting_to_start(pod: Json) -> bool:
    """Whether the pod has a node and its containers neither ran nor report why they wait."""
    status = pod.get("status") or {}
    if (
        is_terminating(pod)
        or status.get("phase") not in (None, "Pending")
        or not (pod.get("spec") or {}).get("nodeName")
    ):
        return False
    states = [each.get("state") or {} for each in status.get("containerStatuses") or ()]
    return all((state.get("waiting") or {}).get("reason") in (None, "ContainerCreating") for state in states)


def _event_time(event: Mapping[str, object]) -> str:
    """The time of the last occurrence as sortable text; an event of a series has its own."""
    series = event.get("series")
    last = series.get("lastObservedTime") if isinstance(series, Mapping) else None
    return str(last or event.get("lastTimestamp") or event.get("eventTime") or "")
