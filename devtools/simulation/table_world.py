"""Registrations of a table in simulated time: killed, with lost and late replies of the catalog, beside each other and
other programs. Each object is in the table once, and none is missing, but for those of accepted rollbacks.

In some runs a reader moves objects away, and some of them back. With `onMissing: Skip` the position of the table proves
which ones it lacks.

`python -m devtools.simulation.table_world --cases 10000` runs random cases.
"""

from __future__ import annotations

import argparse
import logging
import random
from collections.abc import Callable, Collection, Sequence
from typing import Any, Final, cast
from unittest.mock import patch

from pyiceberg.schema import Schema
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import LongType, NestedField

from devtools.simulation.executors import without_threads
from devtools.simulation.oracle import Violation
from devtools.simulation.scheduler import Actor, Scheduler
from devtools.simulation.table_catalog import COLUMNS, FAULTS, SimulatedCatalog
from sink_job.api.errors import TableNotRegistered, TransientError
from sink_job.ledger.schemas.field_ids import SeedTable
from sink_job.ledger.state import ClosedObject, OffsetChecksum
from sink_job.s3 import NotFound, S3Client
from sink_job.tables import registration
from sink_job.tables.avro_objects.name_mapping import PROPERTY as NAME_MAPPING
from sink_job.tables.avro_objects.name_mapping import NameMapping
from sink_job.tables.files import ObjectFooter, ObjectGone
from sink_job.tables.housekeeping import Housekeeping
from sink_job.tables.missing.skipped import NOTHING
from sink_job.tables.parquet_schema import ObjectColumns
from sink_job.tables.plan import Acceptance, LedgerView, Request, last_committed
from sink_job.tables.position import as_text, position_in, position_property
from sink_job.tables.registration import Registration
from sink_job.tables.registrations import preparation
from sink_job.tables.registrations.topic_table import TopicTable

SINK_ID: Final = "sink"
ROOT: Final = "topics/_s3sink/sink/"
PROPERTY: Final = position_property(SINK_ID)
KINDS: Final = (
    "commits",
    "expiry",
    "rollback",
    "replacement",
    "removed position",
    "older position",
    "forgotten position",
)
"""What other programs do in a run beside commits. One kind in each: two may hide one another, as docs/tables.md says of
an expiry after a rollback. Forgotten position: it is removed, and all snapshots expire that had it; only where the
table was there before the sink."""
ON_MISSING: Final = (None, "Stop", "Skip", "Skip")
"""None: no object is moved away."""
STEPS: Final = 120
MAX_ACTORS: Final = 3
MAX_OBJECTS: Final = 12
RESOLUTIONS: Final = 20
EXISTING: Final = 0.3
"""Share of the runs with a table that was there before the sink and gave it its field ids."""
NAMES: Final = (("c",), ("c", "d"), ("e", "c"))
"""The columns of objects without field ids, by turns."""


def _columns_of(names: Sequence[str]) -> ObjectColumns:
    fields = [NestedField(number, name, LongType(), required=False) for number, name in enumerate(names, 1)]
    return ObjectColumns(Schema(*fields), (), by_name=True)


class _Files:
    """The file of the memory, and the tables that have given their field ids."""

    bucket = "archive"
    seeds: tuple[SeedTable, ...] = ()

    def __init__(self, step: Callable[[str], None], *, by_name: bool) -> None:
        """`by_name`: the objects of the sink have no field ids."""
        self._step = step
        self.by_name = by_name
        self.objects: dict[str, bytes] = {}
        self.gone: set[str] = set()

    def url_of(self, key: str) -> str:
        return f"s3://archive/{key}"

    def get(self, key: str) -> bytes:
        self._step("read the memory")
        if key not in self.objects:
            raise NotFound(key)
        return self.objects[key]

    def put(self, key: str, body: bytes) -> None:
        self._step("write the memory")
        self.objects[key] = body
        self._step("reply to write")


class _Footers:
    """Footers of objects that are in no store."""

    _columns = ObjectColumns(COLUMNS, (1,))
    _named = tuple(_columns_of(each) for each in NAMES)

    def __init__(self, s3: _Files, *given: Any) -> None:
        self._s3 = s3

    def find(self, o: ClosedObject) -> ObjectFooter | None:
        return None if o.key in self._s3.gone else self.read(o)

    def read(self, o: ClosedObject) -> ObjectFooter:
        if o.key in self._s3.gone:
            raise ObjectGone(o.key)
        fields = {
            "file_path": f"s3://archive/{o.key}",
            "record_count": 1,
            "file_size_in_bytes": 1,
            "lower_bounds": {},
            "upper_bounds": {},
        }
        columns = self._named[o.first % len(NAMES)] if self._s3.by_name else self._columns
        return ObjectFooter(o, columns, fields)


