"""The course of a simulation run.

The first phase has faults and events and takes `SimulationConfig.steps` steps. Then faults end, all actors are stopped,
a last driver copies and publishes the rest, then another one, and all invariants must hold.
"""

from __future__ import annotations

import os
import random
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from devtools.simulation import checks
from devtools.simulation.config import EVENTS, FOREIGN_KEY, SimulationConfig
from devtools.simulation.events import Events
from devtools.simulation.executors import without_threads
from devtools.simulation.kafka import SimulatedLog
from devtools.simulation.oracle import Violation
from devtools.simulation.scheduler import in_simulation
from devtools.simulation.simulation import Role, Simulation
from devtools.simulation.successors import MAX_SUCCESSORS
from devtools.simulation.two_buckets import SETTINGS, TWO_BUCKETS
from sink_job.api.errors import OwnershipConflict
from sink_job.api.sections.format_section import AvroSpec, ParquetSpec
from sink_job.api.sections.job_sections import KeySettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.api.units.quantities import Size
from sink_job.coordinator.context import StopCondition
from sink_job.formats.compression import Gzip, Zstd
from sink_job.s3 import client as clients

MAX_STEPS = 30_000
"""Maximum number of steps of a last driver, without those of its parts."""

MAX_LAST_DRIVERS = 2 + MAX_SUCCESSORS
"""Two, and those that take over from one more sink."""

STEPS_PER_PART = 8
"""Further steps for each part of each object: a request has two, and an object may be rebuilt."""


class Run:
    """A simulation with its events and checks."""

    def __init__(self, config: SimulationConfig, *, log: Callable[[str], None] | None = None) -> None:
        """`log` gets a line for each event."""
        self.simulation = simulation = Simulation(config, log=log)
        self._events = Events(simulation, [name for name in EVENTS if config.has(name)])
        simulation.scheduler.on_step = self._events.step
        simulation.on_commit = self._events.read
        simulation.on_unexpected = lambda name, error: simulation.scheduler.fail(checks.unexpected(name, error))
        simulation.before_end = lambda role: checks.expect_no_needless_rebuild(simulation, role)
        simulation.on_end = lambda role, error: checks.expect_allowed_end(simulation, role, error)

    def run(self) -> None:
        """Raises Violation."""
        try:
            self._run()
        finally:
            self.simulation.scheduler.unwind()

    def _run(self) -> None:
        simulation = self.simulation
        self._initialize()
        simulation.trace(f"settings: {simulation.sink.object_settings().model_dump_json(exclude_defaults=True)}")
        simulation.start_driver(self._events.goal())
        simulation.scheduler.run(simulation.config.steps)
        self._raise_failure()
        simulation.trace("no more faults")
        simulation.calm = True
        self._events.settle()
        self._planned_faults()
        if simulation.previous is not None:
            simulation.previous.complete()
        self._start_elsewhere()
        missing = 2
        for _ in range(MAX_LAST_DRIVERS):
            goal = StopCondition(until_caught_up=True, publish_open=True)
            role = simulation.start_driver(goal, name="last", number=simulation.successors.finisher)
            self._finish(role)
            self._events.arrive_all()
            simulation.scheduler.now += 2_000
            missing -= not self._takes_over_once_more(role)
            if not missing:
                break
        error = simulation.ended[-1][1]
        self._repair_all()
        checks.at_the_end(simulation, error)

    def _repair_all(self) -> None:
        """The last command repairs what is damaged, and aborts the uploads of those that were killed."""
        repairs = self.simulation.repairs
        if repairs is None:
            return
        for _ in range(3):
            repairs.damage()
        repairs.drop()
        role = repairs.start()
        if role is not None:
            self._finish(role)
        repairs.expect_repaired()

    def _start_elsewhere(self) -> None:
        """Drivers with another place for the ledger, before and after the offsets of the group have expired."""
        simulation = self.simulation
        if not simulation.config.has(TWO_BUCKETS):
            return
        number = simulation.successors.finisher
        caught_up = StopCondition(until_caught_up=True, publish_open=True)
        for _ in range(2):
            if simulation.has_owner(number):
                self._finish(simulation.start_driver(caught_up, name="elsewhere", number=number, misplaced=True))
            self._events.forget_group()

    def _planned_faults(self) -> None:
        """The faults of `lying-registry` and `lost-uploads`: too rare if they are drawn, since the ledger has to have
        copies of schemas, and open objects of several of them."""
        simulation, config = self.simulation, self.simulation.config
        state = simulation.registry if config.has("lying-registry") else None
        if state is None and not config.has("lost-uploads"):
            return
        caught_up = StopCondition(until_caught_up=True)
        number = simulation.successors.finisher
        self._finish(simulation.start_driver(caught_up, name="first", number=number))
        if state is not None:
            self._events.grow_all()
            state.lies = True
            self._finish(simulation.start_driver(caught_up, name="deceived", number=number))
            state.lies = False
        if config.has("lost-uploads"):
            self._events.lose_uploads()

    def _takes_over_once_more(self, role: Role) -> bool:
        """Whether a driver needs to be started again: its topics belonged to several other sinks, and it takes over
        from one at a time."""
        ended, error = self.simulation.ended[-1]
        others = self.simulation.successors.others(role.number)
        return ended is role and isinstance(error, OwnershipConflict) and bool(others)

    def _finish(self, role: Role) -> None:
        """Runs until no actor is left. The number of steps is limited by the number of different parts: tiny parts of a
        Parquet object take many steps, and uploading the same parts again and again is no progress."""
        scheduler, begin = self.simulation.scheduler, self.simulation.scheduler.steps
        while True:
            scheduler.run(MAX_STEPS)
            self._raise_failure()
            if not scheduler.actors:
                return
            taken = scheduler.steps - begin
            if taken >= MAX_STEPS + STEPS_PER_PART * len(self.simulation.store.part_names):
                raise Violation("no progress", f"{role.actor.name} is not done after {taken} steps")

    def _raise_failure(self) -> None:
        if self.simulation.scheduler.failure is not None:
            raise self.simulation.scheduler.failure

    def _initialize(self) -> None:
        simulation = self.simulation
        simulation.store.put(FOREIGN_KEY, b"foreign")
        simulation.store.create_upload(FOREIGN_KEY)
        for topic, count in sorted(simulation.config.partitions.items()):
            simulation.kafka.topics[topic] = f"id-of-{topic}"
            for number in range(count):
                first = simulation.config.first[topic]
                tp = TopicPartition(topic, number)
                simulation.kafka.logs[tp] = SimulatedLog(start=first, end=first, stable=first)
                self._events.grow(tp)
                if simulation.config.group_begins and simulation.previous is None:
                    offset = simulation.rng.randint(first, simulation.kafka.logs[tp].stable)
                    simulation.kafka.group[tp] = (offset, "", False)
        if simulation.previous is not None:
            simulation.previous.write()


