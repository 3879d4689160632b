"""The plan of a run: worlds (one sink and its topic each), and in each world cycles with one fault each.

A plan is a function of the seed, the number of cycles and the cycles of a world: the same arguments give the same plan.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from devtools.chaos.load import Burst

_BY_RECORD = {"timestampExtractor": "Record"}
_BY_FIELD = {"timestampExtractor": "RecordField", "timestampField": "at"}
_HOURS = {"duration": "1h", "pathFormat": "'d'=yyyy-MM-dd/'h'=HH"}
_HALVES = {"duration": "30m", "pathFormat": "'year'=YYYY/'month'=MM/'at'=HH-mm"}
_MINUTES = {"duration": "1m", "pathFormat": "'minute'=HH-mm"}
PARTITIONERS: tuple[Mapping[str, Any], ...] = (
    {"type": "Default"},
    {"type": "Time", "timezone": "Asia/Kathmandu", **_HOURS, **_BY_RECORD},
    {"type": "Field", "fields": ["user.country", "vip"]},
    {"type": "Hourly", "timezone": "America/New_York", **_BY_FIELD},
    {"type": "FieldAndTime", "fields": ["user.tier"], "timezone": "UTC", **_HOURS, **_BY_RECORD},
    {"type": "Time", "timezone": "Australia/Lord_Howe", **_MINUTES},
    {"type": "Daily", "timezone": "Pacific/Apia", **_BY_RECORD},
    {"type": "Hourly", "timezone": "Europe/Berlin"},
    {"type": "Time", "timezone": "UTC", **_HALVES, **_BY_FIELD},
)
"""All types, and of the types with a time all extractors."""

ROTATIONS: tuple[Mapping[str, Any], ...] = (
    {"flushSize": 70},
    {"scheduleInterval": "5s", "flushSize": 5000},
    {"maxBytes": 20_000},
    {"interval": "40m"},
    {"flushSize": 400, "maxOpenTime": "3s"},
    {"flushSize": 300, "maxOpenObjects": 4},
    {"interval": "20m", "onPathChange": False, "maxBytes": 60_000},
)
"""`interval` is replaced by `maxBytes` where there is no time in the path."""

FORMATS: tuple[Mapping[str, Any], ...] = (
    {"converter": "Json", "output": "Json"},
    {"converter": "Json", "output": "Json", "compression": "Gzip"},
    {"converter": "Bytes", "output": "Bytes"},
    {"converter": "Bytes", "output": "Bytes", "compression": "Gzip"},
)
PARTITIONS = (1, 40, 3, 24, 8, 64, 2, 16)
ZONES = ("UTC", "America/St_Johns", "Asia/Kathmandu", "Pacific/Apia", "Australia/Lord_Howe")

FAULTS: Mapping[str, int] = {
    "kill": 3,
    "kill-at-request": 8,
    "kill-driver-alone": 1,
    "kill-jvm": 1,
    "kill-worker": 1,
    "late-request": 3,
    "pause": 2,
    "terminate": 2,
    "terminate-in-request": 2,
    "terminate-twice": 1,
    "takeover": 3,
    "takeover-of-paused": 3,
    "two-at-once": 2,
    "broker-restart": 2,
    "broker-kill": 2,
    "broker-pause": 1,
    "s3-dropped": 3,
    "s3-status": 4,
    "s3-delay": 1,
    "s3-hold": 2,
    "s3-refused": 1,
    "s3-restart": 2,
    "disk-full": 2,
    "file-limit": 1,
    "out-of-memory": 1,
    "lost-uploads": 2,
    "lost-staging": 1,
    "retention": 2,
    "partitions": 2,
    "edit": 2,
    "reader": 2,
    "group-reset": 1,
}
"""Kind to how often it occurs in 66 cycles."""

GROWS_FROM = 24
"""A world with as many partitions begins with few active ones, and all become active while a driver runs."""

FILLS_DISKS = ("disk-full", "file-limit")
"""Faults that need more bytes in open objects than a task keeps in memory."""

LEAST_MEMORY = 1_560 << 20
"""Little more than two tasks at a time need with parts of 5 MiB."""

OUTAGE_EVERY = 60
"""Cycles to one outage of the store that is longer than requests are tried again, which takes three minutes."""

SHORT = ("kill-at-request", "takeover-of-paused", "s3-dropped", "broker-kill")
"""The faults of the first cycles when a run has no more cycles than these."""


@dataclass(frozen=True, kw_only=True)
class Cycle:
    """One fault under load."""

    number: int
    fault: str
    seed: int
    burst: Burst


@dataclass(frozen=True, kw_only=True)
class WorldPlan:
    """One sink: `spec` has its sections but for Kafka and S3's address; `memory` is bytes of the whole process tree, as
    `--memory` and as a control group's limit (None: no limit)."""

    number: int
    spec: Mapping[str, Any]
    partitions: int
    zone: str
    versioning: bool
    memory: int | None
    cycles: tuple[Cycle, ...]


