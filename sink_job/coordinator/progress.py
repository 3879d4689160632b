"""Counters and state of the driver behind `/report`, `/metrics` and the console.

Thread-safe: the round loop writes, servers read. No decision depends on it.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from sink_job.api.report import (
    Failure,
    HangingTransactionReport,
    MemoryReport,
    PartitionReport,
    Report,
    RunState,
    TableReport,
    TableSums,
    Timing,
    Totals,
)
from sink_job.api.spec import Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.activity import WINDOW_MS, PartitionActivity
from sink_job.coordinator.committer import Committer
from sink_job.coordinator.lag_ages import LagAges, Lagging
from sink_job.ledger.skips import skips_report
from sink_job.ledger.state import LedgerState, PartitionState, committable_offsets
from sink_job.tasks.write import TaskResult


class _Counts:
    """What the rounds of a driver have done."""

    def __init__(self) -> None:
        self.totals = Totals()
        self.rounds = Timing()
        self.publishes = Timing()
        self.requests: Counter[str] = Counter()
        self.last_publish: int | None = None
        self.published_of_topics: dict[str, int] | None = None
        self.active_partitions = 0

    def round_completed(self, results: Mapping[TopicPartition, TaskResult], *, round_ms: int, publish_ms: int) -> None:
        counts = [r.counts for r in results.values()]
        self.active_partitions = sum(1 for c in counts if c.records)
        totals = self.totals
        totals.records += sum(c.records for c in counts)
        totals.bytes += sum(c.bytes for c in counts)
        totals.parts += sum(c.parts for c in counts)
        totals.uploaded_bytes += sum(c.part_bytes for c in counts)
        totals.ignored += sum(c.ignored + c.kept_nulls for c in counts)
        totals.filtered += sum(c.filtered for c in counts)
        totals.skipped += sum(c.skipped for c in counts)
        totals.dropped += sum(c.rejected - c.dead_letters for c in counts)
        totals.dead_letters += sum(c.dead_letters - c.kept_nulls for c in counts)
        totals.null_dead_letters += sum(c.kept_nulls for c in counts)
        totals.dropped_properties += sum(c.dropped_properties for c in counts)
        totals.retries += sum(c.retries for c in counts)
        for c in counts:
            self.requests.update(c.requests)
        self.rounds = _timed(self.rounds, round_ms)
        self.publishes = _timed(self.publishes, publish_ms)

    def published(self, objects: int, of_topics: Mapping[str, int], now: int) -> None:
        """`objects` is the number of published objects of this driver, `of_topics` by topic without dead letters."""
        self.published_of_topics = dict(of_topics)
        if objects > self.totals.objects:
            self.last_publish = now
            self.totals.objects = objects


class _Offsets:
    """The ledger's state, the committed offsets and the log ends."""

    def __init__(self) -> None:
        self.ledger = LedgerState()
        self.ends_at: int | None = None
        self.lag_ages = LagAges()
        self._committed: dict[TopicPartition, int] = {}
        self._ends: dict[TopicPartition, int] = {}

    def set_state(self, state: LedgerState, committed: Mapping[TopicPartition, int]) -> None:
        self.ledger, self._committed = state, dict(committed)

    def set_ends(self, ends: Mapping[TopicPartition, int], now: int) -> None:
        self._ends, self.ends_at = dict(ends), now

    def unsampled(self, limit: int) -> tuple[dict[TopicPartition, Lagging], dict[TopicPartition, int]]:
        partitions = {tp: Lagging(self._committed[tp], end) for tp, end in self._ends.items() if tp in self._committed}
        return partitions, self.lag_ages.due(partitions, limit)

    def reports(self, now: int) -> list[PartitionReport]:
        return [self._report(TopicPartition.parse(name), p, now) for name, p in self.ledger.partitions.items()]

    def _report(self, tp: TopicPartition, p: PartitionState, now: int) -> PartitionReport:
        committed, end = self._committed.get(tp, p.committable), self._ends.get(tp)
        lag = None if end is None else max(0, end - committed)
        return PartitionReport(
            topic=tp.topic,
            partition=tp.partition,
            committed=committed,
            next=p.next,
            end=end,
            lag=lag,
            lag_ms=None if lag is None else self.lag_ages.age_ms(tp, committed=committed, lag=lag, now=now),
            open_objects=len(p.open),
        )