class _FieldIds:
    """The field ids in the ledger."""

    def __init__(self, s3: S3Client, root: str) -> None:
        self._s3: Any = s3

    def seeded_by(self, topic: str) -> tuple[SeedTable, ...]:
        found: tuple[SeedTable, ...] = self._s3.seeds
        return found

    def all(self, topic: str) -> dict[str, int]:
        """None, as of a topic without Parquet objects."""
        return {}


class TableWorld:
    """The state of a run."""

    def __init__(self, seed: int, log: Callable[[str], None] | None = None) -> None:
        """`log` gets a line for each event."""
        self.rng = random.Random(f"{seed}/tables")
        self.kind = self.rng.choice(KINDS)
        self._moves = random.Random(f"{seed}/moves")
        self.on_missing = self._moves.choice(ON_MISSING)
        self._away = self._moves.choice((0.15, 0.6))
        self._log = log
        self.scheduler = Scheduler(random.Random(f"{seed}/turns"), now=1, stay=self.rng.choice((0.3, 0.7)), tick=5)
        self.scheduler.on_step = self._events
        self._faults = self.rng.choice((0.0, 0.1, 0.4))
        self._expires = self.rng.random() < 0.5
        self.catalog = SimulatedCatalog(self.rng, self._step, self._draw, lambda: self._draw(0.2))
        self._columns_rng = random.Random(f"{seed}/columns")
        self.files = _Files(self._step, by_name=self._columns_rng.random() < 0.3)
        self._ids: dict[tuple[str, str], int | None] = {}
        self.objects: list[ClosedObject] = []
        self.number = 1
        self.given_up: set[str] = set()
        self.changed = False
        self._alone = False
        self._names = 0
        self.older: str | None = None
        self.forgotten: str | None = None
        self.exists = random.Random(f"{seed}/exists").random() < EXISTING
        self.request = Request(creates=True) if self.exists else Request(from_beginning=True)

    def run(self) -> None:
        """Raises Violation."""
        if self.exists:
            self._give_ids(self.catalog.create())
        try:
            self._start()
            self.scheduler.run(STEPS)
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
        if self.on_missing == "Stop":
            self.files.gone.clear()
        self._register_and_resolve()
        if self.on_missing is not None:
            self._register_and_resolve(Request(from_beginning=True))
        self._check_once()
        found = self.catalog.contents()
        missing = {path: o for o in self.objects if (path := self.files.url_of(o.key)) not in found}
        gone = {self.files.url_of(key) for key in self.files.gone}
        if lost := sorted({*missing} - self.given_up - gone):
            raise Violation("missing", f"the table lacks {', '.join(lost)}")
        if not self.given_up:
            self._check_skipped(missing.values())

    def _raise_failure(self) -> None:
        if self.scheduler.failure is not None:
            raise self.scheduler.failure

    def _give_ids(self, metadata: TableMetadata) -> None:
        if self.rng.random() < 0.5:
            self.catalog.append()
        self.files.seeds = (SeedTable("lake.log", str(metadata.table_uuid), len(self.catalog.snapshots())),)

    # -- calls ---------------------------------------------------------------------------------------------------------

    def trace(self, text: str) -> None:
        if self._log is not None:
            self._log(f"{self.scheduler.steps:5d} {text}")

    def _step(self, call: str) -> None:
        if not self._alone:
            actor = self.scheduler.current
            self.trace(f"{actor.name if actor else '-'}: {call}")
            self.scheduler.step()

    def _draw(self, share: float = 1.0) -> str | None:
        if self._alone or self.rng.random() >= self._faults * share:
            return None
        return self.rng.choice(FAULTS)

    # -- events --------------------------------------------------------------------------------------------------------

    def _events(self, actor: Actor) -> None:
        self._check_once()
        if self.rng.random() < 0.15:
            self._publish()
        if self.rng.random() < 0.15 and len(self.scheduler.actors) < MAX_ACTORS:
            self._start()
        metadata = self.catalog.metadata
        if self.kind == "forgotten position" and metadata is not None and not self.files.objects:
            self._change_property(metadata)  # before a registration remembers it
            actor.killed |= self.forgotten is not None
        if self.rng.random() < 0.04:
            self.trace(f"{actor.name} is killed")
            actor.killed = True
        if self.catalog.delayed and self.rng.random() < 0.15:
            self.trace("a delayed commit arrives")
            self.catalog.land()
        if self.catalog.metadata is not None and self.rng.random() < 0.1:
            self._others()
        if self.files.by_name and self.catalog.metadata is not None and self._columns_rng.random() < 0.1:
            self.trace("another program: renames or drops a column")
            self.catalog.change_columns(self._columns_rng)
        if self.on_missing is not None:
            self._move()

    def _move(self) -> None:
        """A reader moves an object away, or back."""
        if self.objects and self._moves.random() < self._away:
            key = self._moves.choice(self.objects[-4:]).key
            self.trace(f"{key} is moved away")
            self.files.gone.add(key)
        if self.files.gone and self._moves.random() < 0.1:
            key = self._moves.choice(sorted(self.files.gone))
            self.trace(f"{key} is moved back")
            self.files.gone.discard(key)

    def _publish(self) -> None:
        if len(self.objects) >= MAX_OBJECTS:
            return
        self.number += self.rng.randint(1, 3)
        for _ in range(self.rng.randint(1, 2)):
            number = len(self.objects)
            self.objects.append(closed_object(f"topics/log/{number}.parquet", number, self.number))
        self.trace(f"record {self.number} acknowledges objects up to {len(self.objects)}")

    def _others(self) -> None:
        assert self.catalog.metadata is not None
        chosen = self.rng.choice(("append", "compact", self.kind, self.kind))
        self.trace(f"another program: {chosen}")
        if chosen in ("append", "compact", "commits"):
            (self.catalog.compact if chosen == "compact" else self.catalog.append)()
            return
        if chosen == "expiry":
            self.changed |= PROPERTY not in self.catalog.metadata.properties  # nothing shows that there was none
            self.catalog.expire()
        elif chosen == "rollback":
            self.changed |= self.catalog.roll_back()
        elif chosen == "replacement":
            self.catalog.replace()
            self.changed = True
        else:
            self._change_property(self.catalog.metadata)

    def _change_property(self, metadata: TableMetadata) -> None:
        present = metadata.properties.get(PROPERTY)
        if present is None or (self.kind == "forgotten position" and not self.exists):
            return
        if self.kind == "forgotten position":
            self.forgotten, self.changed = present, True
            self.catalog.set_property(PROPERTY, None)
            self.catalog.append()
            self.catalog.expire()
            return
        value = None if self.kind == "removed position" else self.older
        self.older = self.older or present
        if value != present and (value is not None or self.kind == "removed position"):
            self.catalog.set_property(PROPERTY, value)
            self.changed = True

    # -- registrations -------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        self._names += 1
        self.scheduler.spawn(f"registration-{self._names}", self._work)

    def _work(self) -> None:
        try:
            self._register_once()
        except Exception as error:
            self.scheduler.fail(error)

    def _register_once(self) -> None:
        self._step("read the ledger")
        resolves = self.rng.random() < 0.5
        begins = self.on_missing is None or self._moves.random() < 0.5
        try:
            self._register(self.request if self.exists or begins else Request(creates=True))
        except TransientError:
            return
        except ObjectGone as error:
            self.trace(f"stops: {error} is gone")
            if self.on_missing != "Stop":
                self.scheduler.fail(Violation("needless stop", f"{error} is gone"))
        except TableNotRegistered as error:
            self.trace(f"stops: {error}")
            if not self.changed:
                self.scheduler.fail(Violation("needless stop", f"no other program has changed the table: {error}"))
            elif resolves:
                self._alone = True
                try:
                    self._register_and_resolve()
                finally:
                    self._alone = False

    def _register(self, request: Request) -> None:
        target = TopicTable(
            name="lake.log",
            topic="log",
            objects=tuple(self.objects),
            ledger=LedgerView(SINK_ID, "ledger", self.number),
            prefixes=("topics/",),
            wait=lambda seconds: self._step("wait"),
            # all snapshots that may expire, or none
            housekeeping=Housekeeping(history=-10_000 if self._expires else 1 << 50),
            skips_missing=self.on_missing == "Skip",
        )
        Registration(cast("S3Client", self.files), ROOT, self.catalog, target).run(
            request, limit=self.rng.choice((1, 2, 100))
        )

    def _register_and_resolve(self, request: Request | None = None) -> None:
        """A user registers, and accepts what has changed. Nothing else happens meanwhile."""
        request = request or self.request
        for _ in range(RESOLUTIONS):
            try:
                self._register(request)
            except ObjectGone as error:
                self.trace(f"a user restores {error}")
                self.files.gone.discard(str(error))
            except TableNotRegistered as error:
                self.trace(f"a user resolves: {error}")
                request = self._resolved(error)
            else:
                return
        raise Violation("stopped", "the table cannot be registered")

    def _resolved(self, error: TableNotRegistered) -> Request:
        metadata = self.catalog.metadata
        if self.forgotten is not None and metadata is not None:
            self.catalog.set_property(PROPERTY, self.forgotten)
            self.forgotten = None
            return self.request
        if error.reason == TableNotRegistered.reason:
            return Request(from_beginning=True)
        if error.reason == Acceptance.POSITION_LOWER and metadata is not None:
            committed = last_committed(metadata, SINK_ID)
            if committed is None:
                raise Violation("stopped", f"only registrations expire snapshots, and the history is gone: {error}")
            self.catalog.set_property(PROPERTY, as_text(committed))
            return Request(from_beginning=True)
        if error.reason == Acceptance.ROLLED_BACK and metadata is not None:
            position = position_in(metadata.properties, SINK_ID)
            assert position is not None
            paths = {self.files.url_of(o.key) for o in self.objects if o.acknowledged <= position.record}
            self.given_up |= paths - set(self.catalog.contents())
        return Request(from_beginning=True, accepted=frozenset({Acceptance(error.reason)}))

    def _check_skipped(self, missing: Collection[ClosedObject]) -> None:
        metadata = self.catalog.metadata
        position = None if metadata is None else position_in(metadata.properties, SINK_ID)
        total = NOTHING if position is None or position.skipped is None else position.skipped
        if position is not None and not total.are(missing):
            keys = ", ".join(o.key for o in missing)
            raise Violation("skipped", f"the table lacks {keys or 'nothing'}, and has skipped {total}")

    def _check_once(self) -> None:
        twice = [path for path, count in self.catalog.contents().items() if count > 1]
        if twice:
            raise Violation("duplicate", f"the table has {', '.join(sorted(twice))} more than once")
        if self.files.by_name and self.catalog.metadata is not None:
            self._check_names(self.catalog.metadata)

    def _check_names(self, table: TableMetadata) -> None:
        """Readers find the columns of each object without field ids, and always the same ones."""
        mapping = NameMapping.parse(table.properties.get(NAME_MAPPING, "[]"))
        paths = self.catalog.contents()
        for o in self.objects:
            for name in NAMES[o.first % len(NAMES)] if self.files.url_of(o.key) in paths else ():
                found = mapping.find(None, name)
                number = None if found is None else found.number
                if number is None or self._ids.setdefault((str(table.table_uuid), name), number) != number:
                    raise Violation("columns", f"the column {name} of {o.key} has the field id {number}")


