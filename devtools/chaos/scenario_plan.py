"""The plan of a run: scenarios (a sink and its topic), and their cycles with one fault each.

A plan is a function of the seed, the number of cycles and the cycles per scenario.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from devtools.chaos import containers, registry_plan
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
"""All types, and all timestamp extractors."""

ROTATIONS: tuple[Mapping[str, Any], ...] = (
    {"flushSize": 70},
    {"scheduleInterval": "5s", "flushSize": 5000},
    {"maxBytes": 20_000},
    {"interval": "40m"},
    {"flushSize": 400, "maxOpenTime": "3s"},
    {"flushSize": 300, "maxOpenObjects": 4},
    {"interval": "20m", "onPathChange": False, "maxBytes": 60_000},
)
"""If the path has no time, `maxBytes` replaces `interval`."""

FORMATS: tuple[Mapping[str, Any], ...] = (
    {"converter": "Json", "output": "Json"},
    {"converter": "Json", "output": "Json", "compression": {"codec": "Gzip"}},
    {"converter": "Bytes", "output": "Bytes"},
    {"converter": "Bytes", "output": "Bytes", "compression": {"codec": "Zstd"}},
)
CONTAINER_SHARE = 0.6
"""Fraction of the scenarios with Avro or Parquet objects."""
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
    **registry_plan.FAULTS,
}
"""Number of occurrences of each fault in 75 cycles."""

GROWTH_MIN_PARTITIONS = 24
"""A scenario with at least this number of partitions starts with few active ones; all become active during a run."""

FILLS_DISKS = ("disk-full", "file-limit")
"""Faults that require more bytes in open objects than a task keeps in memory."""

MIN_MEMORY = 1_560 << 20
"""Bytes: slightly more than two concurrent tasks need with parts of 5 MiB."""

OUTAGE_EVERY = 60
"""Cycles per store outage that outlasts the retries (three minutes)."""

SHORT = ("kill-at-request", "takeover-of-paused", "registry-kill", "s3-dropped", "broker-kill")
"""The faults of a run that has at most this number of cycles."""


@dataclass(frozen=True, kw_only=True)
class Cycle:
    """One fault under load."""

    number: int
    fault: str
    seed: int
    burst: Burst


@dataclass(frozen=True, kw_only=True)
class ScenarioPlan:
    """A sink: `spec` has its sections except the addresses of Kafka and S3; `memory` is the limit of the process tree
    in bytes, as `--memory` and as a control group's limit (None: no limit)."""

    number: int
    spec: Mapping[str, Any]
    partitions: int
    zone: str
    versioning: bool
    memory: int | None
    cycles: tuple[Cycle, ...]

    @property
    def has_registry(self) -> bool:
        """Whether values have schemas in a registry."""
        return "registry" in self.spec["format"]


def plan_scenarios(
    seed: int, cycles: int, *, cycles_per_scenario: int = 5, only: Sequence[str] = ()
) -> list[ScenarioPlan]:
    """The scenarios of a run; `only` restricts the faults."""
    rng = random.Random(seed)
    faults = _faults(rng, cycles, only)
    scenarios: list[ScenarioPlan] = []
    for number in range(-(-cycles // cycles_per_scenario)):
        part = faults[number * cycles_per_scenario : (number + 1) * cycles_per_scenario]
        if PARTITIONS[number % len(PARTITIONS)] >= GROWTH_MIN_PARTITIONS and cycles > len(SHORT) and not only:
            part[0] = "growth"
        with_registry = sum(each.has_registry for each in scenarios)
        first = number * cycles_per_scenario + 1
        scenarios.append(_scenario(rng, number, part, first=first, with_registry=with_registry))
    return scenarios


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
        found[at] = registry_plan.OUTAGE if at // OUTAGE_EVERY % 2 else "s3-outage"
    return found


def _scenario(rng: random.Random, number: int, faults: list[str], *, first: int, with_registry: int) -> ScenarioPlan:
    """`with_registry` is the number of scenarios with a registry before this one."""
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
    if rng.random() < CONTAINER_SHARE:
        form = containers.FORMATS[number % len(containers.FORMATS)]
    tolerant = rng.random() < 0.3
    spec: dict[str, Any] = {
        "partitioner": partitioner,
        "rotation": rotation,
        "format": form,
        "rounds": {"minBytes": 0, "maxDelay": f"{rng.choice((50, 200, 500))}ms", **_limit(rng, partitions)},
        "s3": {"partSize": "5Mi"},
        "errors": {"onNullValue": "Ignore", "tolerance": "All"} if tolerant else {},
    }
    has_registry = rng.random() < registry_plan.SHARE or any(map(registry_plan.is_of_registry, faults))
    if has_registry:
        spec |= registry_plan.sections(rng, with_registry)
    large = rng.random() < 0.25
    memory = rng.choice((MIN_MEMORY, 1_800 << 20)) if rng.random() < 0.3 else None
    if set(faults) & set(FILLS_DISKS):
        # Hundreds of open objects below the part size: more bytes than a task keeps in memory.
        spec |= {"partitioner": PARTITIONERS[4], "rotation": {"flushSize": 20_000, "scope": rotation["scope"]}}
        spec |= {"format": FORMATS[rng.randrange(2)], "rounds": {"minBytes": 0, "maxDelay": "500ms"}}
        spec.pop("schemaCompatibility", None)
        has_registry, partitions, memory = False, max(partitions, 24), MIN_MEMORY
        faults = ["kill" if registry_plan.is_of_registry(each) else each for each in faults]
    cycles = []
    for index, fault in enumerate(faults):
        burst = _burst(rng, partitions, index, large=large, tolerant=tolerant)
        if has_registry:
            burst = replace(burst, **registry_plan.versions(rng, index, spec["schemaCompatibility"]))
        if fault == "growth":
            burst = replace(burst, records=150, active=tuple(range(5)))
        if fault in FILLS_DISKS:
            burst = replace(burst, records=2_500, active=tuple(range(partitions)), smallest=20_000, largest=60_000)
        cycles.append(Cycle(number=first + index, fault=fault, seed=rng.getrandbits(48), burst=burst))
    return ScenarioPlan(
        number=number,
        spec=spec,
        partitions=partitions,
        zone=ZONES[number % len(ZONES)],
        versioning=rng.random() < 0.4,
        memory=memory,
        cycles=tuple(cycles),
    )


def _limit(rng: random.Random, partitions: int) -> dict[str, int]:
    limit = rng.choice((None, None, 50 if partitions >= 16 else 300))
    return {} if limit is None else {"maxRecords": limit}


def _burst(rng: random.Random, partitions: int, index: int, *, large: bool, tolerant: bool) -> Burst:
    """Activity starts with few partitions, grows to all, and shrinks again."""
    share = (0.1, 1.0, 0.5, 0.05, 0.8)[index % 5]
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
