"""The state of a simulation run: its actors, Kafka, the object store, and the faults of their calls.

`run` has the course of a simulation, `events` what happens beside the actors, and `checks` the allowed results.
"""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from devtools.simulation.client import CALL_FAULTS, CONDITIONAL_FAULTS, SimulatedS3
from devtools.simulation.config import START_MS, SimulationConfig, dead_letters_of
from devtools.simulation.dead_letter_topic import SimulatedTopics
from devtools.simulation.dead_letters import TOPIC, TopicAccount
from devtools.simulation.kafka import SimulatedAdmin, SimulatedEngine, SimulatedKafka
from devtools.simulation.oracle import Oracle
from devtools.simulation.previous_writer import PreviousConnector
from devtools.simulation.registered_objects import RegisteredObjects
from devtools.simulation.registry import RegistryState, SimulatedRegistry
from devtools.simulation.repairs import Repairs
from devtools.simulation.scheduler import Actor, Killed, Pause, Scheduler
from devtools.simulation.store import SimulatedStore
from devtools.simulation.successors import Successors
from devtools.simulation.two_buckets import MISPLACED, SETTINGS, TWO_BUCKETS, WITH_LEDGER, without_place
from sink_job.api.errors import SinkError, TransientError
from sink_job.api.sections.operator_sections import OffsetResetSpec
from sink_job.api.spec import Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import CoordinatorContext, StopCondition
from sink_job.coordinator.coordinator import Coordinator
from sink_job.coordinator.progress import Progress
from sink_job.engine.dead_letter_topic import DeadLetter
from sink_job.ledger.first_claim.ledger_place import ledger_root
from sink_job.ledger.handover import Handover
from sink_job.ledger.ownership import Owner
from sink_job.ledger.schemas.field_ids import LedgerFieldIds
from sink_job.ledger.schemas.object_schemas import ObjectSchemas
from sink_job.ledger.schemas.schema_table import LedgerSchemas
from sink_job.ledger.session import LedgerAccess
from sink_job.maintenance.discard_open import discard_open
from sink_job.maintenance.offset_reset import OffsetResetter
from sink_job.registry.base import SchemaRegistry
from sink_job.registry.client import open_schemas


@dataclass
class Role:
    """The role of an actor: a driver or a command. `since` is the number of claims at its start; `number` is that of
    its sink. `is_misplaced`: its manifest has another place for the ledger."""

    actor: Actor
    what: str
    since: int
    driver: Coordinator | None = None
    attempt: str = ""
    number: int = 0
    take_over_from: Owner | None = None
    tracker: Progress | None = None
    is_misplaced: bool = False


