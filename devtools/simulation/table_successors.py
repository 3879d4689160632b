"""Tables that are continued in new ones, in simulated time: objects whose columns do not fit, and offset resets, beside
kills, lost and late replies, registrations with another manifest, and other programs. Each object is in one table once.

`python -m devtools.simulation.table_successors --cases 10000` runs random cases.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, Final, cast
from unittest.mock import patch

from pyiceberg.schema import Schema
from pyiceberg.types import BooleanType, IcebergType, LongType, NestedField, StringType

from devtools.simulation.executors import without_threads
from devtools.simulation.oracle import Violation
from devtools.simulation.scheduler import Actor
from devtools.simulation.table_catalog import NAME
from devtools.simulation.table_world import MAX_OBJECTS, ROOT, SINK_ID, TableWorld, closed_object, run_command
from sink_job.api.errors import TableIncompatible, TableNotRegistered, TableReplaced, TransientError
from sink_job.ledger.state import ClosedObject
from sink_job.s3 import S3Client
from sink_job.tables.files import ObjectFooter
from sink_job.tables.housekeeping import Housekeeping
from sink_job.tables.parquet_schema import ObjectColumns
from sink_job.tables.plan import Acceptance, LedgerView, Request
from sink_job.tables.registrations import preparation
from sink_job.tables.registrations.topic_table import TopicTable
from sink_job.tables.successors.chain import ChainRegistration
from sink_job.tables.successors.continuation import MAX_TABLES, Successors, successor_name

TYPES: Final[Mapping[str, IcebergType]] = {"long": LongType(), "text": StringType(), "bool": BooleanType()}
"""The types of the column 2, which no table has two of."""
KINDS: Final = (
    *("nothing", "expiry", "dropped column", "dropped column", "dropped column"),
    *("dropped successor", "dropped first table", "foreign"),
)
"""What other programs do in a run, beside commits and compactions."""
RESOLUTIONS: Final = 2 * MAX_TABLES


COLUMNS: Final = {
    kind: ObjectColumns(
        Schema(NestedField(1, "id", LongType(), required=False), NestedField(2, "c", of, required=False)), (1, 2)
    )
    for kind, of in TYPES.items()
}


class _Footers:
    """Footers of objects that are in no store. The path says what their columns are."""

    def __init__(self, s3: S3Client, *given: Any) -> None:
        self._s3 = s3

    def read(self, o: ClosedObject) -> ObjectFooter:
        fields = {
            "file_path": f"s3://archive/{o.key}",
            "record_count": 1,
            "file_size_in_bytes": 1,
            "lower_bounds": {},
            "upper_bounds": {},
        }
        return ObjectFooter(o, COLUMNS[kind_of(o.key)], fields)


def kind_of(path: str) -> str:
    """The type of the object's column."""
    return path.rpartition("-")[2].removesuffix(".parquet")


