"""The coordinator of a sink: it claims the ledger and starts the round loop.

Start-up ends with `RoundLoop`, which has everything that a round needs. All dependencies, clocks included, come from
`CoordinatorContext`, so tests run the same code without Spark.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from functools import partial

from sink_job.api.errors import ConfigurationError
from sink_job.api.spec import ObjectSettings, Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.codecs.formats import with_library
from sink_job.coordinator.context import CoordinatorContext, StopCondition
from sink_job.coordinator.dead_letters.producer import check_dead_letter_topic
from sink_job.coordinator.progress import Progress
from sink_job.coordinator.round_loop import RoundLoop
from sink_job.coordinator.topic_claims import TopicClaims
from sink_job.coordinator.topic_discovery import TopicDiscovery
from sink_job.engine.kafka_admin import TopicInfo
from sink_job.ledger import ownership
from sink_job.ledger.clocks import HostClock
from sink_job.ledger.first_claim import checks as first_claim
from sink_job.ledger.first_claim.ledger_place import (
    check_no_other_ledger,
    deleted_ledger_warning,
    home_of,
    ledger_root,
)
from sink_job.ledger.first_claim.previous_writer import PreviousWriter
from sink_job.ledger.generations import settings_of_generation
from sink_job.ledger.handover import Handover
from sink_job.ledger.state import LedgerState, Record
from sink_job.ledger.store import Ledger
from sink_job.ledger.takeover import ownership_checked_first, take_over
from sink_job.ledger.transitions import apply, diff
from sink_job.s3 import S3Client, StoreAdvice, check_objects_bucket, check_store, connect
from sink_job.s3.settings import with_customer_key

_log = logging.getLogger(__name__)


class Coordinator:
    """The coordinator of one sink. `run` does all its work; any thread or signal handler may call `stop`."""

    def __init__(
        self, sink: Sink, context: CoordinatorContext, stop_condition: StopCondition, progress: Progress
    ) -> None:
        self.sink = sink
        self.context = context
        self.stop_condition = stop_condition
        self.progress = progress
        self._object_settings = with_library(sink.object_settings())
        if sink.spec.s3.encryption is not None:
            self._object_settings = with_customer_key(self._object_settings, context.s3)
        self._s3: S3Client = connect(context.s3)
        self._root = ledger_root(self._s3, self._object_settings.s3.topics_dir, sink.sink_id)
        self._home = home_of(self._s3, self._root)
        self._ledger = Ledger(self._s3, self._root, context.attempt)
        self._discovery = TopicDiscovery(sink, context.admin)
        self._clock = HostClock(context.clock, context.store_clock, self._s3, context.steady_clock)
        handover = Handover(
            s3=self._s3,
            topics_dir=self._object_settings.s3.topics_dir,
            root=self._root,
            attempt=context.attempt,
            clock=context.clock,
            store_clock=context.store_clock,
            predecessor=stop_condition.take_over_from,
        )
        self._claims = TopicClaims(
            self._s3,
            self._object_settings,
            sink.sink_id,
            context.owner,
            take_over=stop_condition.take_over,
            succession=handover,
        )

    def stop(self) -> None:
        """Ends the run within seconds, also during a round: what no record of the ledger contains has not happened."""
        self.context.stop.set()
        self.context.engine.cancel()

    def publish_and_stop(self) -> None:
        """Ends the run as `stop`, then publishes the open objects without Spark. Records of the round that this ends
        are not published."""
        self.progress.stopping()
        self.context.publish_at_stop.set()
        self.stop()

    def run(self) -> None:
        """Runs until the stop condition holds or `stop` is called.

        Raises the SinkError that ends the run: LedgerFenced, DataError, DataLoss, ObjectConflict, ConfigurationError or
        TransientError.
        """
        only_publishes = self.stop_condition.publish_open and not self.stop_condition.until_caught_up
        if only_publishes and not self._ledger.exists():
            _log.info("no ledger at %s: there are no open objects", self._ledger.url)
            return
        loop = self.start()
        try:
            with ownership_checked_first(self._ledger, lambda: loop.state):
                loop.run()
        finally:
            loop.close()

    def start(self) -> RoundLoop:
        """Claims the ledger (P4). The caller closes the loop that this returns."""
        self._clock.now()
        if not self.stop_condition.start_new_ledger and not self._ledger.exists():
            metadata = self._discovery.group_metadata(self._discovery.discover())
            check_no_other_ledger(self._ledger.url, self.sink.group_id, metadata, self._s3.url_of(self._home))
            deleted = deleted_ledger_warning(self._ledger.url, self.sink.group_id, metadata)
            if deleted:
                _log.warning("%s", deleted)
        _log_advice((self.context.store_check or self._check_store)())
        topics = self._discovery.refresh()
        check_dead_letter_topic(self.sink, self.context, self._ledger)
        self._claims.acquire_all(topics)
        if self.sink.spec.s3.ledger is not None:
            has_encryption = self.sink.spec.s3.encryption is not None
            _log_advice(check_objects_bucket(self._s3, self._home, encryption=has_encryption))
        try:
            state = take_over(self._ledger, partial(self._claim_record, topics))
        except ConfigurationError:  # such as LedgerLost: the objects may be those of a sink that has taken over
            self._claims.check_after_claim(topics)
            raise
        self._claims.check_after_claim(topics)
        with ownership_checked_first(self._ledger, lambda: state):
            state = self._check_previous_writer(state)
        loop = RoundLoop(
            self.sink,
            self.context,
            self.stop_condition,
            self.progress,
            s3=self._s3,
            ledger=self._ledger,
            discovery=self._discovery,
            claims=self._claims,
            clock=self._clock,
            state=state,
        )
        self.progress.claimed(state)
        return loop

    def _check_store(self) -> Sequence[StoreAdvice]:
        required = self.sink.spec.s3
        return check_store(
            self._s3,
            self._root,
            object_lock=required.object_lock is not None,
            encryption=required.encryption is not None,
        )

    def _claim_record(self, topics: Mapping[str, TopicInfo], state: LedgerState) -> Record:
        """The record that claims the ledger. For a new sink it contains the first offset of each topic-partition. The
        group gets these offsets once the claim is the ledger's head: a commit before that could follow the claim of
        another driver."""
        kafka = ownership.check_topic_ids(state.kafka, self._discovery.topic_ids(topics))
        partitions = self._claims.continued(self._discovery.new_partitions(state, topics))
        previous: PreviousWriter | None = None
        if not state.partitions and partitions:
            partitions = self._discovery.initial_offsets(partitions, self._claims.continues_at)
            previous = self.context.previous
            if previous is not None:
                committed = self.context.admin.group_offsets(self.sink.group_id, list(partitions))
                partitions = first_claim.continued(partitions, previous, committed)
            starts = {tp: p.next for tp, p in partitions.items()}
            if previous is not None:
                advice = "No ledger was created: start again."
                first_claim.check_objects(self._s3, self._object_settings, previous, starts, advice)
            elif not self.stop_condition.start_new_ledger:
                ownership.check_no_objects(self._s3, self._object_settings, starts)
            self._discovery.check_no_members()
        number = state.number + 1
        return Record(
            number=number,
            epoch=number,
            attempt=self.context.attempt,
            kind="claim",
            clock=max(state.clock, self._clock.now()),
            settings=settings_of_generation(
                self._object_settings, state.topics_dir, state.generation
            ).model_dump_json(),
            kafka=kafka,
            partitions={str(tp): diff(None, p) for tp, p in partitions.items()},
            previous=previous,
        )

    def _check_previous_writer(self, state: LedgerState) -> LedgerState:
        """After a claim that only claims precede: aborts the unfinished uploads of the writer that the first claim
        continues, checks that its objects are still those of the claim, and records that
        (`sink_job.ledger.first_claim`). Returns the state after the record."""
        claim = first_claim.unchecked_claim(self._ledger, state)
        if claim is None or claim.previous is None or claim.settings is None:
            return state
        settings = ObjectSettings.model_validate_json(claim.settings)
        starts = {TopicPartition.parse(name): p.state.rotation_start for name, p in claim.partitions.items()}
        self._discovery.check_no_members(f"Nothing was copied since the claim of {self._ledger.url}")
        aborted = first_claim.abort_uploads(self._ledger, state, settings, starts)
        if aborted:
            _log.info("aborted %d unfinished uploads of the previous writer", aborted)
        advice = f"Remove {self._ledger.url}ledger/ and repeat the first start."
        first_claim.check_objects(self._s3, settings, claim.previous, starts, advice)
        number, attempt = state.number + 1, self.context.attempt
        checked = Record(number=number, epoch=state.epoch, attempt=attempt, kind="round", clock=state.clock)
        self._ledger.append(checked)
        return apply(state, checked)


def _log_advice(found: Iterable[StoreAdvice]) -> None:
    for advice in found:
        _log.log(advice.level, "%s", advice.message)
