"""What happens to a world beside what its actors do: each event is one atomic change, drawn at a step."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from devtools.simulation.kafka import Log
from devtools.simulation.oracle import generation_of
from devtools.simulation.scheduler import Actor
from devtools.simulation.shape import BEGIN_MS, DAY_MS, EVENTS, FOREIGN_KEY
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import StopCondition

if TYPE_CHECKING:
    from devtools.simulation.world import World

MOST_RECORDS = 60
PAUSES_MS = (0, 0, 100, 3_000)
SLEEPS_MS = (500, 2_000, 10_000, 120_000, 3_600_000)
AHEAD_MS = (-3_600_000, -5_000, 1_500, 60_000, 600_000, 3_600_000, DAY_MS)


class Events:
    """Draws events for a world, each kind by its weight."""

    def __init__(self, world: World, kinds: Sequence[str]) -> None:
        self._world = world
        self._rng = world.rng
        self._kinds = list(kinds)
        self._weights = [EVENTS[kind] for kind in kinds]
        self._produced = 0
        self._nonces = 0

    def step(self, actor: Actor) -> None:
        """Called at each step of the actor that runs."""
        world = self._world
        if world.echoes:
            self._arrive(actor)
        if world.calm:
            return
        if self._rng.random() < world.shape.rate:
            kind = self._rng.choices(self._kinds, self._weights)[0]
            getattr(self, "_" + kind.replace("-", "_"))(actor)
        if world.scheduler.steps % 16 == 0 and not any(role.what == "driver" for role in world.roles):
            world.start_driver(self.goal(), after=self._rng.choice(PAUSES_MS), ahead=self._ahead())

    def goal(self) -> StopCondition:
        if self._rng.random() < 0.8:
            return StopCondition()
        return StopCondition(until_caught_up=self._rng.random() < 0.7, publish_open=self._rng.random() < 0.5)

    # -- requests that arrive twice ----------------------------------------------------------------------------------

    def _arrive(self, actor: Actor | None) -> None:
        world = self._world
        due = [each for each in world.echoes if each[0] <= world.scheduler.now]
        if due:
            world.echoes = [each for each in world.echoes if each[0] > world.scheduler.now]
        for _, what, effect in due:
            world.oracle.late = True
            try:
                effect()
                world.trace(f"{what} arrives")
            except Exception as error:
                world.trace(f"{what} arrives -> {type(error).__name__}")
            finally:
                world.oracle.late = False

    def arrive_all(self) -> None:
        """Every copy of a request that is still on its way arrives."""
        if self._world.echoes:
            self._world.scheduler.now = max(self._world.scheduler.now, *(at for at, _, _ in self._world.echoes))
            self._arrive(None)

    # -- processes ---------------------------------------------------------------------------------------------------

    def _kill(self, actor: Actor) -> None:
        self._world.trace(f"{actor.name} is killed")
        actor.killed = True

    def _sleep(self, actor: Actor) -> None:
        ms = self._rng.choice(SLEEPS_MS)
        self._world.trace(f"{actor.name} sleeps for {ms} ms")
        actor.wake = self._world.scheduler.now + ms

    def _second_driver(self, actor: Actor) -> None:
        if len(self._world.roles) < 4:
            self._world.start_driver(self.goal(), after=self._rng.choice(PAUSES_MS), ahead=self._ahead())

    def _stop(self, actor: Actor) -> None:
        for role in self._world.roles:
            if role.driver is not None and self._rng.random() < 0.7:
                self._world.trace(f"{role.actor.name} is stopped")
                role.driver.stop()

    def _ahead(self) -> int:
        return self._rng.choice(AHEAD_MS) if self._world.shape.has("clock") and self._rng.random() < 0.3 else 0

    def _clock(self, actor: Actor) -> None:
        actor.ahead += self._rng.choice(AHEAD_MS)
        self._world.trace(f"the clock of {actor.name} jumps: {actor.ahead} ms ahead")

    def _long_idle(self, actor: Actor) -> None:
        ms = self._rng.choice((30_000, 600_000, 3_600_000))
        self._world.trace(f"{ms} ms pass")
        self._world.scheduler.now += ms

    def _edit(self, actor: Actor) -> None:
        self._world.edit()

    def _discard(self, actor: Actor) -> None:
        if len(self._world.roles) < 4:
            self._world.start_discard()

    def _reset(self, actor: Actor) -> None:
        world = self._world
        if len(world.roles) >= 4:
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
            request["timestamp"] = BEGIN_MS + self._rng.randrange(600_000)
        if to == "Offsets":
            tp = self._partition()
            log = world.kafka.logs[tp]
            offset = self._rng.randint(log.start, max(log.start, log.stable))
            request["partitions"] = [{"topic": tp.topic, "partition": tp.partition, "offset": offset}]
        world.start_reset(request)

    # -- Kafka -------------------------------------------------------------------------------------------------------

    def _partition(self) -> TopicPartition:
        return self._rng.choice(sorted(self._world.kafka.logs))

    def _growth(self, actor: Actor) -> None:
        self.grow(self._partition())

    def grow(self, tp: TopicPartition) -> None:
        """A few records more, and now and then an offset without one."""
        world, rng = self._world, self._rng
        log = world.kafka.logs[tp]
        for _ in range(rng.choice((1, 2, 5, 9))):
            if self._produced >= MOST_RECORDS:
                break
            offset = log.end
            log.end += 1
            if world.shape.has("holes") and rng.random() < 0.2:
                continue
            self._produced += 1
            self._record(tp, offset)
        if not (world.shape.has("transactions") and rng.random() < 0.4):  # else one is open, until it grows again
            log.stable = log.end
        world.trace(f"{tp} grows to {log.end}, {log.stable} for readers")

    def _record(self, tp: TopicPartition, offset: int) -> None:
        world, rng, shape = self._world, self._rng, self._world.shape
        log = world.kafka.logs[tp]
        time = world.scheduler.now + (rng.randrange(-7_200_000, 7_200_000) if shape.scattered_times else 0)
        log.times[offset] = time
        bad = rng.random() if shape.has("bad-records") else 1.0
        if bad < 0.1:
            log.values[offset] = None if bad < 0.05 else b"{not json"
            return
        kind = f"k{rng.randrange(shape.kinds)}"
        value = json.dumps({"at": f"{tp}@{offset}", "kind": kind, "pad": "x" * rng.randint(0, shape.pad)}).encode()
        log.values[offset] = value
        world.oracle.produced(tp, offset, value, time, kind)

    def _new_partition(self, actor: Actor) -> None:
        world = self._world
        topic = self._rng.choice(sorted(world.kafka.topics))
        if world.shape.has("pattern") and self._rng.random() < 0.5 and len(world.kafka.topics) < 3:
            topic = "later"
            world.kafka.topics[topic] = "id-of-later"
        tp = TopicPartition(topic, world.kafka.partitions(topic))
        if tp.partition < 8:
            world.kafka.logs[tp] = Log()
            self.grow(tp)

    def _retention(self, actor: Actor) -> None:
        """Drops the beginning of a log: what is in objects already or, in some worlds, more."""
        world = self._world
        tp = self._partition()
        log = world.kafka.logs[tp]
        records = [offset for offset in sorted(log.values) if offset >= log.start]
        safe = 0
        while safe < len(records) and self._is_safe(tp, records[safe]):
            safe += 1
        if world.shape.has("data-loss") and self._rng.random() < 0.5:
            safe = len(records)
        gone = records[: self._rng.randint(0, safe)]
        if not gone:
            return
        world.oracle.dropped[tp].update(offset for offset in gone if not self._is_safe(tp, offset))
        for offset in gone:
            del log.values[offset]
        log.start = gone[-1] + 1
        world.trace(f"{tp}: Kafka drops what is below {log.start}")

    def _is_safe(self, tp: TopicPartition, offset: int) -> bool:
        oracle = self._world.oracle
        if oracle.is_copied(tp, offset):
            return True
        start = oracle.current.starts.get(tp)
        if start is None or self._world.kafka.logs[tp].values[offset] in oracle.sources:
            return False
        later = (o for o in oracle.current.seen[tp] if o > offset)  # a bad record: passed once a later one is copied
        return next(later, None) is not None

    # -- the group ---------------------------------------------------------------------------------------------------

    def _group_back(self, actor: Actor) -> None:
        self._set_group(forward=False)

    def _group_forward(self, actor: Actor) -> None:
        self._set_group(forward=True)

    def _set_group(self, *, forward: bool) -> None:
        world = self._world
        tp = self._partition()
        log = world.kafka.logs[tp]
        offset, mark, _ = world.kafka.group.get(tp, (log.start, "", False))
        low, high = (offset, log.end) if forward else (log.start, offset)
        if low < high and tp in world.oracle.current.starts:
            chosen = self._rng.randint(low, high)
            world.kafka.group[tp] = (chosen, mark if self._rng.random() < 0.5 else "", False)
            world.trace(f"somebody sets the group's offset of {tp} to {chosen}")

    def _group_forgotten(self, actor: Actor) -> None:
        if self._world.oracle.current.starts:
            self._world.kafka.group.clear()
            self._world.trace("Kafka forgets the group's offsets")

    # -- the bucket --------------------------------------------------------------------------------------------------

    def _reader(self, actor: Actor) -> None:
        for tp in sorted(self._world.kafka.group):
            self.read(tp)

    def read(self, tp: TopicPartition) -> None:
        """A reader moves objects away that are below the offset which the sink has committed."""
        world = self._world
        for key, found in list(world.oracle.visible.items()):
            if found.tp != tp:
                continue
            offset, mark, ours = world.kafka.group.get(found.tp, (0, "", False))
            generation = generation_of(mark) or 1
            is_below = ours and offset > found.offsets[-1] and found.generation <= generation
            if key not in world.moved and is_below and self._rng.random() < 0.5:
                stored = world.store.take(key)
                if stored is not None:
                    world.moved[key] = stored
                    world.trace(f"a reader moves {key}")

    def _lifecycle(self, actor: Actor) -> None:
        """An unfinished upload or a staging object vanishes."""
        world = self._world
        begun = ((each, upload.key) for each, upload in world.store.uploads.items())
        uploads = [each for each, key in begun if key != FOREIGN_KEY and "/probe/" not in key]
        staged = [key for key in world.store.objects if "/staging/" in key]
        chosen = [*uploads, *staged]
        if not chosen:
            return
        gone = self._rng.sample(chosen, self._rng.choice((1, 1, len(chosen))))
        world.vanished = True
        for each in gone:
            world.store.uploads.pop(each, None)
            world.store.take(each)
        world.trace(f"vanished: {', '.join(gone)}")

    # -- the end -----------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Whoever still lives is killed, stopped, or stopped and asleep until the last driver is done or under way."""
        world = self._world
        for log in world.kafka.logs.values():
            log.stable = log.end
        for actor in list(world.scheduler.actors):
            role = next((role for role in world.roles if role.actor is actor), None)
            if self._rng.random() < 0.3:
                self._kill(actor)
                continue
            if role is not None and role.driver is not None:
                world.trace(f"{actor.name} is stopped")
                role.driver.stop()
            elif role is not None and role.what == "driver":
                self._kill(actor)
            if self._rng.random() < 0.5:
                actor.wake = world.scheduler.now + self._rng.choice((500, 5_000, 3_600_000))
