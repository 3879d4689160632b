"""What the policies look at: one sink, read once, and what its objects should be."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Final

from s3sink_operator import backoff, conflicts, memory_sizing, names, objects, pod_failures
from s3sink_operator.decide.attempt_history import Key, Story, story_of
from s3sink_operator.memory_sizing import Bounds, Inputs
from s3sink_operator.objects import Shape
from s3sink_operator.status import MOST
from s3sink_operator.types import (
    Claim,
    Delete,
    Json,
    Observed,
    Settings,
    annotation,
    attempt_of,
    is_controlled,
    is_ending,
    label,
    to_ms,
    uid_of,
    wanted_state,
)
from sink_job.api.enums import DesiredState, ExecutorMode, MemoryMode
from sink_job.api.errors import InvalidSpec
from sink_job.api.report import Report
from sink_job.api.spec import GROUP, KIND, VERSION, Sink, parse_sink

BY_SPEC: Final = "spec"
BY_ANNOTATION: Final = "annotation"
RESET_OF: Final = {BY_SPEC: "spec.offsets.reset", BY_ANNOTATION: f"the annotation {names.RESET_OFFSETS}"}


@dataclass(frozen=True)
class Context:
    """One look at one sink. Everything that is worked out of it is worked out once."""

    seen: Observed
    settings: Settings
    now: int

    # -- the sink ------------------------------------------------------------------------------------------------------

    @cached_property
    def _read(self) -> tuple[Sink | None, str]:
        return _parsed(self._document(self.seen.sink.get("spec")))

    @cached_property
    def _asked(self) -> tuple[Sink | None, str]:
        """The sink with the request about offsets of the annotation, until that has been carried out."""
        text = annotation(self.seen.sink, names.RESET_OFFSETS)
        if text is None or self._read[0] is None:
            return None, ""
        try:
            request = json.loads(text)
            document = self._document(self.spec | {"offsets": {"reset": request}})
        except ValueError as error:
            return None, f"it is no JSON: {error}"
        except RecursionError:
            return None, "it is no request: its brackets are nested too deeply"
        if request is None:
            return None, "it is null: take it away, or give it a nonce and where to start"
        nonce = request.get("nonce") if isinstance(request, dict) else None
        if nonce is not None and nonce == self.carried_out.get(BY_ANNOTATION):
            return None, ""
        return _parsed(document)

    def _document(self, spec: Any) -> str:
        metadata = {name: self.metadata.get(name) for name in ("name", "namespace")}
        return json.dumps({"metadata": metadata, "spec": spec})

    @property
    def sink(self) -> Sink | None:
        """The sink, if its spec can be read. A request about offsets in the annotation stands in that of the spec."""
        return self._asked[0] or self._read[0]

    @property
    def valid(self) -> Sink:
        """The sink, for policies that come after the one that looks whether its spec can be read."""
        assert self.sink is not None
        return self.sink

    @property
    def mistakes(self) -> str:
        return self._read[1]

    @property
    def reset_by(self) -> str:
        """Who asks for other offsets: a key of `carried_out`."""
        return BY_SPEC if self._asked[0] is None else BY_ANNOTATION

    @property
    def reset_mistakes(self) -> str:
        """What is wrong with the request of the annotation; empty where there is none."""
        return self._asked[1]

    @cached_property
    def carried_out(self) -> Json:
        """The nonce of the last request about offsets that was carried out, by who asked: each has one at a time."""
        told = self.old.get("offsets") or {}
        return dict(told.get("carriedOut") or ({BY_SPEC: told["nonce"]} if "nonce" in told else {}))

    @cached_property
    def metadata(self) -> Json:
        return dict(self.seen.sink.get("metadata") or {})

    @property
    def name(self) -> str:
        return str(self.metadata.get("name"))

    @property
    def uid(self) -> str:
        return str(self.metadata.get("uid", ""))

    @property
    def generation(self) -> int:
        return int(self.metadata.get("generation", 0))

    @cached_property
    def old(self) -> Json:
        """The status as it is."""
        return dict(self.seen.sink.get("status") or {})

    @property
    def spec(self) -> Json:
        """The spec as it was written, right or wrong."""
        found = self.seen.sink.get("spec")
        return found if isinstance(found, dict) else {}

    @property
    def store(self) -> str:
        """The address of the S3 server; empty for AWS's own. It may be another one after an edit."""
        s3 = self.spec.get("s3")
        return str(s3.get("endpoint") or "") if isinstance(s3, dict) else ""

    @property
    def published(self) -> bool:
        """Whether the status says that all is published, in this store."""
        state = self.old.get("state") or {}
        return bool(state.get("published")) and state.get("publishedTo", "") == self.store

    @cached_property
    def wanted(self) -> tuple[DesiredState, str]:
        """The state that is wanted, and what says so."""
        return wanted_state(self.seen.sink)

    @property
    def restart(self) -> str | None:
        """The text of the annotation that asks for a restart."""
        return annotation(self.seen.sink, names.RESTART) or None

    @cached_property
    def claim(self) -> Claim:
        return conflicts.claim_of(self.valid, self.seen.sink)

    @cached_property
    def conflict(self) -> conflicts.Conflict | None:
        """The older sink that claims what this one does, or may."""
        return None if self.sink is None else conflicts.conflict(self.claim, self.seen.others)

    @property
    def owner(self) -> Json:
        """The owner reference of all children."""
        return {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": KIND,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
        }

    # -- what is there -------------------------------------------------------------------------------------------------

    def _ours(self, pod: Json | None) -> Json | None:
        return pod if pod is not None and is_controlled(pod, self.uid) else None

    @cached_property
    def driver(self) -> Json | None:
        """The driver pod, if it is ours."""
        return self._ours(self.seen.driver)

    @cached_property
    def task(self) -> Json | None:
        """The task pod, if it is ours."""
        return self._ours(self.seen.task)

    @property
    def foreign(self) -> Json | None:
        """The first object that has a name of ours and belongs to somebody else."""
        for pod in (self.seen.driver, self.seen.task):
            if pod is not None and not is_controlled(pod, self.uid):
                return pod
        for child in (self.seen.config, self.seen.account, self.seen.binding):
            if child is not None and not is_controlled(child, self.uid):
                owners = child["metadata"].get("ownerReferences") or ()
                if label(child, names.SINK) != self.name or any(owner.get("controller") for owner in owners):
                    return child
        return None

    @property
    def report(self) -> Report | None:
        return self.seen.report if isinstance(self.seen.report, Report) and self.driver else None

    @cached_property
    def story(self) -> Story:
        seen = replace(self.seen, driver=self.driver, task=self.task)
        return story_of(seen, self.old, self.key, self.bounds, self.now)

    # -- what should be ------------------------------------------------------------------------------------------------

    @cached_property
    def key(self) -> Key | None:
        """What a driver would be started for now."""
        if self.sink is None:
            return None
        return Key(spec_hash=objects.spec_hash(self.sink, self.settings), restart=self.restart)

    @cached_property
    def _differs_by_image(self) -> bool:
        """Whether the driver differs from what is wanted by the operator's own image alone."""
        before = objects.image_of(self.driver) if self.driver is not None else None
        if before is None or self.sink is None or self.key is None or self.key.fits(self.driver or {}):
            return False
        same = replace(self.key, spec_hash=objects.spec_hash(self.sink, replace(self.settings, image=before)))
        return same.fits(self.driver or {})

    @property
    def keeps_image(self) -> bool:
        """Whether the driver's turn for the operator's new image is still to come: a new default does not end all
        drivers of a cluster in the same minute.
        """
        turn = self.settings.started_ms + int(self.settings.rollout_ms * backoff.share(self.uid))
        return self.now < turn and self._differs_by_image

    @property
    def is_up_to_date(self) -> bool:
        """Whether the driver was started with what the spec says now."""
        fits = self.driver is not None and self.key is not None and self.key.fits(self.driver)
        return fits or self._differs_by_image

    @property
    def is_local(self) -> bool:
        return self.valid.spec.executor.mode is ExecutorMode.LOCAL

    @property
    def bounds(self) -> Bounds | None:
        """What the user allows. A driver that runs everything in one pod and has a size of its own keeps to it."""
        if self.sink is None:
            return None
        spec = self.sink.spec
        if self.is_local and spec.driver.memory is not None:
            return Bounds(mode=MemoryMode.OFF, least=spec.driver.memory, most=spec.driver.memory)
        chosen = spec.executor.memory
        return Bounds(mode=chosen.mode, least=chosen.min, most=chosen.max)

    @cached_property
    def inputs(self) -> Inputs:
        """What the need is worked out from: this report, or what the status remembers of the last."""
        spec = self.valid.spec
        if self.report is not None:
            seen = self.report.memory
            opened, held = seen.max_open_objects, min(seen.buffered_bytes + seen.spilled_bytes, MOST)
        else:
            known = (self.old.get("memory") or {}).get("inputs") or {}
            opened, held = _whole(known.get("openObjects")), _whole(known.get("heldBytes"))
        return Inputs(slots=spec.executor.cores, part_size=spec.s3.part_size, open_objects=opened, held=held)

    @cached_property
    def start_size(self) -> int:
        """What an executor, or the whole sink in Local mode, is started with."""
        bounds = self.bounds
        assert bounds is not None
        return memory_sizing.start_size(self.inputs, bounds, self.story.state, self.now)

    @property
    def is_driver_capped(self) -> bool:
        """Whether a driver beside executors has the most that it gets without a person's word."""
        if self.sink is None or self.is_local or self.sink.spec.driver.memory is not None:
            return False
        return memory_sizing.is_driver_capped(self.story.state, self.now)

    def shape(self) -> Shape:
        """What the next driver is made with."""
        key = self.key
        assert key is not None
        local = self.start_size
        if not self.is_local:
            known = ((self.old.get("connector") or {}).get("partitions") or {}).get("assigned")
            local = self.valid.spec.driver.memory or memory_sizing.driver_size(
                _whole(known), self.story.state, self.now
            )
        return Shape(
            attempt=self.story.next,
            memory=local,
            executor_memory=None if self.is_local else self.start_size,
            spec_hash=key.spec_hash,
            restarted_for=self.restart,
        )

    def new_driver(self) -> Json:
        return objects.driver_pod(self.valid, self.owner, self.settings, self.shape())

    def new_task(self, request: str, made_for: str) -> Json:
        """A task pod runs everything in itself, so it is sized as a sink in Local mode. `made_for` is its digest."""
        size = self.start_size
        shape = replace(self.shape(), memory=size, executor_memory=None, restarted_for=None, spec_hash=made_for)
        return objects.task_pod(self.valid, self.owner, self.settings, shape, request)

    def base(self) -> Sequence[Json]:
        """Those of the objects beside the pods that are not as they should be."""
        driver, attempt, size = self.driver, self.story.next, self.start_size
        if driver is not None:
            if self.key is None or not self.key.fits(driver):
                return ()  # they follow once the driver that was started with those of before is gone
            attempt, size = attempt_of(driver, names.ATTEMPT), objects.memory_of(driver) or size
        wanted = objects.base(self.valid, self.owner, self.settings, attempt=attempt, memory=size)
        there = (self.seen.config, self.seen.account, self.seen.binding)
        return tuple(each for seen, each in zip(there, wanted, strict=True) if objects.differs(seen, each))

    # -- ending pods ---------------------------------------------------------------------------------------------------

    def end(self, pod: Json | None, *, force: bool = False) -> tuple[Delete, ...]:
        """What ends a pod of ours: nothing if it is ending already, by force if it has been for too long."""
        if pod is None:
            return ()
        if is_ending(pod):
            due = (to_ms(pod["metadata"]["deletionTimestamp"]) or self.now) + self.settings.node_lost_ms
            force = force or self.now >= due
            if not force or _is_forced(pod):
                return ()
        grace = 0 if force else None
        return (Delete(kind="Pod", name=pod["metadata"]["name"], uid=uid_of(pod), grace_s=grace),)

    def refused(self, kind: str, name: str) -> int | None:
        """Milliseconds for which a write that the API server refused is not tried again; None if it may be."""
        last = max((each.at_ms for each in self.seen.refusals if (each.kind, each.name) == (kind, name)), default=None)
        left = 0 if last is None else last + self.settings.refused_ms - self.now
        return left if left > 0 else None

    @property
    def lost(self) -> tuple[Json, str] | None:
        """The driver or the task whose node is gone or not ready, and that node."""
        nodes = dict(self.seen.nodes)
        found = ((pod, pod_failures.lost_node(pod, nodes)) for pod in (self.driver, self.task) if pod is not None)
        return next(((pod, node) for pod, node in found if node is not None and pod_failures.ended(pod) is None), None)


@lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[Sink | None, str]:
    """The sink in a JSON document, or its mistakes in a line. A spec is looked at much more often than it changes."""
    try:
        sink = parse_sink({"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND} | json.loads(text))
    except InvalidSpec as error:
        return None, "; ".join(error.mistakes)
    except RecursionError:
        return None, "it is nested too deeply"
    if len(sink.name) > names.LONGEST_SINK:
        return None, f"metadata.name: {sink.name} is longer than {names.LONGEST_SINK} characters"
    return sink, ""


def _is_forced(pod: Json) -> bool:
    """Whether force was tried already: only somebody's finalizer can hold the pod now."""
    metadata = pod["metadata"]
    return metadata.get("deletionGracePeriodSeconds") == 0 and bool(metadata.get("finalizers"))


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and value >= 0 else 0
