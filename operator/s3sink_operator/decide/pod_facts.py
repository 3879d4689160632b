"""The facts about the pods of a sink: the driver and what it reports, the operation, and the executors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from s3sink_operator import names
from s3sink_operator.decide.sink_facts import SinkFacts
from s3sink_operator.failures import pod_failures
from s3sink_operator.types import (
    Json,
    Observed,
    annotation,
    attempt_number,
    is_controlled,
    is_terminating,
    label,
    uid_of,
)
from sink_job.api.report import Report


@dataclass(frozen=True, kw_only=True)
class PodFacts:
    """The pods that this sink owns, and how the driver differs from the one that would be started now."""

    observed: Observed
    sink: SinkFacts

    @cached_property
    def driver(self) -> Json | None:
        """The driver pod, if this sink owns it."""
        return self._owned(self.observed.driver)

    @cached_property
    def operation(self) -> Json | None:
        """The operation pod, if this sink owns it."""
        return self._owned(self.observed.operation)

    def _owned(self, pod: Json | None) -> Json | None:
        return pod if pod is not None and is_controlled(pod, self.sink.uid) else None

    @cached_property
    def executors(self) -> Sequence[Json]:
        """The executor pods of the current driver. Those of previous attempts are terminating."""
        if self.driver is None:
            return ()
        attempt, driver = attempt_number(self.driver, names.ATTEMPT_LABEL), uid_of(self.driver)
        own = [pod for pod in self.observed.executors if is_controlled(pod, driver)]  # anyone may set these labels
        return [pod for pod in own if attempt_number(pod, names.ATTEMPT_LABEL) == attempt]

    @property
    def report(self) -> Report | None:
        """The report of the driver, if it answered."""
        return self.observed.report if isinstance(self.observed.report, Report) and self.driver else None

    @property
    def unowned_object(self) -> Json | None:
        """The first object with the name of a child that this sink does not own."""
        for pod in (self.observed.driver, self.observed.operation):
            if pod is not None and not is_controlled(pod, self.sink.uid):
                return pod
        for child in (self.observed.config_map, self.observed.service_account, self.observed.role_binding):
            if child is not None and not is_controlled(child, self.sink.uid):
                owners = child["metadata"].get("ownerReferences") or ()
                if label(child, names.SINK_LABEL) != self.sink.name or any(owner.get("controller") for owner in owners):
                    return child
        return None

    # -- how pods end --------------------------------------------------------------------------------------------------

    @property
    def publishes_at_stop(self) -> bool:
        """Whether the driver is ending with its namespace and publishes its open objects."""
        driver = self.driver
        if driver is None or not self.observed.namespace_terminating or not is_terminating(driver):
            return False
        return pod_failures.termination_failure(driver) is None

    @property
    def has_published_at_stop(self) -> bool:
        """Whether the driver has ended and published its open objects before that."""
        return self.driver is not None and pod_failures.has_published(self.driver)

    @property
    def on_lost_node(self) -> tuple[Json, str] | None:
        """The driver or operation pod whose node is gone or not ready, and the node."""
        nodes = dict(self.observed.nodes)
        for pod in (self.driver, self.operation):
            node = None if pod is None else pod_failures.node_of_lost_pod(pod, nodes)
            if pod is not None and node is not None and pod_failures.termination_failure(pod) is None:
                return pod, node
        return None

    # -- the revision of the driver ------------------------------------------------------------------------------------

    @cached_property
    def is_rollout_pending(self) -> bool:
        """Whether the driver differs from the desired revision only by what the operator adds to the spec: its default
        image, or the result of another version. Such a restart is not requested by the user and waits for its turn.

        A driver of a version that did not annotate the source counts as such.
        """
        driver, revision = self.driver, self.sink.revision
        if driver is None or revision is None or is_terminating(driver):
            return False
        if revision.matches_pod(driver) or revision.requests_restart(driver):
            return False
        source = annotation(driver, names.SOURCE_HASH_ANNOTATION)
        is_same_edition = annotation(driver, names.GENERATION_ANNOTATION) == self.sink.edition
        return source is None or is_same_edition or source == self.sink.source_hash

    @property
    def has_current_driver(self) -> bool:
        """Whether the driver was started with the current spec and the current defaults of the operator."""
        revision = self.sink.revision
        return self.driver is not None and revision is not None and revision.matches_pod(self.driver)

    @property
    def is_up_to_date(self) -> bool:
        """Whether the driver was started with the current spec."""
        return self.has_current_driver or self.is_rollout_pending
