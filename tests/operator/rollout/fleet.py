"""Several sinks under one operator, in memory: the rollout of new operator defaults over all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from s3sink_operator.config.sink_defaults import NO_DEFAULTS, SinkDefaults
from s3sink_operator.objects import template_hash
from s3sink_operator.rollout.rollout_tracker import RolloutState, RolloutTracker
from s3sink_operator.rollout.sink_rollout import MaxUnavailable
from s3sink_operator.types import Json
from s3sink_operator.watch.object_cache import ObjectCache, SinkKey
from tests.operator.fake_cluster import SETTINGS, START, Cluster, document

OLD, NEW = "job:1", "job:2"
PAUSE_MS = 30_000


class Fleet:
    """Sinks that run, with these sections of the `spec`. `broken`: images, and names of sinks whose image, the kubelet
    cannot pull."""

    def __init__(self, count: int, *, max_unavailable: str = "1", pause_ms: int = PAUSE_MS, **spec: Json) -> None:
        self.spec = spec
        self.settings = replace(SETTINGS, image=OLD, rollout_pause_ms=pause_ms)
        self.now = START
        self.broken: set[str] = set()
        self.sinks = {f"sink-{number:04}": self._sink(f"sink-{number:04}") for number in range(count)}
        self.max_unavailable = max_unavailable
        self.worst = 0
        self.start_operator(OLD)
        self.run()
        self.worst = 0

    def _sink(self, name: str) -> Cluster:
        kafka = {"bootstrapServers": "kafka:9092", "topics": [name]}
        return Cluster(sink=document(name, uid=f"uid-of-{name}", kafka=kafka, **self.spec))

    def start_operator(self, image: str, defaults: SinkDefaults = NO_DEFAULTS) -> None:
        """A new process: it knows what is in the cluster, and nothing else."""
        self.settings = replace(self.settings, image=image, sink_defaults=defaults)
        self.cache = ObjectCache()
        limit = MaxUnavailable.parse(self.max_unavailable)
        self.tracker = RolloutTracker(template_hash(self.settings), limit, self.cache, lambda: self.now)
        self.cache.on_sink = self.tracker.put
        self.cache.listed = True
        self.observed: set[str] = set()
        for name in self.sinks:
            self._put(name)

    def _put(self, name: str) -> None:
        sink: Json = self.sinks[name].sink
        self.tracker.put(SinkKey("data", name), sink)

    def reconcile(self, name: str, writes: int | None = None) -> int:
        """One reconcile pass of a sink, of whose writes the first `writes` are done; the number of writes."""
        cluster, key = self.sinks[name], SinkKey("data", name)
        cluster.now, cluster.settings = self.now, self.settings
        cluster.rollout = self.tracker.gate(key)
        if cluster.decide().writes.starts_rollout:
            self.tracker.reserve(key)
        else:
            self.tracker.release(key)
        done = cluster.reconcile(writes)
        self._put(name)
        self.tracker.confirm(key)
        self.observed.add(name)
        return done

    def step(self) -> bool:
        """A pass of every sink, and one thing that the kubelet does for each. Whether anything happened."""
        happened = False
        for name, cluster in self.sinks.items():
            happened = bool(self.reconcile(name)) or happened
            happened = self._kubelet(cluster) or happened
        self.worst = max(self.worst, len(self.not_ready()))
        return happened

    def _kubelet(self, cluster: Cluster) -> bool:
        driver, name = cluster.driver, cluster.name
        if driver is None or not {driver["spec"]["containers"][0]["image"], name} & self.broken:
            identity: dict[str, Any] = {"name": name, "sink_id": f"data.{name}"}
            moved = cluster.kubelet()
            if moved and cluster.report is not None:
                cluster.run(**identity)
            return moved
        if driver["status"].get("containerStatuses"):
            return False
        waiting = {"reason": "ImagePullBackOff", "message": "Back-off pulling image"}
        driver["status"]["containerStatuses"] = [{"name": "s3sink", "state": {"waiting": waiting}}]
        return True

    def run(self, *, minutes: float = 0) -> None:
        """Passes until nothing happens any more, while this time passes."""
        end = self.now + int(minutes * 60_000)
        while True:
            for _ in range(200):
                if not self.step():
                    break
            else:
                raise AssertionError("it does not converge")
            if self.now >= end:
                return
            self.now += 10_000

    def images(self) -> dict[str, str]:
        """The image of each driver."""
        return {name: found for name, cluster in self.sinks.items() for found in _image(cluster)}

    def not_ready(self) -> list[str]:
        return [name for name, cluster in self.sinks.items() if cluster.status and cluster.ready[0] != "True"]

    def with_condition(self, kind: str) -> list[str]:
        return [name for name, cluster in self.sinks.items() if cluster.condition(kind)]

    def recounted(self) -> RolloutState:
        """The state of a new tracker that has observed the same sinks."""
        limit = MaxUnavailable.parse(self.max_unavailable)
        tracker = RolloutTracker(template_hash(self.settings), limit, self.cache, lambda: self.now)
        for name, cluster in self.sinks.items():
            tracker.put(SinkKey("data", name), cluster.sink)
        for name in self.observed:
            tracker.confirm(SinkKey("data", name))
        return tracker.state()

    @property
    def state(self) -> RolloutState:
        return self.tracker.state()


def _image(cluster: Cluster) -> Iterator[str]:
    if cluster.driver is not None:
        yield cluster.driver["spec"]["containers"][0]["image"]


def broken_rollout(count: int = 3, **how: str) -> Fleet:
    """A fleet whose operator was started with an image that cannot be pulled, after some minutes."""
    fleet = Fleet(count, **how)  # type: ignore[arg-type]
    fleet.broken = {NEW}
    fleet.start_operator(NEW)
    fleet.run(minutes=2)
    return fleet


def updated(fleet: Fleet) -> int:
    """The number of drivers with the new image."""
    return Counter(fleet.images().values())[NEW]