def simulate(config: SimulationConfig, *, log: Callable[[str], None] | None = None) -> Simulation:
    """Runs a simulation. `log` gets a line for each event. Raises Violation."""
    names, order = random.Random(f"{config.seed}/names"), random.Random(f"{config.seed}/order")
    with tiny_sizes(), _seeded(names), without_threads(order):
        run = Run(config, log=log)
        with _registered(run.simulation):
            run.run()
        return run.simulation


@contextmanager
def _registered(simulation: Simulation) -> Iterator[None]:
    """`connect` gives the simulated client for the simulated settings."""
    given = {simulation.s3.settings: simulation.s3, SETTINGS: simulation.s3.without_ledger()}
    keys = {(os.getpid(), settings): client for settings, client in given.items()}
    clients._clients.update(keys)
    try:
        yield
    finally:
        for key in keys:
            del clients._clients[key]


@contextmanager
def _seeded(rng: random.Random) -> Iterator[None]:
    """Random names of the simulation come from the seed."""
    before, controlling = uuid.uuid4, threading.current_thread()

    def seeded() -> uuid.UUID:
        return uuid.UUID(int=rng.getrandbits(128), version=4) if in_simulation(controlling) else before()

    uuid.uuid4 = seeded
    try:
        yield
    finally:
        uuid.uuid4 = before


@contextmanager
def tiny_sizes() -> Iterator[None]:
    """Parts, blocks and row groups of a few records: objects of several of them out of little data."""
    sections = ((KeySettings, "part_size"), (ParquetSpec, "row_group"), (AvroSpec, "block"))
    sizes = [
        each for section, name in sections for each in section.model_fields[name].metadata if isinstance(each, Size)
    ]
    before = [(each, each.minimum) for each in sizes], Gzip.block_size, Zstd.block_size
    for each in sizes:
        object.__setattr__(each, "minimum", 1)
    Gzip.block_size = Zstd.block_size = 200
    try:
        yield
    finally:
        for each, minimum in before[0]:
            object.__setattr__(each, "minimum", minimum)
        Gzip.block_size, Zstd.block_size = before[1:]