class ChainWorld(TableWorld):
    """The state of a run."""

    def __init__(self, seed: int, log: Callable[[str], None] | None = None) -> None:
        super().__init__(seed, log)
        self.kind = self.rng.choice(KINDS)
        self.files.by_name = False
        self._watch_commits()
        self.present = "long"
        self._turns = 0.5 if self.kind.startswith("dropped") else self.rng.choice((0.0, 0.2, 0.5))
        self._resets = self.rng.choice((0.0, 0.1))
        self.resets: list[int] = []
        self.dropped: set[str] = set()
        self._dropped_begin = 0
        self.mixed: set[str] = set()
        self._stops = self.rng.random() < 0.4
        if self.kind == "foreign":
            self.catalog.tables[successor_name(NAME, 2)] = self.catalog.stage(NAME, {"format-version": "2"}).metadata

    def run(self) -> None:
        """Raises Violation."""
        try:
            self._start()
            self.scheduler.run(120)
            self._raise_failure()
            for actor in self.scheduler.actors:
                actor.killed = True
            self.scheduler.run()
        finally:
            self.scheduler.unwind()
        self._alone = True
        self._publish()
        while self.catalog.delayed and self.rng.random() < 0.8:
            self.catalog.land()
        is_complete = self._resolve()
        self._check_once()
        found = {path for name in self.names() for path in self.catalog.contents(name)}
        begin = self._begin()
        urls = {self.files.url_of(o.key) for o in self.objects if o.acknowledged > begin}
        if is_complete and (lost := sorted(urls - found - self.given_up)):
            raise Violation("missing", f"the tables lack {', '.join(lost)}")
        if is_complete and self.kind == "dropped successor" and len(self.names()) > 1:
            self._drop_last()

    def _drop_last(self) -> None:
        """A user drops the last table: the next registration has to stop."""
        name = self.names()[-1]
        self._drop(name)
        try:
            self._register(Request(from_beginning=True))
        except TableReplaced:
            return
        raise Violation("created again", f"{name} was dropped, and no registration has stopped")

    def names(self) -> list[str]:
        """The tables of the topic."""
        return [each for n in range(1, MAX_TABLES + 2) if (each := successor_name(NAME, n)) in self.catalog.tables]

    def _begin(self) -> int:
        """The record after which the objects of the first table were acknowledged."""
        if NAME in self.dropped:
            return self._dropped_begin
        first = self.catalog.contents(NAME)
        records = [o.acknowledged for o in self.objects if self.files.url_of(o.key) in first]
        return max((each for each in self.resets if each <= min(records, default=0)), default=0)

    # -- events --------------------------------------------------------------------------------------------------------

    def _watch_commits(self) -> None:
        """Another program may change the columns of a table while the commit that leaves it is on its way."""
        send = self.catalog.commit

        def commit(table: Any, requirements: Any, updates: Any) -> None:
            if any(name.endswith(".continued") for name in updates[-1].updates):
                self._while_leaving(".".join(table.name()))
            send(table, requirements, updates)

        vars(self.catalog)["commit"] = commit

    def _while_leaving(self, name: str) -> None:
        if self.kind == "dropped column" and not self._alone and name in self.catalog.tables:
            self._drop_column(name)
            for _ in range(self.rng.choice((0, 10, 20))):
                self._step("the request is on its way")

    def _events(self, actor: Actor) -> None:
        super()._events(actor)
        if len(self.names()) > 1 and self.rng.random() < 0.1:
            self._others()

    def _publish(self) -> None:
        if len(self.objects) >= MAX_OBJECTS:
            return
        self.number += self.rng.randint(1, 3)
        if self.rng.random() < self._resets:
            self.resets.append(self.number)
            self.trace(f"record {self.number} is an offset reset")
            self.number += self.rng.randint(1, 3)
        for _ in range(self.rng.randint(1, 3)):
            if self.rng.random() < self._turns:
                self.present = self.rng.choice(list(TYPES))
            number = len(self.objects)
            key = f"topics/log/{number:04}-{self.present}.parquet"
            self.objects.append(closed_object(key, number, self.number))
        self.trace(f"record {self.number} acknowledges objects up to {len(self.objects)} ({self.present})")

    def _others(self) -> None:
        names = self.names()
        name = self.rng.choice(names)
        chosen = self.rng.choice(("append", "compact", self.kind, self.kind, self.kind))
        self.trace(f"another program: {chosen} ({name})")
        if chosen == "append":
            self.catalog.append(name)
        elif chosen == "compact":
            self.catalog.compact(name)
        elif chosen == "expiry":
            self.catalog.expire(name)
        elif chosen == "dropped successor" and name != NAME:
            self._drop(name)
            self.changed = True
        elif chosen == "dropped first table" and self._is_left(NAME) and NAME in names:
            self._drop(NAME)

    def _drop_column(self, name: str) -> None:
        """Another program makes the next objects fit the table, while a registration may leave it."""
        schema = self.catalog.tables[name].schema()
        found = {path for each in self.names() for path in self.catalog.contents(each)}
        waiting = [o.key for o in self.objects if self.files.url_of(o.key) not in found]
        if 2 in schema.field_ids and any(TYPES[kind_of(key)] != schema.find_type(2) for key in waiting):
            self.trace(f"another program: dropped column ({name})")
            self.catalog.drop_column(2, name)
            self.mixed.add(name)
            self._start()

    def _drop(self, name: str) -> None:
        """The user has stopped the sink, and waited for its last commit."""
        for actor in self.scheduler.actors:
            actor.killed = True
        self.catalog.delayed.clear()
        if name == NAME:
            self._dropped_begin = self._begin()
        self.given_up |= set(self.catalog.contents(name))
        del self.catalog.tables[name]
        self.dropped.add(name)

    def _is_left(self, name: str) -> bool:
        """Whether the memory has a continuation."""
        key = f"{ROOT}tables/{name}.json"
        return b'"continued":{' in self.files.objects.get(key, b"")

    # -- registrations -------------------------------------------------------------------------------------------------

    def _register_once(self) -> None:
        self._step("read the ledger")
        stops = self._stops and self.rng.random() < 0.5
        try:
            self._register(Request(from_beginning=True), stops=stops)
        except TransientError:
            return
        except TableNotRegistered as error:
            self.trace(f"stops: {error}")
            if not self._may_stop(error, stops=stops):
                self.scheduler.fail(Violation("needless stop", f"no other program has changed a table: {error}"))

    def _may_stop(self, error: TableNotRegistered, *, stops: bool) -> bool:
        """Whether a registration may stop with this error."""
        if isinstance(error, TableReplaced):
            return self.changed
        if "exists, and it does not continue" in str(error):
            return self.kind == "foreign"
        if isinstance(error, TableIncompatible) or "is an offset reset" in str(error):
            return stops or successor_name(NAME, MAX_TABLES) in self.catalog.tables or "placeholder" in str(error)
        return self.changed

    def _register(self, request: Request, *, stops: bool = False) -> None:
        target = TopicTable(
            name=NAME,
            topic="log",
            objects=tuple(self.objects),
            ledger=LedgerView(
                SINK_ID,
                "ledger",
                self.number,
                tuple(self.resets),
                copied_from=max(self.resets, default=0),
                copies=tuple(self.resets),
            ),
            prefixes=("topics/",),
            wait=lambda seconds: self._step("wait"),
            housekeeping=Housekeeping(history=-10_000 if self._expires else 1 << 50),
            successors=Successors(on_reset=not stops, on_incompatible=not stops),
        )
        ChainRegistration(cast("S3Client", self.files), ROOT, self.catalog, target).run(
            request, limit=self.rng.choice((1, 2, 100))
        )

    def _resolve(self) -> bool:
        """A user registers, and accepts what has changed. Returns whether everything is registered."""
        request = Request(from_beginning=True)
        for _ in range(RESOLUTIONS):
            try:
                self._register(request)
            except TableNotRegistered as error:
                self.trace(f"a user resolves: {error}")
                if not self._may_stop(error, stops=False):
                    raise Violation("needless stop", str(error)) from error
                if not isinstance(error, TableReplaced):
                    return False
                request = Request(from_beginning=True, accepted=frozenset({Acceptance.REPLACED}))
            else:
                return True
        raise Violation("stopped", "the tables cannot be registered")

    def _check_once(self) -> None:
        counts: Counter[str] = Counter()
        for name in self.names():
            found = self.catalog.contents(name)
            counts.update(found)
            self._check_table(name, found)
        if twice := sorted(path for path, count in counts.items() if count > 1):
            raise Violation("duplicate", f"the tables have {', '.join(twice)} more than once")

    def _check_table(self, name: str, found: Mapping[str, int]) -> None:
        kinds = {kind_of(path) for path in found}
        if len(kinds) > 1 and name not in self.mixed:
            raise Violation("mixed", f"{name} has objects whose columns do not fit: {kinds}")
        records = [o.acknowledged for o in self.objects if self.files.url_of(o.key) in found]
        if len({sum(reset < record for reset in self.resets) for record in records}) > 1:
            raise Violation("mixed", f"{name} has objects of two generations")
        if name in self.dropped and not self._alone:
            raise Violation("created again", f"{name} was dropped")
        if self.kind == "foreign" and name == successor_name(NAME, 2) and found:
            raise Violation("foreign", f"{name} belongs to others, and has objects")


def run_case(seed: int, log: Callable[[str], None] | None = None) -> Violation | None:
    """What a run has violated."""
    with without_threads(random.Random(f"{seed}/threads")), patch.object(preparation, "MetadataReader", _Footers):
        try:
            ChainWorld(seed, log).run()
        except Violation as violation:
            return violation
    return None


if __name__ == "__main__":
    run_command(run_case, __doc__, level=logging.CRITICAL)
