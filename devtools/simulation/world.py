"""One simulated world: its actors, what happens to them, and how it ends.

First everything happens at once (`Shape.steps` steps long). Then nothing goes wrong any more, whoever still lives is
stopped, one last driver copies the rest and publishes it, then another one, and all invariants must hold.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from devtools.simulation import checks
from devtools.simulation.client import CALL_FAULTS, SimulatedS3
from devtools.simulation.events import Events
from devtools.simulation.executors import without_threads
from devtools.simulation.kafka import Kafka, Log, SimulatedAdmin, SimulatedEngine
from devtools.simulation.oracle import Oracle, Violation
from devtools.simulation.scheduler import Actor, Killed, Pause, Scheduler
from devtools.simulation.shape import BEGIN_MS, EVENTS, FOREIGN_KEY, Shape
from devtools.simulation.store import Store
from sink_job.api.errors import SinkError
from sink_job.api.job_sections import KeySettings
from sink_job.api.operator_sections import OffsetResetSpec
from sink_job.api.quantities import Size
from sink_job.api.spec import Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import CoordinatorContext as Given
from sink_job.coordinator.context import StopCondition
from sink_job.coordinator.coordinator import Coordinator
from sink_job.coordinator.progress import Progress
from sink_job.formats.compression import Gzip
from sink_job.ledger.ownership import Owner, ledger_root
from sink_job.ledger.session import LedgerAccess
from sink_job.maintenance.discard_open import discard_open
from sink_job.maintenance.offset_reset import OffsetResetter
from sink_job.s3 import S3Settings
from sink_job.s3 import client as clients

MOST_STEPS = 30_000
"""Steps within which the last drivers have to be done."""

SETTINGS = S3Settings(bucket="archive", region="us-east-1", endpoint="http://simulated")


@dataclass
class Role:
    """What an actor is: a driver or a command. `since` is the number of claims that there were when it began."""

    actor: Actor
    what: str
    since: int
    driver: Coordinator | None = None
    attempt: str = ""
    tracker: Progress | None = None


class World:
    """Everything there is in one run."""

    def __init__(self, shape: Shape, *, log: Callable[[str], None] | None = None) -> None:
        """`log` takes a line for each thing that happens."""
        seed = shape.seed
        self.shape = shape
        self.log = log
        self.scheduler = Scheduler(random.Random(f"{seed}/turns"), now=BEGIN_MS, stay=shape.stay, tick=shape.tick)
        self.rng = random.Random(f"{seed}/events")
        self.kafka = Kafka()
        self.oracle = Oracle(self.kafka, lambda: self.scheduler.now, self.scheduler.fail)
        self.kafka.on_commit = self._committed
        self.store = Store(lambda: self.scheduler.now, least_part=1)
        self.store.on_put, self.store.on_complete = self.oracle.put, self.oracle.completed
        self.store.lenient = shape.has("lenient-store")
        if shape.has("foreign-etags"):
            self.store.foreign_etags = lambda: f'"{self.rng.getrandbits(128):032x}"'
        self.echoes: list[tuple[int, str, Callable[[], object]]] = []
        self.calm = False
        self.roles: list[Role] = []
        self.ended: list[tuple[Role, SinkError | None]] = []
        self.moved: dict[str, object] = {}
        self.vanished = False
        self._names = 0
        self._faults = [name for name in CALL_FAULTS if shape.has(name)]
        self._fault_rng = random.Random(f"{seed}/faults")
        self.s3 = SimulatedS3(SETTINGS, self.store, self, random.Random(f"{seed}/calls"), shape.page)
        self.admin = SimulatedAdmin(self.kafka, self.scheduler, self.trace, self._kafka_fails)
        self.sink = self._manifest()
        self.events = Events(self, [name for name in EVENTS if shape.has(name)])
        self.scheduler.on_step = self.events.step

    # -- what happens on the way -------------------------------------------------------------------------------------

    def trace(self, text: str) -> None:
        if self.log is not None:
            self.log(f"{self.scheduler.steps:6d} {(self.scheduler.now - BEGIN_MS) / 1000:12.3f} s  {text}")

    def draw(self) -> str | None:
        """What goes wrong with a call, if anything."""
        if self.calm or not self._faults or self._fault_rng.random() >= self.shape.fault_rate:
            return None
        return self._faults[self._fault_rng.randrange(len(self._faults))]

    def pause_before(self, what: str) -> int:
        """How long (ms) a call waits in its process before it is sent: some records and claims are put late."""
        if self.calm or not self.shape.has("slow-records") or "/ledger/" not in what or not what.startswith("put"):
            return 0
        role = next((role for role in self.roles if role.actor is self.scheduler.current), None)
        claims = role is not None and all(attempt != role.attempt for _, attempt in self.oracle.claims)
        if self._fault_rng.random() >= (0.4 if claims else 0.05):
            return 0
        return self._fault_rng.choice((500, 10_000, 120_000))

    def writes(self, actor: Actor, what: str) -> None:
        if self.oracle.stale:
            for role in self.roles:
                if role.actor is actor:
                    self.oracle.writes(role.attempt, what)

    def _committed(self, tp: TopicPartition, offset: int, mark: str) -> None:
        self.oracle.committed(tp, offset, mark)
        if self.shape.has("eager-reader") and not self.calm:
            self.events.read(tp)

    def _kafka_fails(self) -> bool:
        return not self.calm and self.shape.has("kafka") and self._fault_rng.random() < self.shape.fault_rate / 2

    # -- actors --------------------------------------------------------------------------------------------------------

    def start_driver(self, goal: StopCondition, *, name: str = "driver", after: int = 0, ahead: int = 0) -> Role:
        self._names += 1
        scheduler, sink = self.scheduler, self.sink
        name = f"{name}-{self._names}"

        def clock() -> int:
            return scheduler.now + role.actor.ahead

        def work() -> None:
            engine = SimulatedEngine(
                self.kafka,
                scheduler,
                self.trace,
                random.Random(f"{self.shape.seed}/{name}"),
                late=0.2 if self.shape.has("late-tasks") and not self.calm else 0,
            )
            role.attempt = uuid.uuid4().hex
            given = Given(
                s3=SETTINGS,
                admin=self.admin,
                engine=engine,
                clock=clock,
                owner=self._owner(),
                attempt=role.attempt,
                snapshot_every=self.shape.snapshot_every,
                discovery_interval_ms=self.shape.look_every,
                stop=Pause(scheduler),
                store_clock=self.store.second,
                steady_clock=lambda: scheduler.now,
            )
            role.tracker = Progress(sink, clock)
            driver = Coordinator(sink, given, goal, role.tracker)
            role.driver = driver
            driver.run()

        role = self._begin(name, work, ahead)
        role.actor.wake = scheduler.now + after
        self.trace(f"{name} starts in {after} ms, its clock {ahead} ms ahead: {goal}")
        return role

    def start_reset(self, request: dict[str, object]) -> Role:
        sink = self.sink
        wanted = OffsetResetSpec.model_validate(request)

        def work() -> object:
            return OffsetResetter(sink, self._hands(role), self.admin, wanted).run()

        role = self._begin(f"reset-{len(self.ended) + len(self.roles)}", work, 0)
        self.trace(f"{role.actor.name}: {request}")
        return role

    def start_discard(self) -> Role:
        role = self._begin(f"discard-{len(self.ended) + len(self.roles)}", lambda: discard_open(self._hands(role)), 0)
        return role

    def _begin(self, name: str, work: Callable[[], object], ahead: int) -> Role:
        def lived() -> None:
            error: SinkError | None = None
            try:
                work()
            except SinkError as failed:
                error = failed
            except Killed:
                self.trace(f"{name} is gone")
                self.roles.remove(role)
                raise
            except Exception as failed:
                self.scheduler.fail(checks.unexpected(name, failed))
            checks.expect_no_needless_rebuild(self, role)
            self.trace(f"{name} ends: {type(error).__name__ if error else 'done'}{f': {error}' if error else ''}")
            self.roles.remove(role)
            self.ended.append((role, error))
            checks.expect_allowed_end(self, role, error)

        role = Role(self.scheduler.spawn(name, lived, ahead=ahead), name.split("-")[0], len(self.oracle.claims))
        self.roles.append(role)
        return role

    def _hands(self, role: Role) -> LedgerAccess:
        names = self.sink.spec.s3
        role.attempt = uuid.uuid4().hex
        return LedgerAccess(
            s3=self.s3,
            root=ledger_root(names.topics_dir, self.sink.sink_id),
            owner=self._owner(),
            attempt=role.attempt,
            clock=lambda: self.scheduler.now + role.actor.ahead,
            store_clock=self.store.second,
        )

    def _owner(self) -> Owner:
        return Owner("simulated", self.sink.namespace, self.sink.name, self.sink.sink_id)

    def _manifest(self) -> Sink:
        sink = self.shape.sink()
        if sink.spec.partitioner.timestamp_extractor.value == "Wallclock":
            self.oracle.wallclock = True
        return sink

    def edit(self) -> None:
        self.sink = self._manifest()
        self.trace(f"settings: {self.sink.shaping().model_dump_json(exclude_defaults=True)}")

    # -- from the beginning to the end -------------------------------------------------------------------------------

    def run(self) -> None:
        """Raises Violation."""
        try:
            self._run()
        finally:
            self.scheduler.unwind()

    def _run(self) -> None:
        self._begin_with()
        self.trace(f"settings: {self.sink.shaping().model_dump_json(exclude_defaults=True)}")
        self.start_driver(self.events.goal())
        self.scheduler.run(self.shape.steps)
        self._expect_whole()
        self.trace("nothing goes wrong any more")
        self.calm = True
        self.events.settle()
        for name in ("last", "last"):
            role = self.start_driver(StopCondition(until_caught_up=True, publish_open=True), name=name)
            self.scheduler.run(MOST_STEPS)
            self._expect_whole()
            if self.scheduler.actors:
                raise Violation("stuck", f"{role.actor.name} is not done after {MOST_STEPS} steps")
            self.events.arrive_all()
            self.scheduler.now += 2_000
        checks.at_the_end(self, self.ended[-1][1])

    def _expect_whole(self) -> None:
        if self.scheduler.failure is not None:
            raise self.scheduler.failure

    def _begin_with(self) -> None:
        self.store.put(FOREIGN_KEY, b"of somebody else")
        self.store.create_upload(FOREIGN_KEY)
        for topic, count in sorted(self.shape.partitions.items()):
            self.kafka.topics[topic] = f"id-of-{topic}"
            for number in range(count):
                first = self.shape.first[topic]
                tp = TopicPartition(topic, number)
                self.kafka.logs[tp] = Log(start=first, end=first, stable=first)
                self.events.grow(tp)
                if self.shape.group_begins:
                    self.kafka.group[tp] = (self.rng.randint(first, self.kafka.logs[tp].stable), "", False)


def simulate(shape: Shape, *, log: Callable[[str], None] | None = None) -> World:
    """Runs a world from its beginning to its end. `log` takes a line for each thing that happens. Raises Violation."""
    names, order = random.Random(f"{shape.seed}/names"), random.Random(f"{shape.seed}/order")
    with _tiny(), _seeded(names), without_threads(order):
        world = World(shape, log=log)
        with _registered(world):
            world.run()
        return world


@contextmanager
def _registered(world: World) -> Iterator[None]:
    """`connect` gives the simulated client for the simulated settings."""
    import os

    key = os.getpid(), SETTINGS
    clients._clients[key] = world.s3
    try:
        yield
    finally:
        del clients._clients[key]


@contextmanager
def _seeded(rng: random.Random) -> Iterator[None]:
    """Random names come from the seed."""
    before = uuid.uuid4
    uuid.uuid4 = lambda: uuid.UUID(int=rng.getrandbits(128), version=4)
    try:
        yield
    finally:
        uuid.uuid4 = before


@contextmanager
def _tiny() -> Iterator[None]:
    """Parts and gzip members of a few records: objects of several parts out of little data."""
    sizes = [each for each in KeySettings.model_fields["part_size"].metadata if isinstance(each, Size)]
    before = [(each, each.minimum) for each in sizes], Gzip.block_size
    for each in sizes:
        object.__setattr__(each, "minimum", 1)
    Gzip.block_size = 200
    try:
        yield
    finally:
        for each, minimum in before[0]:
            object.__setattr__(each, "minimum", minimum)
        Gzip.block_size = before[1]