def closed_object(key: str, number: int, acknowledged: int) -> ClosedObject:
    """An object with the record `number`, which a record of the ledger has acknowledged."""
    return ClosedObject(
        key=key,
        topic="log",
        partition=0,
        path="partition=0",
        first=number,
        last=number,
        bytes=1,
        crc=0,
        upload="",
        parts=(),
        sources=(),
        offsets=OffsetChecksum(1, 0),
        settings=1,
        acknowledged=acknowledged,
    )


def run_case(seed: int, log: Callable[[str], None] | None = None) -> Violation | None:
    """What a run has violated."""
    footers = patch.object(preparation, "MetadataReader", _Footers)
    ids = [patch.object(module, "LedgerFieldIds", _FieldIds) for module in (preparation, registration)]
    with without_threads(random.Random(f"{seed}/threads")), footers, ids[0], ids[1]:
        try:
            TableWorld(seed, log).run()
        except Violation as violation:
            return violation
    return None


def run_command(run: Callable[..., Violation | None], doc: str | None, *, level: int) -> None:
    """The command line of a simulation, whose description is `doc`. `level`: what registrations log."""
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--cases", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="print the events of the first case alone")
    args = parser.parse_args()
    logging.getLogger("sink_job.tables").setLevel(level)
    if args.verbose:
        print(run(args.seed, print))
        return
    for seed in range(args.seed, args.seed + args.cases):
        violation = run(seed)
        if violation is not None:
            raise SystemExit(f"seed {seed}: {violation}")
    print(f"{args.cases:,} cases, no violation")


if __name__ == "__main__":
    run_command(run_case, __doc__, level=logging.ERROR)