class _Observed:
    """What others than the round loop have observed."""

    def __init__(self) -> None:
        self.hanging: list[HangingTransactionReport] = []
        self.tables: list[TableReport] = []
        self.table_sums: TableSums | None = None


class _MemoryUse:
    """The memory of tasks, and the topic-partitions and remainders that it is sized by."""

    def __init__(self, sink: Sink, *, slots: int, window_ms: int) -> None:
        self._activity = PartitionActivity(max(window_ms, 2 * sink.spec.rounds.max_delay))
        self._memory = MemoryReport(slots=slots, part_size=sink.spec.s3.part_size)

    def set_state(self, state: LedgerState) -> None:
        opened = [len(p.open) for p in state.partitions.values()]
        self._memory.open_objects, self._memory.max_open_objects = sum(opened), max(opened, default=0)

    def round_completed(self, results: Mapping[TopicPartition, TaskResult], ended: int) -> None:
        self._activity.add({tp: r.state for tp, r in results.items() if r.counts.records}, ended)
        self._memory.buffered_bytes = sum(r.counts.buffered_bytes for r in results.values())
        self._memory.spilled_bytes = sum(r.counts.spilled_bytes for r in results.values())

    def allocated(self, memory: int, slots: int) -> None:
        self._memory.applied_bytes, self._memory.slots = memory, slots

    def report(self, now: int) -> MemoryReport:
        active, remainder = self._activity.observed(now)
        return self._memory.model_copy(update={"active_partitions": active, "remainder_bytes": remainder})


