"""What the policies look at: one sink, read once, and what its objects should be."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Final

from s3sink_operator import backoff, conflicts, memory_sizing, names, objects, pod_failures
from s3sink_operator.decide.attempt_history import AttemptHistory, DriverRevision, update_history
from s3sink_operator.memory_sizing import Bounds, SizingInputs
from s3sink_operator.objects import PodShape
from s3sink_operator.status import MAX_INTEGER
from s3sink_operator.types import (
    Json,
    Observed,
    Settings,
    SinkResources,
    annotation,
    desired_state,
    is_controlled,
    label,
)
from sink_job.api.enums import ExecutorMode, MemoryMode, State
from sink_job.api.errors import SpecError
from sink_job.api.report import Report
from sink_job.api.spec import GROUP, KIND, VERSION, Sink, parse_sink

BY_SPEC: Final = "spec"
BY_ANNOTATION: Final = "annotation"
RESET_REQUEST_FIELD: Final = {
    BY_SPEC: "spec.offsets.reset",
    BY_ANNOTATION: f"the annotation {names.RESET_OFFSETS_ANNOTATION}",
}


@dataclass(frozen=True)
class Context:
    """One look at one sink. Everything that is worked out of it is worked out once."""

    observed: Observed
    settings: Settings
    now: int

    # -- the sink ------------------------------------------------------------------------------------------------------

    @cached_property
    def _parsed_spec(self) -> tuple[Sink | None, str]:
        return _parsed(self._document(self.observed.sink.get("spec")))

    @cached_property
    def _parsed_reset(self) -> tuple[Sink | None, str]:
        """The sink with the request about offsets of the annotation, until that has been carried out."""
        text = annotation(self.observed.sink, names.RESET_OFFSETS_ANNOTATION)
        if text is None or self._parsed_spec[0] is None:
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
        if nonce is not None and nonce == self.completed_resets.get(BY_ANNOTATION):
            return None, ""
        return _parsed(document)

    def _document(self, spec: Any) -> str:
        metadata = {name: self.metadata.get(name) for name in ("name", "namespace")}
        return json.dumps({"metadata": metadata, "spec": spec})

    @property
    def sink(self) -> Sink | None:
        """The sink, if its spec can be read. A request about offsets in the annotation stands in that of the spec."""
        return self._parsed_reset[0] or self._parsed_spec[0]

    @property
    def parsed_sink(self) -> Sink:
        """The sink, for policies that come after the one that looks whether its spec can be read."""
        assert self.sink is not None
        return self.sink

    @property
    def spec_errors(self) -> str:
        return self._parsed_spec[1]

    @property
    def reset_source(self) -> str:
        """Who asks for other offsets: a key of `carried_out`."""
        return BY_SPEC if self._parsed_reset[0] is None else BY_ANNOTATION

    @property
    def reset_errors(self) -> str:
        """What is wrong with the request of the annotation; empty where there is none."""
        return self._parsed_reset[1]

    @cached_property
    def completed_resets(self) -> Json:
        """The nonce of the last request about offsets that was carried out, by who asked: each has one at a time."""
        told = self.previous_status.get("offsets") or {}
        return dict(told.get("carriedOut") or ({BY_SPEC: told["nonce"]} if "nonce" in told else {}))

    @cached_property
    def metadata(self) -> Json:
        return dict(self.observed.sink.get("metadata") or {})

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
    def previous_status(self) -> Json:
        """The status as it is."""
        return dict(self.observed.sink.get("status") or {})

    @property
    def spec(self) -> Json:
        """The spec as it was written, right or wrong."""
        found = self.observed.sink.get("spec")
        return found if isinstance(found, dict) else {}

    @property
    def s3_endpoint(self) -> str:
        """The address of the S3 server; empty for AWS's own. It may be another one after an edit."""
        s3 = self.spec.get("s3")
        return str(s3.get("endpoint") or "") if isinstance(s3, dict) else ""

    @property
    def published(self) -> bool:
        """Whether the status says that all is published, in this store."""
        state = self.previous_status.get("state") or {}
        return bool(state.get("published")) and state.get("publishedTo", "") == self.s3_endpoint

    @cached_property
    def desired_state(self) -> tuple[State, str]:
        """The state that is wanted, and what says so."""
        return desired_state(self.observed.sink)

    @property
    def restart_requested(self) -> str | None:
        """The text of the annotation that asks for a restart."""
        return annotation(self.observed.sink, names.RESTART_ANNOTATION) or None

    @cached_property
    def resources(self) -> SinkResources:
        return conflicts.resources_of(self.parsed_sink, self.observed.sink)

    @cached_property
    def conflict(self) -> conflicts.SinkConflict | None:
        """The older sink that claims what this one does, or may."""
        return None if self.sink is None else conflicts.find_conflict(self.resources, self.observed.competitors)

    @property
    def owner_reference(self) -> Json:
        """The owner reference of all children."""
        return {
            "apiVersion": f"{GROUP}/{VERSION}",
            "kind": KIND,
            "name": self.name,
            "uid": self.uid,
            "controller": True,
        }

    # -- what is there -------------------------------------------------------------------------------------------------

    def _owned(self, pod: Json | None) -> Json | None:
        return pod if pod is not None and is_controlled(pod, self.uid) else None

    @cached_property
    def driver(self) -> Json | None:
        """The driver pod, if it is ours."""
        return self._owned(self.observed.driver)

    @cached_property
    def operation(self) -> Json | None:
        """The task pod, if it is ours."""
        return self._owned(self.observed.operation)

    @property
    def unowned_object(self) -> Json | None:
        """The first object that has a name of ours and belongs to somebody else."""
        for pod in (self.observed.driver, self.observed.operation):
            if pod is not None and not is_controlled(pod, self.uid):
                return pod
        for child in (self.observed.config_map, self.observed.service_account, self.observed.role_binding):
            if child is not None and not is_controlled(child, self.uid):
                owners = child["metadata"].get("ownerReferences") or ()
                if label(child, names.SINK_LABEL) != self.name or any(owner.get("controller") for owner in owners):
                    return child
        return None

    @property
    def report(self) -> Report | None:
        return self.observed.report if isinstance(self.observed.report, Report) and self.driver else None

    @cached_property
    def history(self) -> AttemptHistory:
        seen = replace(self.observed, driver=self.driver, operation=self.operation)
        return update_history(seen, self.previous_status, self.revision, self.bounds, self.now)

    # -- what should be ------------------------------------------------------------------------------------------------

    @cached_property
    def revision(self) -> DriverRevision | None:
        """What a driver would be started for now."""
        if self.sink is None:
            return None
        return DriverRevision(spec_hash=objects.spec_hash(self.sink, self.settings), restart=self.restart_requested)

    @cached_property
    def _differs_by_image(self) -> bool:
        """Whether the driver differs from what is wanted by the operator's own image alone."""
        before = objects.image_of(self.driver) if self.driver is not None else None
        if before is None or self.sink is None or self.revision is None or self.revision.matches_pod(self.driver or {}):
            return False
        same = replace(self.revision, spec_hash=objects.spec_hash(self.sink, replace(self.settings, image=before)))
        return same.matches_pod(self.driver or {})

    @property
    def keeps_image(self) -> bool:
        """Whether the driver's turn for the operator's new image is still to come: a new default does not end all
        drivers of a cluster in the same minute.
        """
        turn = self.settings.start_time_ms + int(self.settings.rollout_ms * backoff.uid_fraction(self.uid))
        return self.now < turn and self._differs_by_image

    @property
    def is_up_to_date(self) -> bool:
        """Whether the driver was started with what the spec says now."""
        fits = self.driver is not None and self.revision is not None and self.revision.matches_pod(self.driver)
        return fits or self._differs_by_image

    @property
    def is_local(self) -> bool:
        return self.parsed_sink.spec.executor.mode is ExecutorMode.LOCAL

    @property
    def bounds(self) -> Bounds | None:
        """What the user allows. A driver that runs everything in one pod and has a size of its own keeps to it."""
        if self.sink is None:
            return None
        spec = self.sink.spec
        if self.is_local and spec.driver.memory is not None:
            return Bounds(mode=MemoryMode.OFF, min=spec.driver.memory, max=spec.driver.memory)
        chosen = spec.executor.memory
        return Bounds(mode=chosen.mode, min=chosen.min, max=chosen.max)

    @cached_property
    def inputs(self) -> SizingInputs:
        """What the need is worked out from: this report, or what the status remembers of the last."""
        spec = self.parsed_sink.spec
        if self.report is not None:
            seen = self.report.memory
            opened, held = seen.most_open_objects, min(seen.buffered_bytes + seen.spilled_bytes, MAX_INTEGER)
        else:
            known = (self.previous_status.get("memory") or {}).get("inputs") or {}
            opened, held = _whole(known.get("openObjects")), _whole(known.get("heldBytes"))
        return SizingInputs(
            slots=spec.executor.cores, part_size=spec.s3.part_size, open_objects=opened, held_bytes=held
        )

    @cached_property
    def start_size(self) -> int:
        """What an executor, or the whole sink in Local mode, is started with."""
        bounds = self.bounds
        assert bounds is not None
        return memory_sizing.start_size(self.inputs, bounds, self.history.sizing, self.now)

    @property
    def is_driver_capped(self) -> bool:
        """Whether a driver beside executors has the most that it gets without a person's word."""
        if self.sink is None or self.is_local or self.sink.spec.driver.memory is not None:
            return False
        return memory_sizing.is_driver_capped(self.history.sizing, self.now)

    def pod_shape(self) -> PodShape:
        """What the next driver is made with."""
        key = self.revision
        assert key is not None
        local = self.start_size
        if not self.is_local:
            known = ((self.previous_status.get("connector") or {}).get("partitions") or {}).get("assigned")
            local = self.parsed_sink.spec.driver.memory or memory_sizing.driver_size(
                _whole(known), self.history.sizing, self.now
            )
        return PodShape(
            attempt=self.history.next_attempt,
            memory=local,
            executor_memory=None if self.is_local else self.start_size,
            spec_hash=key.spec_hash,
            restarted_for=self.restart_requested,
        )

    def rejected_for_ms(self, kind: str, name: str) -> int | None:
        """Milliseconds for which a write that the API server refused is not tried again; None if it may be."""
        last = max(
            (each.at_ms for each in self.observed.rejections if (each.kind, each.name) == (kind, name)), default=None
        )
        left = 0 if last is None else last + self.settings.rejected_retry_ms - self.now
        return left if left > 0 else None

    @property
    def lost_node_pod(self) -> tuple[Json, str] | None:
        """The driver or the task whose node is gone or not ready, and that node."""
        nodes = dict(self.observed.nodes)
        found = (
            (pod, pod_failures.node_of_lost_pod(pod, nodes)) for pod in (self.driver, self.operation) if pod is not None
        )
        return next(
            ((pod, node) for pod, node in found if node is not None and pod_failures.termination_failure(pod) is None),
            None,
        )


@lru_cache(maxsize=4096)
def _parsed(text: str) -> tuple[Sink | None, str]:
    """The sink in a JSON document, or its mistakes in a line. A spec is looked at much more often than it changes."""
    try:
        sink = parse_sink({"apiVersion": f"{GROUP}/{VERSION}", "kind": KIND} | json.loads(text))
    except SpecError as error:
        return None, "; ".join(error.mistakes)
    except RecursionError:
        return None, "it is nested too deeply"
    if len(sink.name) > names.MAX_SINK_NAME:
        return None, f"metadata.name: {sink.name} is longer than {names.MAX_SINK_NAME} characters"
    return sink, ""


def _whole(value: Any) -> int:
    return value if isinstance(value, int) and value >= 0 else 0