def plan(seed: int, cycles: int, *, of_a_world: int = 5, only: Sequence[str] = ()) -> list[WorldPlan]:
    """The worlds of a run, with faults of the kinds `only` where there are any."""
    rng = random.Random(seed)
    faults = _faults(rng, cycles, only)
    worlds = []
    for number in range(-(-cycles // of_a_world)):
        part = faults[number * of_a_world : (number + 1) * of_a_world]
        if PARTITIONS[number % len(PARTITIONS)] >= GROWS_FROM and cycles > len(SHORT) and not only:
            part[0] = "growth"
        worlds.append(_world(rng, number, part, first=number * of_a_world + 1))
    return worlds


def _faults(rng: random.Random, cycles: int, only: Sequence[str]) -> list[str]:
    if only:
        return [only[number % len(only)] for number in range(cycles)]
    if cycles <= len(SHORT):
        return list(SHORT[:cycles])
    found: list[str] = []
    while len(found) < cycles:
        deck = [kind for kind, count in FAULTS.items() for _ in range(count)]
        rng.shuffle(deck)
        found += deck
    found = found[:cycles]
    for at in range(OUTAGE_EVERY // 2, cycles, OUTAGE_EVERY):
        found[at] = "s3-outage"
    return found


def _world(rng: random.Random, number: int, faults: list[str], *, first: int) -> WorldPlan:
    partitioner = PARTITIONERS[number % len(PARTITIONERS)]
    partitions = PARTITIONS[number % len(PARTITIONS)]
    timed = partitioner["type"] not in ("Default", "Field")
    rotation = dict(ROTATIONS[(number + number // len(ROTATIONS)) % len(ROTATIONS)])
    if not timed and "interval" in rotation:
        del rotation["interval"]
        rotation.setdefault("maxBytes", 30_000)
    if "scheduleInterval" in rotation and "timezone" not in partitioner:
        partitioner = {**partitioner, "timezone": "UTC"}
    rotation["scope"] = ("Partition", "Object")[(number + number // 14) % 2]
    fields = "Field" in partitioner["type"] or partitioner.get("timestampExtractor") == "RecordField"
    form = FORMATS[rng.randrange(2 if fields else len(FORMATS))]
    tolerant = rng.random() < 0.3
    spec: dict[str, Any] = {
        "partitioner": partitioner,
        "rotation": rotation,
        "format": form,
        "rounds": {"minBytes": 0, "maxDelay": f"{rng.choice((50, 200, 500))}ms", **_limit(rng, partitions)},
        "s3": {"partSize": "5Mi"},
        "errors": {"onNullValue": "Ignore", "tolerance": "All"} if tolerant else {},
    }
    large = rng.random() < 0.25
    memory = rng.choice((LEAST_MEMORY, 1_800 << 20)) if rng.random() < 0.3 else None
    if set(faults) & set(FILLS_DISKS):
        # Hundreds of open objects, none of which fills a part: more than a task may keep in memory.
        spec |= {"partitioner": PARTITIONERS[4], "rotation": {"flushSize": 20_000, "scope": rotation["scope"]}}
        spec |= {"format": FORMATS[rng.randrange(2)], "rounds": {"minBytes": 0, "maxDelay": "500ms"}}
        partitions, memory = max(partitions, 24), LEAST_MEMORY
    cycles = []
    for place, fault in enumerate(faults):
        burst = _burst(rng, partitions, place, large=large, tolerant=tolerant)
        if fault == "growth":
            burst = replace(burst, records=150, active=tuple(range(5)))
        if fault in FILLS_DISKS:
            burst = replace(burst, records=2_500, active=tuple(range(partitions)), smallest=20_000, largest=60_000)
        cycles.append(Cycle(number=first + place, fault=fault, seed=rng.getrandbits(48), burst=burst))
    return WorldPlan(
        number=number,
        spec=spec,
        partitions=partitions,
        zone=ZONES[number % len(ZONES)],
        versioning=rng.random() < 0.4,
        memory=memory,
        cycles=tuple(cycles),
    )


def _limit(rng: random.Random, partitions: int) -> dict[str, int]:
    most = rng.choice((None, None, 50 if partitions >= 16 else 300))
    return {} if most is None else {"maxRecords": most}


def _burst(rng: random.Random, partitions: int, place: int, *, large: bool, tolerant: bool) -> Burst:
    """Activity begins with few partitions, grows to all, and shrinks again."""
    share = (0.1, 1.0, 0.5, 0.05, 0.8)[place % 5]
    active = tuple(sorted(rng.sample(range(partitions), max(1, round(partitions * share)))))
    idle = rng.random() < 0.08
    records = 0 if idle else rng.choice((150, 500, 1_000, 2_000))
    return Burst(
        records=records,
        seconds=rng.uniform(2, 8),
        active=active,
        smallest=150,
        largest=8_000 if large else rng.choice((200, 600, 2_000)),
        transactional=rng.choice((0.0, 0.3, 0.7)),
        nulls=0.02 if tolerant else 0.0,
        broken=0.01 if tolerant else 0.0,
    )
