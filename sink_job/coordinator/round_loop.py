"""The round loop: it recovers the ledger's state, then runs rounds until the stop condition holds."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from enum import Enum, auto

from sink_job.api.enums import OnDataLoss
from sink_job.api.errors import DataLoss, TopicNotFound, TransientError
from sink_job.api.spec import Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import CoordinatorContext, StopCondition
from sink_job.coordinator.log_ends import LogEnds
from sink_job.coordinator.planner import PartitionView, is_close_due, plan, superseded
from sink_job.coordinator.progress import Progress
from sink_job.coordinator.round_clock import RoundClock
from sink_job.coordinator.rounds import Rounds
from sink_job.coordinator.topic_changes import record_topic_changes
from sink_job.coordinator.topic_claims import TopicClaims
from sink_job.coordinator.topic_discovery import TopicDiscovery
from sink_job.engine.types import Cancelled
from sink_job.ledger.clocks import HostClock, report_set_back, without_clock
from sink_job.ledger.skips import log_skips
from sink_job.ledger.state import LedgerState
from sink_job.ledger.store import Ledger
from sink_job.s3 import S3Client

IDLE_WAIT_MS = 1_000
"""Longest pause between two polls of the log ends, in ms."""

_log = logging.getLogger(__name__)


class _Check(Enum):
    """What is checked at an interval between rounds."""

    HEAD = auto()
    TOPICS = auto()
    GROUP = auto()


class RoundLoop:
    """The round loop of one driver that has claimed the ledger. `state` is the ledger's state after the claim."""

    truncation_check_ms = 1_000
    """Delay between two checks of a log that appears truncated, in ms."""

    def __init__(
        self,
        sink: Sink,
        context: CoordinatorContext,
        stop_condition: StopCondition,
        progress: Progress,
        *,
        s3: S3Client,
        ledger: Ledger,
        discovery: TopicDiscovery,
        claims: TopicClaims,
        clock: HostClock,
        state: LedgerState,
    ) -> None:
        self.sink = sink
        self.context = context
        self.stop_condition = stop_condition
        self.progress = progress
        self._ledger = ledger
        self._discovery = discovery
        self._claims = claims
        self._clock = RoundClock(clock, progress, state.clock)
        self._rounds = Rounds(
            sink,
            context,
            progress,
            s3=s3,
            ledger=ledger,
            discovery=discovery,
            clock=self._clock,
            state=state,
            wait=self._wait_for_logs,
        )
        self._log_ends = LogEnds(
            sink,
            context,
            discovery,
            progress,
            next_of=lambda tp: self._rounds.state_of(tp).next,
            wait=self._wait_for_logs,
        )
        self._checked_ms = dict.fromkeys(_Check, context.clock())
        self._targets: dict[TopicPartition, int] = {}

    @property
    def state(self) -> LedgerState:
        """The ledger's state after the last record of this driver."""
        return self._rounds.state

    def run(self) -> None:
        """Recovers, then runs rounds until the stop condition holds or the driver is to stop. Raises as
        `Coordinator.run`."""
        self._claims.acquire_generation(sorted(self._discovery.current), self.state.topics_dir)
        try:
            self.recover()
            while not self.context.stop.is_set():
                if not self.run_once() and self._is_caught_up():
                    break
        except Cancelled:
            _log.info("stopped during a round; the next start repeats it")
        except TransientError as error:
            if not self.context.publish_at_stop.is_set():
                raise
            _log.warning("a round failed while the driver was stopping: %s", error)
        if self.context.publish_at_stop.is_set():
            self._publish_at_stop()

    def _publish_at_stop(self) -> None:
        """Publishes the open objects of the ledger's state. Spark may have no executors any more, so the tasks run in
        this process: closing an object reads its staged remainder, not Kafka."""
        _log.info("publishing the open objects before the end of the driver")
        self._rounds.leave_spark()
        self._rounds.publish()
        self._close_superseded()
        self._close_open()
        self._rounds.remove_orphans(self.state.number)
        self.progress.all_published()

    def close(self) -> None:
        """Ends the threads of this loop."""
        self._rounds.committer.close()

    # -- recovery ----------------------------------------------------------------------------------------------------

    def recover(self) -> None:
        """Publishes the closed objects, removes orphans and closes the open objects of earlier settings."""
        self._rounds.committer.start()
        self._rounds.publish()
        self._rounds.remove_orphans(self._rounds.committer.epoch)
        self._close_superseded()
        self._set_clock_back()
        self._rounds.history.record_bytes = self._discovery.record_bytes(self._assigned())
        if self.stop_condition.until_caught_up:
            self._targets = dict(self._discovery.end_offsets(self._assigned()))
        elif self.stop_condition.publish_open:
            self._targets = {tp: self._rounds.state_of(tp).next for tp in self._assigned()}
        log_skips(self.sink.spec.errors.skip, self.state)
        self.progress.recovered(self._rounds.committer)

    def _set_clock_back(self) -> None:
        """Sets back a ledger's clock that is ahead. Open objects are closed under that clock first, because offset
        ranges and clocks identify their records (P2)."""
        ledger_clock = self.state.clock
        host = self._clock.to_set_back(ledger_clock)
        if host is None:
            return
        self._close_open()
        self._rounds.committer.record(
            clock=host, partitions=without_clock(self._rounds.partitions), sets_clock_back=True
        )
        self._clock.set_back(host)
        report_set_back(ledger_clock, host)

    def _close_superseded(self) -> None:
        """Closes objects that were started under other settings, or of topics that are no longer read (P8)."""
        self._rounds.close_until_none(self._superseded)

    def _close_open(self) -> None:
        self._rounds.close_until_none(self._with_open_objects)

    def _superseded(self) -> dict[int, list[TopicPartition]]:
        return superseded(self._rounds.partitions, self.state.current_settings(), {tp.topic for tp in self._assigned()})

    def _with_open_objects(self) -> dict[int, list[TopicPartition]]:
        partitions = [tp for tp, p in self._rounds.partitions.items() if p.open]
        return {self.state.current_settings(): partitions} if partitions else {}

    # -- rounds ------------------------------------------------------------------------------------------------------

    def run_once(self) -> bool:
        """Runs a round if one is due; returns whether it did."""
        now = self._clock.advance()
        self.context.between_rounds()
        if self._is_due(_Check.TOPICS):
            self._discover_topics(now)
        if self._is_due(_Check.GROUP):
            self._checked(_Check.GROUP)
            self._rounds.committer.refresh_offsets(self._assigned())
        try:
            return self._poll_and_run(now)
        except TopicNotFound:
            if not self._discover_topics(now):
                raise
            return True

    def _poll_and_run(self, now: int) -> bool:
        ends, appears_truncated = self._log_ends.poll(self._assigned())
        if appears_truncated:
            self._discover_topics(now)  # the log may belong to a re-created topic
            ends = self._log_ends.poll_until_plausible(self._assigned)
        host = self.context.clock()  # the round clock does not advance while the ledger's is ahead of it
        planned = plan(self._partition_views(ends, now), self.sink.spec.rounds, host, eager=self.stop_condition.ends)
        if planned.empty:
            self._idle()
            return False
        try:
            self._rounds.run(planned)
        except DataLoss:
            if self.sink.spec.on_data_loss is OnDataLoss.FAIL or not self._rounds.skip_lost(planned):
                raise
        self._checked(_Check.HEAD)  # the round has appended a record
        return True

    def _partition_views(self, ends: Mapping[TopicPartition, int], now: int) -> dict[TopicPartition, PartitionView]:
        held = self.context.held_topics(self._discovery.current)  # their lag is known, and no round reads them
        return {
            tp: PartitionView(
                next=(state := self._rounds.state_of(tp)).next,
                end=min(end, self._targets.get(tp, 0)) if self.stop_condition.ends else end,
                record_bytes=self._rounds.history.record_bytes.get(tp),
                last_read_ms=self._rounds.history.last_read_ms.get(tp),
                is_close_due=is_close_due(state, self.sink.spec.rotation, now),
            )
            for tp, end in ends.items()
            if tp.topic not in held
        }

    # -- between rounds ----------------------------------------------------------------------------------------------

    def _is_due(self, check: _Check) -> bool:
        """Whether a periodic check is due, by the host's clock: the round clock may not advance."""
        context, is_head = self.context, check is _Check.HEAD
        interval = context.head_check_interval_ms if is_head else context.discovery_interval_ms
        return abs(context.clock() - self._checked_ms[check]) >= interval

    def _checked(self, check: _Check) -> None:
        self._checked_ms[check] = self.context.clock()

    def _wait_for_logs(self) -> bool:
        """Pauses before a log that appears truncated is polled again; returns whether the driver has to stop."""
        return self.context.stop.wait(self.truncation_check_ms / 1000)

    def _idle(self) -> None:
        if self._is_due(_Check.HEAD):
            self._ledger.check_head(self.state)
            self._checked(_Check.HEAD)
        if not self._is_caught_up():
            self.context.stop.wait(min(IDLE_WAIT_MS, max(1, self.sink.spec.rounds.max_delay)) / 1000)

    def _discover_topics(self, now: int) -> bool:
        """Records changes of the topics, and publishes what was read of deleted ones; returns whether there are any."""
        self._checked(_Check.TOPICS)
        deleted = record_topic_changes(self._discovery, self._claims, self._rounds, now=now)
        if deleted:
            self._close_superseded()
        return bool(deleted)

    def _is_caught_up(self) -> bool:
        """Whether the stop condition holds; closes the open objects first if it asks for that."""
        if not self.stop_condition.ends:
            return False
        partitions = self._rounds.partitions
        if any(partitions[tp].next < self._targets.get(tp, 0) for tp in self._assigned()):
            return False
        if self.stop_condition.publish_open:
            self._close_open()
        return True

    def _assigned(self) -> list[TopicPartition]:
        """The topic-partitions that are read: those of the ledger whose topic the manifest names and Kafka has."""
        return [tp for tp in self._rounds.partitions if tp.topic in self._discovery.current]
