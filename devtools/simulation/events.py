"""Events beside the actions of the actors: each event is one atomic change, drawn at a step."""

from __future__ import annotations

import json
from collections.abc import Sequence

from devtools.simulation import containers, null_values, registry, transforms
from devtools.simulation.config import DAY_MS, EVENTS, FOREIGN_KEY, START_MS
from devtools.simulation.kafka import SimulatedLog
from devtools.simulation.oracle import generation_of
from devtools.simulation.registered_objects import Source
from devtools.simulation.scheduler import Actor
from devtools.simulation.simulation import Simulation
from devtools.simulation.successors import MAX_SUCCESSORS
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import StopCondition

MAX_RECORDS = 60
PAUSES_MS = (0, 0, 100, 3_000)
SLEEPS_MS = (500, 2_000, 10_000, 120_000, 3_600_000)
AHEAD_MS = (-3_600_000, -5_000, 1_500, 60_000, 600_000, 3_600_000, DAY_MS)


class Events:
    """Draws the events of a run, each kind by its weight."""

    def __init__(self, simulation: Simulation, kinds: Sequence[str]) -> None:
        self._simulation = simulation
        self._rng = simulation.rng
        self._kinds = list(kinds)
        self._weights = [EVENTS[kind] for kind in kinds]
        self._produced = 0
        self._nonces = 0
        self._take_over_at = simulation.successors.rng.randrange(max(1, simulation.config.steps // 3))

    def step(self, actor: Actor) -> None:
        """Called at each step of the running actor."""
        simulation = self._simulation
        if simulation.echoes:
            self._arrive(actor)
        if simulation.calm:
            return
        if simulation.repairs is not None:
            simulation.repairs.step()
        if simulation.previous is not None:
            simulation.previous.step()
        if self._rng.random() < simulation.config.rate and self._kinds:
            kind = self._rng.choices(self._kinds, self._weights)[0]
            getattr(self, "_" + kind.replace("-", "_"))(actor)
        if simulation.scheduler.steps >= self._take_over_at and self._takes_over:
            self._take_over(actor)
        if simulation.scheduler.steps % 16 == 0 and not any(role.what == "driver" for role in simulation.roles):
            simulation.start_driver(self.goal(), after=self._rng.choice(PAUSES_MS), ahead=self._ahead())

    def goal(self) -> StopCondition:
        if self._rng.random() < 0.8:
            return StopCondition()
        return StopCondition(until_caught_up=self._rng.random() < 0.7, publish_open=self._rng.random() < 0.5)

    # -- requests that arrive twice ----------------------------------------------------------------------------------

    def _arrive(self, actor: Actor | None) -> None:
        simulation = self._simulation
        due = [each for each in simulation.echoes if each[0] <= simulation.scheduler.now]
        if due:
            simulation.echoes = [each for each in simulation.echoes if each[0] > simulation.scheduler.now]
        for _, what, effect in due:
            simulation.oracle.late = True
            try:
                effect()
                simulation.trace(f"{what} arrives")
            except Exception as error:
                simulation.trace(f"{what} arrives -> {type(error).__name__}")
            finally:
                simulation.oracle.late = False

    def arrive_all(self) -> None:
        """Delivers all delayed copies of requests."""
        if self._simulation.echoes:
            self._simulation.scheduler.now = max(
                self._simulation.scheduler.now, *(at for at, _, _ in self._simulation.echoes)
            )
            self._arrive(None)

    # -- processes ---------------------------------------------------------------------------------------------------

    def _kill(self, actor: Actor) -> None:
        self._simulation.trace(f"{actor.name} is killed")
        actor.killed = True

    def _sleep(self, actor: Actor) -> None:
        ms = self._rng.choice(SLEEPS_MS)
        self._simulation.trace(f"{actor.name} sleeps for {ms} ms")
        actor.wake = self._simulation.scheduler.now + ms

    def _second_driver(self, actor: Actor) -> None:
        if len(self._simulation.roles) < 4:
            self._simulation.start_driver(self.goal(), after=self._rng.choice(PAUSES_MS), ahead=self._ahead())

    def _stop(self, actor: Actor) -> None:
        for role in self._simulation.roles:
            if role.driver is not None and self._rng.random() < 0.7:
                self._simulation.trace(f"{role.actor.name} is stopped")
                role.driver.stop()

    def _ahead(self) -> int:
        return self._rng.choice(AHEAD_MS) if self._simulation.config.has("clock") and self._rng.random() < 0.3 else 0

    def _clock(self, actor: Actor) -> None:
        actor.ahead += self._rng.choice(AHEAD_MS)
        self._simulation.trace(f"the clock of {actor.name} jumps: {actor.ahead} ms ahead")

    def _long_idle(self, actor: Actor) -> None:
        ms = self._rng.choice((30_000, 600_000, 3_600_000))
        self._simulation.trace(f"{ms} ms pass")
        self._simulation.scheduler.now += ms

    @property
    def _takes_over(self) -> bool:
        """Whether no sink has taken over yet: each run with the feature has a step at which one does."""
        return self._simulation.config.has("take-over") and not self._simulation.successors.exist

    def _take_over(self, actor: Actor) -> None:
        simulation = self._simulation
        if simulation.successors.newest < MAX_SUCCESSORS and len(simulation.roles) < 4:
            number = simulation.succeed()
            simulation.start_driver(self.goal(), after=self._rng.choice(PAUSES_MS), number=number)

    def _edit(self, actor: Actor) -> None:
        self._simulation.edit()

    def _discard(self, actor: Actor) -> None:
        if len(self._simulation.roles) < 4:
            self._simulation.start_discard()

    def _reset(self, actor: Actor) -> None:
        simulation = self._simulation
        if len(simulation.roles) >= 4:
            return
        if self._nonces == 0 or self._rng.random() < 0.8:
            self._nonces += 1
        to = self._rng.choice(("Earliest", "Latest", "Timestamp", "Offsets"))
        request: dict[str, object] = {
            "nonce": f"nonce-{self._nonces}",
            "to": to,
            "onExisting": self._rng.choice(("Fail", "NewPrefix", "NewPrefix")),
        }
        if to == "Timestamp":
            request["timestamp"] = START_MS + self._rng.randrange(600_000)
        if to == "Offsets":
            tp = self._partition()
            log = simulation.kafka.logs[tp]
            offset = self._rng.randint(log.start, max(log.start, log.stable))
            request["partitions"] = [{"topic": tp.topic, "partition": tp.partition, "offset": offset}]
        simulation.start_reset(request)

    # -- Kafka -------------------------------------------------------------------------------------------------------

    def _partition(self) -> TopicPartition:
        return self._rng.choice(sorted(self._simulation.kafka.logs))

    def _growth(self, actor: Actor) -> None:
        self.grow(self._partition())

    def grow(self, tp: TopicPartition, most: int = MAX_RECORDS) -> None:
        """Appends a few records, and sometimes an offset without a record. `most`: the maximum number of records of
        the run."""
        simulation, rng = self._simulation, self._rng
        log = simulation.kafka.logs[tp]
        for _ in range(rng.choice((1, 2, 5, 9))):
            if self._produced >= most:
                break
            offset = log.end
            log.end += 1
            if simulation.config.has("holes") and rng.random() < 0.2:  # words: allow
                continue
            self._produced += 1
            self._record(tp, offset)
        if not (
            simulation.config.has("transactions") and rng.random() < 0.4
        ):  # otherwise a transaction stays open until the log grows again
            log.stable = log.end
        simulation.trace(f"{tp} grows to {log.end}, last stable offset {log.stable}")

    def _record(self, tp: TopicPartition, offset: int) -> None:
        simulation, rng, config = self._simulation, self._rng, self._simulation.config
        log = simulation.kafka.logs[tp]
        time = simulation.scheduler.now + (rng.randrange(-7_200_000, 7_200_000) if config.scattered_times else 0)
        log.times[offset] = time
        bad = rng.random() if config.has("bad-records") else 1.0
        if config.has("null-values"):
            is_null, null = null_values.null_value(config.null_rng)
            if is_null:
                log.values[offset] = null
                simulation.oracle.produced(Source(tp, offset, time, ""), null)
                return
        if bad < (0.3 if config.has("dead-letter-topic") or config.has("skips") else 0.1):
            log.values[offset] = value = None if bad < 0.05 and not config.has("null-values") else b"{not json"
            if value is not None and config.has("dead-letters"):
                simulation.oracle.rejected(Source(tp, offset, time, ""), value)
            return
        kind = f"k{rng.randrange(config.kinds)}"
        fields = {"at": f"{tp}@{offset}", "kind": kind, "pad": "x" * rng.randint(0, config.pad)}
        if simulation.registry is not None:
            version = simulation.registry.produce(simulation.scheduler.now)
            fields = registry.values_of(version, fields, config.output_rng)
            log.values[offset] = value = registry.in_wire_format(version, fields)
            simulation.oracle.produced(Source(tp, offset, time, kind), value, (version, fields))
            return
        if config.has("transforms") and transforms.is_filtered(config.transform_rng):
            log.values[offset] = transforms.marked(fields)
            return
        if config.has("containers"):
            fields |= containers.more_fields(config.output_rng)
        value = json.dumps(fields).encode()
        log.values[offset] = value
        simulation.oracle.produced(Source(tp, offset, time, kind), value)

    def _new_partition(self, actor: Actor) -> None:
        simulation = self._simulation
        topic = self._rng.choice(sorted(simulation.kafka.topics))
        if simulation.config.has("pattern") and self._rng.random() < 0.5 and len(simulation.kafka.topics) < 3:
            topic = "later"
            simulation.kafka.topics[topic] = "id-of-later"
        tp = TopicPartition(topic, simulation.kafka.partitions(topic))
        if tp.partition < 8:
            simulation.kafka.logs[tp] = SimulatedLog()
            self.grow(tp)

    def _retention(self, actor: Actor) -> None:
        """Drops the beginning of a log: records that are in objects; with `data-loss` also others."""
        simulation = self._simulation
        tp = self._partition()
        log = simulation.kafka.logs[tp]
        records = [offset for offset in sorted(log.values) if offset >= log.start]
        safe = 0
        while safe < len(records) and self._is_safe(tp, records[safe]):
            safe += 1
        if simulation.config.has("data-loss") and self._rng.random() < 0.5:
            safe = len(records)
        gone = records[: self._rng.randint(0, safe)]
        if not gone:
            return
        simulation.oracle.dropped[tp].update(offset for offset in gone if not self._is_safe(tp, offset))
        for offset in gone:
            del log.values[offset]
        log.start = gone[-1] + 1
        simulation.trace(f"{tp}: Kafka drops the offsets below {log.start}")

    def _is_safe(self, tp: TopicPartition, offset: int) -> bool:
        oracle = self._simulation.oracle
        if oracle.is_copied(tp, offset):
            return True
        start = oracle.current.starts.get(tp)
        if start is None or offset in oracle.accepted[tp]:
            return False
        later = (
            o for o in oracle.current.seen[tp] if o > offset
        )  # a rejected record: passed when a later one is copied
        return next(later, None) is not None

    # -- the group ---------------------------------------------------------------------------------------------------

    def _group_back(self, actor: Actor) -> None:
        self._set_group(forward=False)

    def _group_forward(self, actor: Actor) -> None:
        self._set_group(forward=True)

    def _set_group(self, *, forward: bool) -> None:
        simulation = self._simulation
        tp = self._partition()
        log = simulation.kafka.logs[tp]
        offset, mark, _ = simulation.kafka.group.get(tp, (log.start, "", False))
        low, high = (offset, log.end) if forward else (log.start, offset)
        if low < high and tp in simulation.oracle.current.starts:
            chosen = self._rng.randint(low, high)
            simulation.kafka.group[tp] = (chosen, mark if self._rng.random() < 0.5 else "", False)
            simulation.trace(f"another program sets the group's offset of {tp} to {chosen}")

    def _group_forgotten(self, actor: Actor) -> None:
        self.forget_group()

    def forget_group(self) -> None:
        """The offsets of the group expire."""
        if self._simulation.oracle.current.starts:
            self._simulation.kafka.group.clear()
            self._simulation.topics.numbers.clear()
            self._simulation.trace("Kafka expires the group's offsets")

    # -- the bucket --------------------------------------------------------------------------------------------------

    def _reader(self, actor: Actor) -> None:
        for tp in sorted(self._simulation.kafka.group):
            self.read(tp)

    def read(self, tp: TopicPartition) -> None:
        """A reader moves objects away that are below the sink's committed offset."""
        simulation = self._simulation
        for key, found in list(simulation.oracle.visible.items()):
            if found.tp != tp:
                continue
            offset, mark, ours = simulation.kafka.group.get(found.tp, (0, "", False))
            generation = generation_of(mark) or 1
            is_below = ours and offset > found.offsets[-1] and found.generation <= generation
            is_damaged = simulation.repairs is not None and key in simulation.repairs.damaged
            if key not in simulation.moved and is_below and not is_damaged and self._rng.random() < 0.5:
                stored = simulation.store.take(key)
                if stored is not None:
                    simulation.moved[key] = stored
                    simulation.trace(f"a reader moves {key}")

    def _lifecycle(self, actor: Actor) -> None:
        """An unfinished upload or a staging object vanishes."""
        simulation = self._simulation
        started = ((each, upload.key) for each, upload in simulation.store.uploads.items())
        uploads = [each for each, key in started if key != FOREIGN_KEY and "/probe/" not in key]
        staged = [key for key in simulation.store.objects if "/staging/" in key]
        chosen = [*uploads, *staged]
        if chosen:
            self._vanish(self._rng.sample(chosen, self._rng.choice((1, 1, len(chosen)))))

    def lose_uploads(self) -> None:
        """All unfinished uploads of the sink vanish."""
        uploads = self._simulation.store.uploads
        self._vanish([each for each, upload in uploads.items() if upload.key != FOREIGN_KEY])

    def _vanish(self, gone: Sequence[str]) -> None:
        simulation = self._simulation
        simulation.vanished = True
        for each in gone:
            simulation.store.uploads.pop(each, None)
            simulation.store.take(each)
        simulation.trace(f"vanished: {', '.join(gone)}")

    def grow_all(self) -> None:
        """Each topic-partition grows, whatever was produced before."""
        for tp, log in sorted(self._simulation.kafka.logs.items()):
            self.grow(tp, self._produced + 4)
            log.stable = log.end

    # -- the end -----------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Kills or stops the remaining actors; stopped ones may sleep until the last driver works or is done."""
        simulation = self._simulation
        for log in simulation.kafka.logs.values():
            log.stable = log.end
        for actor in list(simulation.scheduler.actors):
            role = next((role for role in simulation.roles if role.actor is actor), None)
            if self._rng.random() < 0.3:
                self._kill(actor)
                continue
            if role is not None and role.driver is not None:
                simulation.trace(f"{actor.name} is stopped")
                role.driver.stop()
            elif role is not None and role.what == "driver":
                self._kill(actor)
            if self._rng.random() < 0.5:
                actor.wake = simulation.scheduler.now + self._rng.choice((500, 5_000, 3_600_000))
