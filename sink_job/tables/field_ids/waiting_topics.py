"""Holds topics without field ids until the ids of their tables are in the ledger.

A field id never changes, so an object with other ids can never be in its table: a topic is not read before the catalog
has said whether its table exists. A thread asks, and the rounds of all other topics continue. A topic that has ids is
never held, and no catalog is asked for it.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import Final, Self

from sink_job.api.errors import SinkError, TopicWaitsForTable, TransientError
from sink_job.api.report import MAX_TABLE_MESSAGE, MAX_TABLE_NAME, Failure, TableReport
from sink_job.api.sections.tables_section import TableSpec
from sink_job.api.spec import Sink
from sink_job.ledger import files
from sink_job.ledger.first_claim.ledger_place import ledger_root
from sink_job.ledger.schemas.field_ids import LedgerFieldIds
from sink_job.s3 import S3Client, S3Settings
from sink_job.tables.catalog.access import CatalogAccess, CatalogSecrets
from sink_job.tables.catalogs import TableCatalog, open_catalog
from sink_job.tables.field_ids.table_ids import TableIds, seed_of, table_ids
from sink_job.tables.file_io import clients_like
from sink_job.tables.names import table_names
from sink_job.tables.registering import PARTITION_CATALOGS

RETRY_S: Final = 30.0
"""Longest time between two attempts to ask a catalog, in s."""
ATTEMPTS: Final = 5
"""Number of attempts after which a run that has an end of its own ends with the error."""
END_S: Final = 5.0
"""Maximum time in s to wait for the thread at the end."""

_log = logging.getLogger(__name__)


class WaitingTopics:
    """The topics that wait for the ids of their tables, while the context is active. `open_catalog` opens the catalog
    of an entry of `specs`, `redact` removes secrets from a text. `ends`: the run has an end of its own, and ends with
    an error of a catalog, too."""

    def __init__(
        self,
        specs: Iterable[TableSpec],
        ids: LedgerFieldIds,
        open_catalog: Callable[[TableSpec], TableCatalog],
        redact: Callable[[str], str],
        *,
        ends: bool = False,
        first_retry_s: float = 1.0,
    ) -> None:
        self._specs = [each for each in specs if each.catalog.type not in PARTITION_CATALOGS]
        self._ids = ids
        self._open = open_catalog
        self._redact = redact
        self._ends = ends
        self._first_retry_s = first_retry_s
        self._catalogs: dict[int, TableCatalog] = {}
        self._decided: set[str] = set()
        self._waiting: dict[str, TopicWaitsForTable | None] = {}
        self._wakes = threading.Condition()
        self._stopped = False
        self._thread = threading.Thread(target=self._run, name="s3sink-table-ids", daemon=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._wakes:
            self._stopped = True
            self._wakes.notify()
        if self._thread.ident is not None:
            self._thread.join(END_S)

    def held(self, topics: Collection[str]) -> frozenset[str]:
        """Those of `topics` that must not be read yet. Returns at once. Raises the errors of the store, and in a run
        with an end of its own that of a catalog."""
        with self._wakes:
            new = sorted({*topics} - self._decided - {*self._waiting})
        if new:
            self._begin(dict(zip(new, files.together(self._ids.has_any, new), strict=True)))
        with self._wakes:
            held = {topic: error for topic, error in self._waiting.items() if topic in topics}
        failed = [each for each in held.values() if each is not None and each.is_final]
        if failed and self._ends:
            cause = failed[0].__cause__
            raise cause if isinstance(cause, SinkError) and not isinstance(cause, TransientError) else failed[0]
        return frozenset(held)

    def reports(self) -> list[TableReport]:
        """The topics that wait because of an error."""
        with self._wakes:
            failed = [(topic, error) for topic, error in self._waiting.items() if error is not None]
        return [
            TableReport(
                table=error.table[:MAX_TABLE_NAME],
                topic=topic,
                reason=error.reason,
                message=str(error)[:MAX_TABLE_MESSAGE],
            )
            for topic, error in failed
        ]

    def _begin(self, topics: Mapping[str, bool]) -> None:
        """Topics that were not seen before, and whether they have ids."""
        without = [topic for topic, has_ids in topics.items() if not has_ids]
        with self._wakes:
            self._decided |= {topic for topic, has_ids in topics.items() if has_ids}
            self._waiting |= dict.fromkeys(without)
            self._wakes.notify()
        if without and self._thread.ident is None:
            self._thread.start()

    def _run(self) -> None:
        failed = 0
        while True:
            with self._wakes:
                self._wakes.wait_for(lambda: self._stopped or self._waiting)
            if self._stopped:
                return
            failed = failed + 1 if self._ask(is_last=failed + 1 >= ATTEMPTS) else 0
            if failed:
                with self._wakes:
                    retry_s = min(self._first_retry_s * 2.0 ** (failed - 1), RETRY_S)
                    self._wakes.wait_for(lambda: self._stopped, retry_s)

    def _ask(self, *, is_last: bool) -> bool:
        """Asks for each topic that waits, those that have failed last; returns whether one failed."""
        failed: BaseException | None = None
        any_failed = False
        with self._wakes:
            topics = list(self._waiting)
        for topic in topics:
            if self._stopped:
                return any_failed
            if not isinstance(failed, TransientError):  # do not wait for the same catalog for each topic
                failed = self._failure(topic)
            if failed is None:
                with self._wakes:
                    self._decided.add(topic)
                    del self._waiting[topic]
                continue
            any_failed = True
            self._keep(topic, failed, is_last=is_last)
        return any_failed

    def _failure(self, topic: str) -> BaseException | None:
        """Takes the ids of a topic; returns the error."""
        try:
            self._take(topic)
        except BaseException as error:  # whatever a catalog makes go wrong, the topic waits
            return error
        return None

    def _keep(self, topic: str, error: BaseException, *, is_last: bool) -> None:
        failure = Failure.of(error)
        name = self._name(self._specs[0], topic)
        is_final = is_last or not isinstance(error, TransientError)
        found = TopicWaitsForTable(
            f"topic {topic} is not read, since the field ids of its first object have to be those of its table: "
            f"{failure.reason}: {self._redact(failure.message)}. It is tried again. Without that table in spec.tables "
            "the topic is read at once",
            table=name,
            is_final=is_final,
        )
        found.__cause__ = error
        with self._wakes:
            before = self._waiting.pop(topic, None)
            self._waiting[topic] = found  # at the end
        if str(before) != str(found):
            _log.error("%s", found, exc_info=None if isinstance(error, SinkError) else error)

    def _take(self, topic: str) -> None:
        found: list[TableIds] = []
        for number, spec in enumerate(self._specs):
            if number not in self._catalogs:
                self._catalogs[number] = self._open(spec)
            name = self._name(spec, topic)
            table = self._catalogs[number].load(name)
            if table is not None:
                found.append(table_ids(name, table.metadata))
        if not found:
            _log.info("topic %s: none of its tables exists, so its field ids begin at 1", topic)
            return
        names = ", ".join(each.table.name for each in found)
        seed = seed_of(found)
        if self._ids.seed(topic, seed):
            _log.info("topic %s has the field ids of table %s (%d columns)", topic, names, len(seed.ids))

    @staticmethod
    def _name(spec: TableSpec, topic: str) -> str:
        return table_names(spec.name, [topic])[topic]


def waiting_topics(
    sink: Sink, settings: S3Settings, s3: S3Client, redact: Callable[[str], str], secrets: CatalogSecrets, *, ends: bool
) -> WaitingTopics:
    """The topics of a sink that wait. `secrets` are those of the catalogs."""
    root = ledger_root(s3, sink.spec.s3.topics_dir, sink.sink_id)

    def opened(spec: TableSpec) -> TableCatalog:
        return open_catalog(spec.catalog, clients_like(settings), CatalogAccess.of(spec.catalog, secrets, settings))

    return WaitingTopics(sink.spec.tables, LedgerFieldIds(s3, root), opened, redact, ends=ends)
