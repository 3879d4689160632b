"""`s3sink repair` beside drivers, and the damage that it repairs: objects that another program deletes, truncates or
replaces. Runs with the feature `repairs` have both; the random numbers are their own. Some commands accept losses, and
claim the ledger for it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from devtools.simulation.kafka import SimulatedEngine
from devtools.simulation.oracle import Violation
from devtools.simulation.store import Stored
from sink_job.api.spec import Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.maintenance.repair.accepted_loss import AcceptedLosses, accept_losses
from sink_job.maintenance.repair.damage import Suspect
from sink_job.maintenance.repair.kafka_source import KafkaReader, KafkaSource
from sink_job.maintenance.repair.repairer import Repairer, RepairRequest
from sink_job.maintenance.repair.results import RepairOutcome, RepairReport
from sink_job.s3.checksums import crc64nvme
from sink_job.verify.evidence import collect_evidence
from sink_job.verify.results import FindingType

if TYPE_CHECKING:
    from devtools.simulation.simulation import Role, Simulation

MAX_ROLES = 5
DAMAGE_RATE = 0.08
REPAIR_RATE = 0.04
ACCEPT_RATE = 0.4
DROP_RATE = 0.01


DAMAGE = (FindingType.OBJECT_MISSING, FindingType.OBJECT_MISMATCH)
ARITHMETIC = (FindingType.OFFSETS_MISSING, FindingType.DUPLICATE_OFFSETS)


class Repairs:
    """The damaged objects of a run by key, as they were, and the commands that repair them."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._rng = random.Random(f"{simulation.config.seed}/repairs")
        self._losses = random.Random(f"{simulation.config.seed}/losses")
        self.damaged: dict[str, Stored] = {}
        self._attempts: set[str] = set()
        self.restored = 0
        self._damages: Counter[str] = Counter()
        self._names = 0

    def step(self) -> None:
        """Draws damage and commands at a step."""
        if self._rng.random() < DAMAGE_RATE:
            self.damage()
        if self._losses.random() < DROP_RATE:
            self.drop()
        if self._rng.random() < REPAIR_RATE and len(self._simulation.roles) < MAX_ROLES:
            self.start()

    def damage(self) -> None:
        """Another program damages an acknowledged object."""
        simulation, oracle = self._simulation, self._simulation.oracle
        objects = simulation.store.objects
        keys = [
            key
            for key, found in sorted(oracle.visible.items())
            if key in oracle.acknowledged and key in objects and objects[key].body == found.body
        ]
        if not keys:
            return
        key = self._rng.choice(keys)
        stored = simulation.store.take(key)
        assert stored is not None
        self.damaged.setdefault(key, stored)
        self._damages[key] += 1
        kind = self._rng.choice(("deletes", "truncates", "replaces", "replaces with another object"))
        body = {
            "truncates": stored.body[: self._rng.randrange(len(stored.body))],
            "replaces": stored.body[::-1],
            "replaces with another object": objects[self._rng.choice(sorted(objects))].body,
        }.get(kind)
        if body is not None:
            etag = f'"{self._rng.getrandbits(128):032x}"'
            simulation.store.put_back(key, Stored(body, etag, crc64nvme(body), simulation.store.second()))
        simulation.trace(f"another program {kind} {key}")

    def drop(self) -> None:
        """Kafka drops records of a damaged object, and everything before them, if all of it is in objects."""
        simulation, oracle = self._simulation, self._simulation.oracle
        if not self.damaged:
            return
        found = oracle.visible[self._losses.choice(sorted(self.damaged))]
        log = simulation.kafka.logs[found.tp]
        end = self._losses.choice(found.offsets) + 1
        gone = [offset for offset in sorted(log.values) if log.start <= offset < end]
        if not gone or not all(oracle.is_copied(found.tp, offset) for offset in gone):
            return
        for offset in gone:
            del log.values[offset]
        log.start = end
        simulation.trace(f"{found.tp}: Kafka drops the offsets below {end}")

    def start(self) -> Role | None:
        """Starts a command, if there is a ledger."""
        simulation = self._simulation
        if not simulation.oracle.current.starts:
            return None
        self._names += 1
        name = f"repair-{self._names}"
        sink = simulation.sink
        role = simulation.spawn_command(name, lambda: self._run(name, sink, role))
        return role

    def _run(self, name: str, sink: Sink, role: Role) -> None:
        simulation = self._simulation
        simulation.forget_schemas()
        keys = frozenset(self.damaged)
        if not keys:
            return
        evidence = collect_evidence(sink, simulation.s3, simulation.admin)
        source = KafkaSource(
            s3=simulation.s3,
            settings=simulation.s3.settings,
            evidence=evidence,
            errors=sink.spec.errors,
            now=simulation.scheduler.now,
        )
        rng = random.Random(f"{simulation.config.seed}/{name}")
        engine = SimulatedEngine(simulation.kafka, simulation.scheduler, simulation.trace, rng, late=0)
        reader = KafkaReader(simulation.admin, engine)
        generation = evidence.current.state.generation

        def accept_loss(lost: Sequence[Suspect]) -> AcceptedLosses:
            access = simulation.ledger_access(role)
            self._attempts.add(access.attempt)
            return accept_losses(access, generation, lost)

        accepts = random.Random(f"{simulation.config.seed}/{name}/accepts").random() < ACCEPT_RATE
        request = RepairRequest(keys=keys, probes=False, accept_loss=accept_loss if accepts else None)
        repairer = Repairer(simulation.s3, source, role.attempt, connect=lambda: reader, request=request)
        before = Counter(self._damages)
        self._check(name, repairer.run(sink.sink_id), before)

    def _check(self, name: str, report: RepairReport, damages: Counter[str]) -> None:
        """A restored object is as it was, unless it was damaged again since the `damages` of each before the command.
        An object is not restorable only if Kafka has dropped records of it."""
        simulation = self._simulation
        for o in report.objects:
            stored = simulation.store.objects.get(o.key)
            if o.outcome is RepairOutcome.RESTORED and self._damages[o.key] == damages[o.key]:
                self.restored += 1
                if stored is None or stored.body != self.damaged[o.key].body:
                    message = f"{name} reports {o.key} as restored, and it is not"
                    simulation.scheduler.fail(Violation("not repaired", message))
            log = simulation.kafka.logs[TopicPartition(o.topic, o.partition)]
            if o.outcome in (RepairOutcome.NOT_RESTORABLE, RepairOutcome.LOSS_ACCEPTED) and log.start <= o.first:
                message = f"{name} does not restore {o.key}, although Kafka has all of its records: {o.message}"
                simulation.scheduler.fail(Violation("not repaired", message))

    def _expect_losses_reported(self) -> None:
        simulation = self._simulation
        for key, stored in simulation.moved.items():
            if key not in simulation.store.objects:
                simulation.store.put_back(key, stored)  # type: ignore[arg-type]
        results = collect_evidence(simulation.sink, simulation.s3, simulation.admin).results()
        reported = {f.key for result in results for f in result.findings if f.type in DAMAGE}
        others = [f for result in results for f in result.findings if f.type not in DAMAGE and f.type in ARITHMETIC]
        if others:
            raise Violation("verify", f"beside accepted losses: {others[0].message}")
        damaged = {
            key
            for key, stored in self.damaged.items()
            if (now := simulation.store.objects.get(key)) is None or now.body != stored.body
        }
        accepted = {key for attempt, key in simulation.oracle.lost if attempt in self._attempts}
        if reported != damaged - accepted:
            wrong = sorted(map(str, reported ^ (damaged - accepted)))
            raise Violation("verify", f"{wrong[0]} is damaged or recorded as lost, and reported as the other")

    def expect_repaired(self) -> None:
        """After the last command: each damaged object is as it was, unless Kafka has dropped records of it. `verify`
        reports those whose loss no command has accepted. They are put back for the checks that follow."""
        self._expect_losses_reported()
        store, visible = self._simulation.store, self._simulation.oracle.visible
        for key, stored in self.damaged.items():
            now = store.objects.get(key)
            if now is not None and now.body == stored.body:
                continue
            if self._simulation.kafka.logs[visible[key].tp].start <= visible[key].offsets[0]:
                raise Violation("not repaired", f"{key} is still damaged")
            store.take(key)
            store.put_back(key, stored)
