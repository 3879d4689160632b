"""The facts that the policies use: one sink, its pods, and what follows from them. Each is computed once, when it is
first used."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from s3sink_operator.decide.attempt_history import AttemptHistory, update_history
from s3sink_operator.decide.memory_facts import MemoryFacts, ScalingFacts, SizingFacts
from s3sink_operator.decide.pod_facts import PodFacts
from s3sink_operator.decide.sink_facts import Conflicts, PreviousStatus, ResetRequests, SinkFacts
from s3sink_operator.types import Observed, Settings


@dataclass(frozen=True)
class Context:
    """The facts of one reconcile pass. `now` in ms since the epoch. A part is made of those above it."""

    observed: Observed
    settings: Settings
    now: int

    @cached_property
    def previous(self) -> PreviousStatus:
        """The status before this pass."""
        return PreviousStatus(document=dict(self.observed.sink.get("status") or {}))

    @cached_property
    def reset(self) -> ResetRequests:
        """The requests for an offset reset."""
        return ResetRequests(observed=self.observed, previous=self.previous)

    @cached_property
    def sink(self) -> SinkFacts:
        """The manifest, and what it asks for."""
        return SinkFacts(observed=self.observed, settings=self.settings, previous=self.previous, parsed=self.reset.sink)

    @cached_property
    def conflicts(self) -> Conflicts:
        """Other sinks with the same resources."""
        return Conflicts(observed=self.observed, sink=self.sink)

    @cached_property
    def pods(self) -> PodFacts:
        """The pods, and the report of the driver."""
        return PodFacts(observed=self.observed, sink=self.sink)

    @cached_property
    def history(self) -> AttemptHistory:
        """The attempts and failures after this pass."""
        observed = replace(self.observed, driver=self.pods.driver, operation=self.pods.operation)
        return update_history(observed, self.previous.status, self.sink.revision, self.sink.memory_bounds, self.now)

    @cached_property
    def memory(self) -> MemoryFacts:
        """The memory that the tasks have and use."""
        return MemoryFacts(
            observed=self.observed, settings=self.settings, previous=self.previous, sink=self.sink, pods=self.pods
        )

    @cached_property
    def scaling(self) -> ScalingFacts:
        """The number of executors."""
        return ScalingFacts(
            observed=self.observed,
            settings=self.settings,
            now=self.now,
            previous=self.previous,
            sink=self.sink,
            pods=self.pods,
            memory=self.memory,
        )

    @cached_property
    def sizing(self) -> SizingFacts:
        """The memory that the next attempt starts with."""
        return SizingFacts(
            observed=self.observed,
            now=self.now,
            previous=self.previous,
            sink=self.sink,
            memory=self.memory,
            scaling=self.scaling,
            history=self.history,
        )

    def rejected_for_ms(self, kind: str, name: str) -> int | None:
        """Milliseconds until a write that the API server rejected is retried; None if it may be written."""
        times = [each.at_ms for each in self.observed.rejections if (each.kind, each.name) == (kind, name)]
        left = max(times) + self.settings.rejected_retry_ms - self.now if times else 0
        return left if left > 0 else None