class Simulation:
    """The whole state of a run."""

    def __init__(self, config: SimulationConfig, *, log: Callable[[str], None] | None = None) -> None:
        """`log` gets a line for each event."""
        seed = config.seed
        self.config = config
        self.log = log
        self.scheduler = Scheduler(random.Random(f"{seed}/turns"), now=START_MS, stay=config.stay, tick=config.tick)
        self.rng = random.Random(f"{seed}/events")
        self.kafka = SimulatedKafka()
        self.oracle = Oracle(self.kafka, lambda: self.scheduler.now, self.scheduler.fail)
        if config.has("null-values"):
            self.oracle.expect_envelopes()
        self.oracle.transforms = config.has("transforms")
        self.kafka.on_commit = self._committed
        self.store = SimulatedStore(lambda: self.scheduler.now, min_part=1)
        self.store.on_put, self.store.on_complete = self.oracle.put, self.oracle.completed
        self.store.on_abort, self.store.on_delete = self._aborts, self._deletes
        self.store.lenient = config.has("lenient-store")
        self.store.equal_parts = config.has("equal-parts")
        self.store.has_offset_tags = config.has("offset-tags")
        if self.store.has_offset_tags:
            self.oracle.tags = self.store.tags
        if config.has("foreign-etags"):
            self.store.foreign_etags = lambda: f'"{self.rng.getrandbits(128):032x}"'
        self.echoes: list[tuple[int, str, Callable[[], object]]] = []
        self.calm = False
        self.roles: list[Role] = []
        self.ended: list[tuple[Role, SinkError | None]] = []
        self.moved: dict[str, object] = {}
        self.vanished = False
        self._names = 0
        self._faults = [name for name in CALL_FAULTS if config.has(name)]
        self._fault_rng = random.Random(f"{seed}/faults")
        self._conditional_faults = [name for name in CONDITIONAL_FAULTS if config.has(name)]
        self.conditional_rng = random.Random(f"{seed}/conditional-faults")
        settings = WITH_LEDGER if config.has(TWO_BUCKETS) else SETTINGS
        self.s3 = SimulatedS3(settings, self.store, self, random.Random(f"{seed}/calls"), config.page)
        self.place_rng = random.Random(f"{seed}/places")
        self.admin = SimulatedAdmin(self.kafka, self.scheduler, self.trace, self._kafka_fails)
        self._topic_rng = random.Random(f"{seed}/dead-letter-topic")
        self.topics = SimulatedTopics({TOPIC}, self._before_topic, self._after_topic, self._produced)
        if config.has("dead-letter-topic"):
            chosen = dead_letters_of(config)
            self.oracle.dead_letters.topic = TopicAccount("delivery" in chosen, "prefix" not in chosen)
        self.registry: RegistryState | None = None
        if config.has("registry"):
            self.registry = RegistryState(random.Random(f"{seed}/registry"), config.has("registry-faults"))
            self.oracle.registered = RegisteredObjects()
        self.successors = Successors(random.Random(f"{seed}/successors"), config.changes_ledger)
        if config.has("take-over"):
            self.oracle.successors = self.successors
            self.store.on_create = self._creates
        self.repairs = Repairs(self) if config.has("repairs") else None
        self.oracle.repairs = self.repairs is not None
        self.previous = PreviousConnector(self) if config.has("previous-writer") else None
        self.sink = self._manifest(0)
        self.sinks = {0: self.sink}
        self.on_commit: Callable[[TopicPartition], None] = lambda tp: None
        self.on_unexpected: Callable[[str, Exception], None] = lambda name, error: None
        self.before_end: Callable[[Role], None] = lambda role: None
        self.on_end: Callable[[Role, SinkError | None], None] = lambda role, error: None

    # -- faults of calls ---------------------------------------------------------------------------------------------

    def trace(self, text: str) -> None:
        if self.log is not None:
            self.log(f"{self.scheduler.steps:6d} {(self.scheduler.now - START_MS) / 1000:12.3f} s  {text}")

    def draw(self) -> str | None:
        """The fault of a call, if any."""
        if self.calm or not self._faults or self._fault_rng.random() >= self.config.fault_rate:
            return None
        return self._faults[self._fault_rng.randrange(len(self._faults))]

    def draw_conditional(self, what: str) -> str | None:
        """The fault of a conditional call, if any. They are more frequent than others: a run has few such calls."""
        completes = what.startswith("complete ")
        rate = (12 if completes else 3) * self.config.fault_rate
        if self.calm or not self._conditional_faults or self.conditional_rng.random() >= rate:
            return None
        fault = self.conditional_rng.choice(self._conditional_faults)
        return fault if fault != "torn-completion" or completes else None

    def pause_before(self, what: str) -> int:
        """The delay in ms before a call is sent: some records and claims are put late."""
        if self.calm or not self.config.has("slow-records") or "/ledger/" not in what or not what.startswith("put"):
            return 0
        role = next((role for role in self.roles if role.actor is self.scheduler.current), None)
        claims = role is not None and all(attempt != role.attempt for _, attempt in self.oracle.claims)
        if self._fault_rng.random() >= (0.4 if claims else 0.05):
            return 0
        return self._fault_rng.choice((500, 10_000, 120_000))

    def writes(self, actor: Actor, what: str) -> None:
        if self.oracle.stale or self.successors.superseded:
            for role in self.roles:
                if role.actor is actor:
                    self.oracle.writes(role.attempt, what)

    def _aborts(self, key: str, upload_id: str) -> None:
        actor = self.scheduler.current
        if actor is not None:
            may_abort = (actor.name, upload_id) in self.s3.failed_completions
            self.oracle.aborts(f"{actor.name} aborts {upload_id} of {key}", upload_id, may_abort=may_abort)

    def _creates(self, upload_id: str) -> None:
        for role in self.roles if not self.oracle.late else ():
            if role.actor is self.scheduler.current:
                self.successors.uploads[upload_id] = role.number

    def _deletes(self, key: str) -> None:
        if self.scheduler.current is not None:
            self.oracle.deletes(f"{self.scheduler.current.name} deletes {key}", key)

    def _committed(self, tp: TopicPartition, offset: int, mark: str) -> None:
        actor = self.scheduler.current
        if actor is not None:
            self.oracle.commits(actor.name, tp, unproven=actor.unproven)
        for role in self.roles if self.successors.superseded else ():
            if role.actor is self.scheduler.current:
                self.oracle.acts(self.successors, role.attempt, f"commit of {tp}")
        self.oracle.committed(tp, offset, mark)
        if self.config.has("eager-reader") and not self.calm:
            self.on_commit(tp)

    def _kafka_fails(self) -> bool:
        return not self.calm and self.config.has("kafka") and self._fault_rng.random() < self.config.fault_rate / 2

    def _before_topic(self, what: str) -> None:
        """A request to the dead-letter topic, which can fail before its effect."""
        self.admin.request(f"dead letters: {what}")
        if what == "committed" and self._topic_rng.random() < 0.5:
            self.trace("Kafka expires the number of the ledger with the dead letters")
            self.topics.numbers.clear()
        if what == "commit" and not self.calm and self._topic_rng.random() < 0.2:
            self.scheduler.sleep(self._topic_rng.choice((10_000, 120_000)))
        if what in ("send", "commit"):
            self._topic_fails(what, 0.1)

    def _after_topic(self, what: str) -> None:
        """The reply of a request, which can be lost."""
        self.admin.request(f"reply to {what}")
        self._topic_fails(f"reply to {what}", 0.3)

    def _topic_fails(self, what: str, rate: float) -> None:
        """Lets some requests and replies of a transaction get lost: an event hits the time between them rarely."""
        actor = self.scheduler.current
        if actor is None or self.calm or self._topic_rng.random() >= rate:
            return
        self.trace(f"{actor.name}: dead letters: {what}: timeout")
        actor.faults.add("kafka")
        raise TransientError(f"Kafka: {what}: timeout")

    def _produced(self, topic: str, records: Sequence[DeadLetter]) -> None:
        if records:
            self.trace(f"dead letters in the topic: {', '.join(each.id for each in records)}")
        self.oracle.in_topic(records)

    # -- actors ------------------------------------------------------------------------------------------------------

    def start_driver(
        self,
        goal: StopCondition,
        *,
        name: str = "driver",
        after: int = 0,
        ahead: int = 0,
        number: int | None = None,
        misplaced: bool = False,
    ) -> Role:
        """`number`: of the sink (default: drawn, if there are several). `misplaced`: with another place for the ledger
        (otherwise this is drawn)."""
        self._names += 1
        scheduler = self.scheduler
        name = f"{name}-{self._names}"
        number = self.successors.draw() if number is None else number
        sink = self.sinks[number]
        is_misplaced = misplaced or self._is_misplaced(number)
        goal = replace(goal, take_over_from=self._predecessor(number))

        def clock() -> int:
            return scheduler.now + role.actor.ahead

        def work() -> None:
            engine = SimulatedEngine(
                self.kafka,
                scheduler,
                self.trace,
                random.Random(f"{self.config.seed}/{name}"),
                late=0.2 if self.config.has("late-tasks") and not self.calm else 0,
            )
            self._begin(role)
            context = CoordinatorContext(
                s3=SETTINGS if is_misplaced else self.s3.settings,
                admin=self.admin,
                engine=engine,
                clock=clock,
                owner=self.successors.owner(number),
                attempt=role.attempt,
                snapshot_every=self.config.snapshot_every,
                discovery_interval_ms=self.config.discovery_interval_ms,
                head_check_interval_ms=20 * self.config.discovery_interval_ms,
                stop=Pause(scheduler),
                store_clock=self.store.second,
                steady_clock=lambda: scheduler.now,
                registry=self._schemas_of(sink, role.attempt),
                dead_letter_topic=self.topics.producer,
                previous=None if self.previous is None else self.previous.position(sink, engine),
            )
            self.forget_schemas()
            role.tracker = Progress(sink, clock)
            driver = Coordinator(without_place(sink) if is_misplaced else sink, context, goal, role.tracker)
            role.driver = driver
            driver.run()

        role = self._spawn(name, work, ahead, number, goal.take_over_from)
        role.is_misplaced = is_misplaced
        role.actor.wake = scheduler.now + after
        self.trace(f"{name} starts in {after} ms, its clock {ahead} ms ahead: {goal}")
        return role

    def _is_misplaced(self, number: int) -> bool:
        """Whether the next driver has another place for the ledger than the first one."""
        if not self.config.has(TWO_BUCKETS) or self.calm or not self.has_owner(number):
            return False
        return self.place_rng.random() < MISPLACED

    def has_owner(self, number: int) -> bool:
        """Whether the ledger of a sink has an owner."""
        return f"topics/_s3sink/{self.successors.owner(number).sink_id}/owner.json" in self.store.objects

    def _schemas_of(self, sink: Sink, attempt: str) -> SchemaRegistry | None:
        """The registry of the driver `attempt`."""
        state, registered = self.registry, self.oracle.registered
        if state is None or registered is None:
            return open_schemas(sink.spec.format, None, lambda seconds: False, lambda secrets: None)
        return SimulatedRegistry(
            state,
            self.scheduler,
            self.trace,
            is_calm=lambda: self.calm,
            is_copied=lambda topic, each: registered.is_copied(self.oracle.current.number, topic, each),
            deceived=lambda: self.oracle.deceived.add(attempt),
            compares_versions=sink.spec.schema_compatibility.projects,
        )

    def forget_schemas(self) -> None:
        """The tasks of the next driver read schemas from the store, as those of a new process."""
        for kept in (LedgerSchemas, ObjectSchemas, LedgerFieldIds):
            kept._caches.pop(self.s3, None)

    def start_reset(self, request: dict[str, object]) -> Role:
        sink, number = self.sink, self.successors.newest
        spec = OffsetResetSpec.model_validate(request)

        def work() -> object:
            return OffsetResetter(sink, self.ledger_access(role), self.admin, spec).run()

        name = f"reset-{len(self.ended) + len(self.roles)}"
        role = self._spawn(name, work, 0, number, self._predecessor(number))
        self.trace(f"{role.actor.name}: {request}")
        return role

    def start_discard(self) -> Role:
        name, number = f"discard-{len(self.ended) + len(self.roles)}", self.successors.newest
        role = self._spawn(name, lambda: discard_open(self.ledger_access(role)), 0, number, self._predecessor(number))
        return role

    def spawn_command(self, name: str, work: Callable[[], object]) -> Role:
        """An actor without a claim."""

        def with_attempt() -> None:
            self._begin(role)
            work()

        role = self._spawn(name, with_attempt, 0, self.successors.newest, None)
        return role

    def _predecessor(self, number: int) -> Owner | None:
        """The owner that an actor of this sink may take over from. Some of its actors have no such permission."""
        found = self.successors.predecessor(number)
        if found is None or (not self.calm and self.successors.rng.random() < 0.3):
            return None
        others = self.successors.others(number)
        return self.successors.owner(others[0]) if self.calm and others else found

    def succeed(self) -> int:
        """Another sink, which takes over; returns its number."""
        number = self.successors.add()
        self.sink = self.sinks[number] = self._manifest(number)
        self.trace(f"{self.successors.owner(number)} takes over from {self.successors.predecessor(number)}")
        return number

    def _begin(self, role: Role, *, checked: bool = True) -> None:
        """A new attempt; `checked`: it may not act for a sink from which another one has taken over. A ledger that was
        handed over to a sink with another one is still open for commands, to clean it up."""
        role.attempt = uuid.uuid4().hex
        if checked:
            self.successors.numbers[role.attempt] = role.number

    def _spawn(
        self, name: str, work: Callable[[], object], ahead: int, number: int, take_over_from: Owner | None
    ) -> Role:
        def lived() -> None:
            error: SinkError | None = None
            try:
                work()
            except SinkError as failed:
                error = failed
            except Killed:
                self.trace(f"{name} is killed")
                self.roles.remove(role)
                raise
            except Exception as failed:
                self.on_unexpected(name, failed)
            self.before_end(role)
            self.trace(f"{name} ends: {type(error).__name__ if error else 'done'}{f': {error}' if error else ''}")
            self.roles.remove(role)
            self.ended.append((role, error))
            self.on_end(role, error)

        role = Role(
            self.scheduler.spawn(name, lived, ahead=ahead),
            name.split("-")[0],
            len(self.oracle.claims),
            number=number,
            take_over_from=take_over_from,
        )
        self.roles.append(role)
        return role

    def ledger_access(self, role: Role) -> LedgerAccess:
        """The access of a command to the ledger, as a new attempt."""
        sink = self.sinks[role.number]
        topics_dir = sink.spec.s3.topics_dir
        root = ledger_root(self.s3, topics_dir, sink.sink_id)
        self._begin(role, checked=not self.config.changes_ledger)

        def clock() -> int:
            return self.scheduler.now + role.actor.ahead

        succession = Handover(
            s3=self.s3,
            topics_dir=topics_dir,
            root=root,
            attempt=role.attempt,
            clock=clock,
            store_clock=self.store.second,
            predecessor=role.take_over_from,
        )
        return LedgerAccess(
            s3=self.s3,
            root=root,
            owner=self.successors.owner(role.number),
            attempt=role.attempt,
            clock=clock,
            store_clock=self.store.second,
            succession=succession,
        )

    def _manifest(self, number: int) -> Sink:
        sink = self.config.sink(number)
        if sink.spec.partitioner.timestamp_extractor.value == "Wallclock":
            self.oracle.wallclock = True
        self.oracle.listed.update((each.topic_partition, each.offset) for each in sink.spec.errors.skip)
        return sink

    def edit(self) -> None:
        number = self.successors.newest
        self.sink = self.sinks[number] = self._manifest(number)
        self.trace(f"settings: {self.sink.object_settings().model_dump_json(exclude_defaults=True)}")
