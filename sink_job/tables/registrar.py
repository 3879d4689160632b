"""Registers what a driver publishes, in a thread beside its rounds: the rounds never wait for a catalog.

A table is registered at most once per `every`, and only if the driver has published objects of its topic since, or the
last registration has failed. So an idle table costs no request. The first registration of a driver adds what earlier
ones have published. An error of a table is in the report of the driver, and nothing else of the sink depends on it.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Final, Protocol, Self

from sink_job.api.errors import SinkError, TableNotRegistered, TransientError
from sink_job.api.report import Failure, TableReport, TableSums
from sink_job.api.sections.tables_section import TableSpec
from sink_job.api.spec import Sink
from sink_job.s3 import S3Client, S3Settings
from sink_job.tables.catalog.access import CatalogSecrets
from sink_job.tables.hive_tables.choice import AnyCatalog, registration_in
from sink_job.tables.ledger_reader import KnownFiles
from sink_job.tables.names import table_names
from sink_job.tables.plan import Request
from sink_job.tables.position import TablePosition
from sink_job.tables.registrations.topic_table import RegistrationOutcome
from sink_job.tables.sink_tables import SinkTables, read_tables
from sink_job.tables.successors.chain import last_memory
from sink_job.tables.table_lag import TableLag, shown, sums

TICK_S: Final = 1.0
"""Time between two checks of what the driver has published, in s. They cost no request."""
END_S: Final = 5.0
"""Maximum time in s to wait for the thread at the end. The process may end within a registration: the next one
completes it."""

_log = logging.getLogger(__name__)


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class DriverProgress(Protocol):
    """`sink_job.coordinator.progress.Progress`."""

    @property
    def published_of_topics(self) -> Mapping[str, int] | None: ...
    def tables(self, reports: Sequence[TableReport], sums: TableSums) -> None: ...


class _Stopped(Exception):
    """The driver ends."""


@dataclass
class _Schedule:
    """The registrations of one entry of `spec.tables`. `next_ms`: the earliest time of the next one, by the monotonic
    clock. `counted`: what the driver had published when the last one without an error began; None before. `failure`: an
    error before the names of tables are known. `first`: the topic with which the next one begins. `lags`: by topic."""

    spec: TableSpec
    next_ms: int = 0
    counted: Mapping[str, int] | None = None
    failure: TableLag | None = None
    catalog: AnyCatalog | None = None
    first: str = ""
    lags: dict[str, TableLag] = field(default_factory=dict)

    def is_due(self, published: Mapping[str, int], now: int) -> bool:
        return now >= self.next_ms and published != self.counted

    def all_lags(self) -> list[TableLag]:
        """Those of the tables, and that of an error before their names are known."""
        return [*self.lags.values(), *([] if self.failure is None else [self.failure])]

    def reports(self, published: Mapping[str, int], now: int) -> list[TableReport]:
        return [each.report(published.get(each.topic, 0), now) for each in self.all_lags()]


def _from(first: str, names: Mapping[str, str]) -> list[tuple[str, str]]:
    """The topics and their tables, from `first` on: one that always fails does not keep the others from their turn."""
    ordered = sorted(names.items())
    return [each for each in ordered if each[0] >= first] + [each for each in ordered if each[0] < first]


def _after(topic: str, names: Mapping[str, str]) -> str:
    """The topic after `topic`, the first one after the last."""
    return min((each for each in names if each > topic), default="")


def _failure(failing: Sequence[TableLag]) -> SinkError | None:
    """The error of a run that has copied all records, and not registered all objects."""
    if not failing:
        return None
    first, others = failing[0], f" (and {len(failing) - 1} other tables)" if failing[1:] else ""
    is_transient = all(each.reason == TransientError.__name__ for each in failing)
    return (TransientError if is_transient else TableNotRegistered)(
        f"all records were copied, and not all objects were registered: table {first.table}{others}: "
        f"{first.reason}: {first.message}"
    )


class Registrar:
    """Registers the tables of a sink while the context is active. `clock` returns ms since 1970-01-01 UTC, `steady` ms
    of a clock that is never set, `redact` removes secrets from a text, `secrets` are those of the catalogs."""

    def __init__(
        self,
        sink: Sink,
        settings: S3Settings,
        s3: S3Client,
        progress: DriverProgress,
        *,
        clock: Callable[[], int],
        redact: Callable[[str], str],
        secrets: CatalogSecrets | None = None,
        tick_s: float = TICK_S,
        steady: Callable[[], int] = _monotonic_ms,
    ) -> None:
        self._sink = sink
        self._settings = settings
        self._s3 = s3
        self._progress = progress
        self._clock = clock
        self._steady = steady
        self._redact = redact
        self._secrets = secrets
        self._known = KnownFiles()
        self._schedules = [_Schedule(spec) for spec in sink.spec.tables]
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(tick_s,), name="s3sink-tables", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(END_S)

    def finish(self, *, fails: bool = True) -> None:
        """Ends the thread, then registers what the driver has published last. Errors are in the report and the log.
        With `fails` it raises that of a table that lacks objects: TableNotRegistered, or TransientError if it may be
        tried again."""
        self._stop.set()
        self._thread.join()
        self._stop.clear()
        for each in self._schedules:
            each.next_ms = 0
        self._poll_safely()
        failure = _failure([lag for each in self._schedules for lag in each.all_lags() if lag.reason is not None])
        if failure is not None and fails:
            raise failure

    def _run(self, tick_s: float) -> None:
        while not self._stop.wait(tick_s):
            self._poll_safely()

    def _poll_safely(self) -> None:
        """Polls. What a table or a catalog makes go wrong never ends the thread, and is in the report."""
        try:
            self.poll()
        except BaseException as error:
            for each in self._schedules:
                self._later(each)
                self._failed_before(each, error)
            now = self._clock()
            self._report([each.failure.report(0, now) for each in self._schedules if each.failure is not None])

    def poll(self) -> None:
        """Registers the tables that are due, and reports all."""
        published = self._progress.published_of_topics
        if published is None:  # the driver has not recovered yet
            return
        self._observe(published)
        due = [each for each in self._schedules if each.is_due(published, self._steady())]
        if due:
            self._register(due, published)
        self._report([report for each in self._schedules for report in each.reports(published, self._clock())])

    def _report(self, found: list[TableReport]) -> None:
        self._progress.tables(shown(found), sums(found))

    def _observe(self, published: Mapping[str, int]) -> None:
        now = self._clock()
        for each in self._schedules:
            for topic, lag in each.lags.items():
                lag.observe(published.get(topic, 0), now)

    def _register(self, due: Sequence[_Schedule], published: Mapping[str, int]) -> None:
        try:
            tables = read_tables(self._sink, self._settings, self._s3, self._secrets, self._known)
        except Exception as error:
            for each in due:
                self._later(each)
                self._failed_before(each, error)
            return
        for each in due:
            self._later(each)
            try:
                complete = self._register_all(each, tables, published)
            except _Stopped:
                return
            except Exception as error:
                self._failed_before(each, error)
                continue
            each.failure = None
            each.counted = dict(published) if complete else None

    def _later(self, schedule: _Schedule) -> None:
        schedule.next_ms = self._steady() + schedule.spec.every

    def _register_all(self, schedule: _Schedule, tables: SinkTables, published: Mapping[str, int]) -> bool:
        """Registers the tables of an entry with new objects; returns whether all have all of them."""
        names = table_names(schedule.spec.name, tables.objects)
        failed: list[Exception] = []
        for topic, name in _from(schedule.first, names):
            lag, count = schedule.lags.setdefault(topic, TableLag(name, topic)), published.get(topic, 0)
            if lag.is_current(count):
                continue
            lag.observe(count, self._clock())
            if failed and isinstance(failed[-1], TransientError):  # do not wait for the same catalog for each table
                error: Exception | None = failed[-1]
            else:
                error = self._register_table(schedule, tables, lag, count)
                schedule.first = topic if error is None else _after(topic, names)
            if error is not None:
                failed.append(error)
                self._failed(lag, error)
                lag.read(count, self._missing(tables, lag), self._clock())
        return not failed

    def _register_table(
        self, schedule: _Schedule, tables: SinkTables, lag: TableLag, published: int
    ) -> Exception | None:
        """Registers one table; returns the error."""
        try:
            target = tables.target(lag.table, lag.topic, self._wait)
            catalog = schedule.catalog = schedule.catalog or tables.catalog(schedule.spec)
            outcome = registration_in(catalog, self._s3, tables.root, target).run(Request(creates=True))
        except _Stopped:
            raise
        except Exception as error:
            return error
        lag.read(published, 0, self._clock())
        self._succeeded(lag, outcome)
        return None

    def _missing(self, tables: SinkTables, lag: TableLag) -> int:
        """The number of objects that the table is known to lack."""
        return tables.objects[lag.topic].count_after(self._last_record(tables, lag))

    def _wait(self, seconds: float) -> None:
        if self._stop.wait(seconds):
            raise _Stopped

    def _last_record(self, tables: SinkTables, lag: TableLag) -> int:
        """The record up to which the table is known to have all objects."""
        try:
            lag.last, memory = last_memory(self._s3, tables.root, lag.table)
        except SinkError:
            return 0 if lag.position is None else lag.position.record
        if memory is None:
            return 0
        lag.position = TablePosition(memory.ledger, memory.generation, memory.record, memory.snapshot)
        lag.skipped = 0 if memory.skipped is None else memory.skipped.objects
        return memory.record

    def _succeeded(self, lag: TableLag, outcome: RegistrationOutcome) -> None:
        if lag.reason is not None:
            _log.info("table %s: registered again", lag.table)
        lag.last = outcome.table
        lag.added(outcome.position, outcome.objects, outcome.commits, self._clock())
        lag.skipped = outcome.lacking
        if outcome.objects:
            _log.info("table %s: added %d objects with %d records", lag.last, outcome.objects, outcome.records)

    def _failed_before(self, schedule: _Schedule, error: BaseException) -> None:
        """An error before the tables of an entry are known: all of them may lack objects. The next registration is due
        also if nothing is new: it ends the error."""
        schedule.counted = None
        if schedule.failure is None:
            schedule.failure = TableLag(schedule.spec.name, "", since=self._clock())
        self._failed(schedule.failure, error)

    def _failed(self, lag: TableLag, error: BaseException) -> None:
        failure = Failure.of(error)
        if lag.failed(failure.reason, self._redact(failure.message)) and not self._stop.is_set():
            trace = None if isinstance(error, SinkError) else error
            text = "table %s: %s: %s. The sink continues to copy"
            _log.error(text, lag.table, lag.reason, lag.message, exc_info=trace)