class Progress:
    """Progress of one driver. `clock` returns ms since 1970-01-01 UTC.

    `window_ms` is the length of the windows in which topic-partitions count as active. `observer` is called after the
    claim, the recovery, each poll of log ends, each round, and at the end.
    """

    def __init__(
        self,
        sink: Sink,
        clock: Callable[[], int],
        *,
        slots: int = 1,
        observer: Callable[[], None] | None = None,
        window_ms: int = WINDOW_MS,
    ) -> None:
        self._sink = sink
        self._clock = clock
        self._observer = observer
        self._lock = threading.Lock()
        self._started = clock()
        self._state = RunState.STARTING
        self._offsets = _Offsets()
        self._counts = _Counts()
        self._memory = _MemoryUse(sink, slots=slots, window_ms=window_ms)
        self._observed = _Observed()
        self._failure: Failure | None = None
        self._all_published = False

    # -- written by the driver ---------------------------------------------------------------------------------------

    def claimed(self, state: LedgerState) -> None:
        with self._lock:
            self._state = RunState.RECOVERING
            self._set_state(state, committable_offsets(state))
        self._notify()

    def recovered(self, commits: Committer | None = None) -> None:
        """Recovery has ended; the rounds start from the state of `commits`."""
        with self._lock:
            self._state = RunState.RUNNING
            if commits is not None:
                self._set_state(commits.state, commits.committed)
                self._counts.published(commits.published, commits.published_of_topics, self._clock())
        self._notify()

    def log_ends(self, ends: Mapping[TopicPartition, int]) -> None:
        """Sets the current log ends."""
        self.observed_log_ends(ends)
        self._notify()

    def observed_log_ends(self, ends: Mapping[TopicPartition, int]) -> None:
        """Sets the current log ends, observed beside the rounds: it is no progress of the driver."""
        with self._lock:
            self._offsets.set_ends(ends, self._clock())

    def lag_sampled(
        self,
        partitions: Mapping[TopicPartition, Lagging],
        requested: Mapping[TopicPartition, int],
        times: Mapping[TopicPartition, int],
        *,
        now: int,
    ) -> None:
        """Records timestamps of records; see `LagAges.sampled`."""
        with self._lock:
            self._offsets.lag_ages.sampled(partitions, requested, times, now=now)

    def hanging(self, reports: Sequence[HangingTransactionReport]) -> None:
        """Sets the current hanging transactions."""
        with self._lock:
            self._observed.hanging = list(reports)

    def tables(self, reports: Sequence[TableReport], sums: TableSums) -> None:
        """Sets the state of the tables: some of them, and the sums of all."""
        with self._lock:
            self._observed.tables, self._observed.table_sums = list(reports), sums

    def round_completed(
        self,
        results: Mapping[TopicPartition, TaskResult],
        commits: Committer,
        *,
        started: int,
        recorded: int,
        ended: int,
    ) -> None:
        """A round has been recorded and published; times are in ms."""
        with self._lock:
            self._set_state(commits.state, commits.committed)
            self._memory.round_completed(results, ended)
            self._counts.round_completed(results, round_ms=recorded - started, publish_ms=ended - recorded)
            self._counts.published(commits.published, commits.published_of_topics, ended)
        self._notify()

    def _set_state(self, state: LedgerState, committed: Mapping[TopicPartition, int]) -> None:
        self._offsets.set_state(state, committed)
        self._memory.set_state(state)

    def allocated(self, memory: int, slots: int) -> None:
        """The tasks of the next rounds use `memory` bytes of each container, and `slots` of them run at a time."""
        with self._lock:
            self._memory.allocated(memory, slots)

    def add_rebuilt(self, objects: int) -> None:
        with self._lock:
            self._counts.totals.rebuilt += objects

    def add_lost(self, offsets: int) -> None:
        """Adds offsets that are lost because Kafka no longer holds them."""
        with self._lock:
            self._counts.totals.lost += offsets

    def clock_jumps(self, count: int) -> None:
        """Sets the number of jumps of the host's clock."""
        with self._lock:
            self._counts.totals.clock_jumps = count

    def stopping(self) -> None:
        with self._lock:
            self._state = RunState.STOPPING

    def all_published(self) -> None:
        """The driver has published all open objects and ends."""
        with self._lock:
            self._all_published = True

    def ended(self, failure: Failure | None) -> None:
        with self._lock:
            self._failure = failure
            self._state = RunState.FAILED if failure else RunState.ENDED
        self._notify()

    def _notify(self) -> None:
        if self._observer is not None:
            self._observer()

    # -- read by servers -----------------------------------------------------------------------------------------------

    @property
    def state(self) -> RunState:
        """The state of the driver."""
        with self._lock:
            return self._state

    @property
    def published_of_topics(self) -> dict[str, int] | None:
        """The objects that this driver has published, by topic and without dead letters; None before its recovery."""
        with self._lock:
            found = self._counts.published_of_topics
            return None if found is None else dict(found)

    @property
    def requests(self) -> dict[str, int]:
        """S3 requests of the tasks, by operation."""
        with self._lock:
            return dict(self._counts.requests)

    @property
    def log_ends_at(self) -> int | None:
        """Time of the last observation of the log ends, in ms since 1970-01-01 UTC."""
        with self._lock:
            return self._offsets.ends_at

    def unsampled_lag(self, limit: int) -> tuple[dict[TopicPartition, Lagging], dict[TopicPartition, int]]:
        """The topic-partitions with a known log end, and the offsets whose timestamp is to be read; see
        `LagAges.due`."""
        with self._lock:
            return self._offsets.unsampled(limit)

    @property
    def lost_offsets(self) -> int:
        with self._lock:
            return self._counts.totals.lost

    def report(self) -> Report:
        """The current `/report`."""
        with self._lock:
            now, ledger = self._clock(), self._offsets.ledger
            return Report(
                sink_id=self._sink.sink_id,
                name=self._sink.name,
                namespace=self._sink.namespace,
                state=self._state,
                epoch=ledger.epoch or None,
                round=ledger.number or None,
                now=now,
                started_at=self._started,
                assigned_partitions=len(ledger.partitions),
                active_partitions=self._counts.active_partitions,
                partitions=self._offsets.reports(now),
                log_ends_at=self._offsets.ends_at,
                hanging_transactions=list(self._observed.hanging),
                tables=list(self._observed.tables),
                table_sums=self._observed.table_sums,
                skips=skips_report(self._sink.spec.errors.skip, ledger),
                totals=self._counts.totals.model_copy(),
                last_publish=self._counts.last_publish,
                rounds=self._counts.rounds,
                publishes=self._counts.publishes,
                memory=self._memory.report(now),
                published=self._all_published,
                failure=self._failure,
            )


def _timed(timing: Timing, ms: int) -> Timing:
    return Timing(
        count=timing.count + 1,
        total_ms=timing.total_ms + ms,
        last_ms=ms,
        longest_ms=max(ms, timing.longest_ms or 0),
    )
