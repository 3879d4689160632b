"""The choices of a seed before a run: the sink's settings, its topics, the faults and their frequency."""

from __future__ import annotations

import random
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

from devtools.simulation import containers, null_values, registry, transforms
from devtools.simulation.client import CALL_FAULTS, CONDITIONAL_FAULTS
from devtools.simulation.dead_letters import DEAD_LETTERS, TOPIC
from devtools.simulation.previous_writer import NOT_WITH
from devtools.simulation.successors import SINK_ID, name_of
from sink_job.api.parser import parse_sink
from sink_job.api.spec import Sink

EVENTS = {
    "kill": 6,
    "sleep": 6,
    "second-driver": 2,
    "stop": 1,
    "growth": 12,
    "new-partition": 0.5,
    "reader": 8,
    "lifecycle": 3,
    "retention": 4,
    "group-back": 1,
    "group-forward": 1,
    "group-forgotten": 1,
    "clock": 1,
    "reset": 0.7,
    "discard": 0.7,
    "edit": 2,
    "long-idle": 1,
    "take-over": 2,
}
"""The events that can occur at a step, with their weights."""

TRAITS = (
    "late-tasks",
    "kafka",
    "bad-records",
    "holes",  # offsets without a record; the name is a part of the seeds. words: allow
    "foreign-etags",
    "lenient-store",
    "pages",
    "data-loss",
    "continue",
    "pattern",
    "transactions",
    "eager-reader",
    "slow-records",
    "containers",
    "inference",
    "many-uploads",
    "registry",
    "registry-faults",
    "other-ledger",
    "lying-registry",
    "lost-uploads",
    "dead-letters",
    "dead-letter-topic",
    "repairs",
    "skips",
    "equal-parts",
    "offset-tags",
    "null-values",
    "previous-writer",
    "two-buckets",
    "transforms",
)
"""Features that a run has from its start or not at all. `data-loss`: retention drops records that are in no object.
`containers`: records have more fields, and each manifest has the output Avro, Parquet or Json.
`inference`: these outputs have the schema that is inferred from the first records, instead of a given one.
`many-uploads`: topic-partitions have several open objects, each with an upload.
`registry`: records are Avro with the ids of a registry, in place of `containers`, and each manifest has another
schemaCompatibility. `registry-faults`: the registry is down, slow, 403, late with an id, forgets, swaps, renumbers.
`other-ledger`: a sink that takes over has a ledger of its own, which continues after the objects of the other one.
`lying-registry`, `lost-uploads`: after the faults a driver copies everything. Then a registry lies about every id of
which the ledger has a copy, to a driver that reads more records; and the uploads of the open objects are lost.
`dead-letters`: bad records are in dead-letter objects; only with `bad-records`. `dead-letter-topic`: in a topic, too,
or in the topic alone; only with `dead-letters`, and not with `take-over`. `skips`: each manifest lists records to skip,
others than the manifest before it. `repairs`: other programs damage visible objects, and `repair` runs beside the
drivers; only if it is included, so that no seed without it changes, and not with `reset` and `take-over`.
`transforms`: each manifest has a Filter and an Insert; only if it is included, and with JSON lines alone.
`null-values`: records have envelopes, some of them no value; not with `registry`.
`equal-parts`: the store rejects an object whose parts have different sizes, apart from the last.
`offset-tags`: objects get tags with their offsets. `previous-writer`: the first start continues a connector
(`devtools.simulation.previous_writer`); only if it is included.
`two-buckets`: ledger and staging are in a bucket of their own, which may fail alone, and some drivers start with
another place for them; only if it is included."""

FEATURES = (*EVENTS, *CALL_FAULTS, *CONDITIONAL_FAULTS, *TRAITS)

RARE = {
    "data-loss": 0.08,
    "foreign-etags": 0.1,
    "group-forward": 0.2,
    "reset": 0.3,
    "discard": 0.3,
    "clock": 0.3,
    "containers": 0.25,
    "torn-completion": 0.3,
    "late-conflict": 0.3,
    "many-uploads": 0.1,
    "registry": 0.25,
    "take-over": 0.15,
    "lying-registry": 0.1,
    "lost-uploads": 0.05,
    "dead-letters": 0.4,
    "repairs": 0.0,
    "previous-writer": 0.0,
    "two-buckets": 0.0,
    "skips": 0.25,
    "equal-parts": 0.2,
    "offset-tags": 0.2,
    "null-values": 0.2,
    "transforms": 0.0,
}
"""The probability of a feature; 0.5 for others."""

UNUSUAL = (
    "containers",
    "inference",
    "registry",
    "take-over",
    "lost-uploads",
    "dead-letters",
    "dead-letter-topic",
    "skips",
    "equal-parts",
    "offset-tags",
    "null-values",
    "transforms",
)
"""Features that a search for a deliberate defect leaves out, unless the defect is one of them."""

NOT_WITH_OTHER_LEDGER = ("reset", "group-forward", "containers", "registry", "skips")
"""Features that no run with `take-over` and `other-ledger` has. A new ledger follows a group that another program has
set forward, and does not know what the other one has skipped. All manifests have one extension: each extension of a
topic has its own owner (P11)."""

DAY_MS = 86_400_000
START_MS = 1_700_000_000_000

FOREIGN_KEY = "topics/log/unowned"
"""The key of a foreign object and upload that no sink may change."""


@dataclass
class SimulationConfig:
    """The configuration of a run. `rate` is the probability of an event at a step, `fault_rate` that of a fault of a
    call."""

    seed: int
    features: frozenset[str]
    partitions: dict[str, int]
    steps: int
    rate: float
    fault_rate: float
    stay: float
    tick: int
    page: int
    snapshot_every: int
    discovery_interval_ms: int
    kinds: int
    pad: int
    first: dict[str, int]
    scattered_times: bool
    group_begins: bool
    latest: bool
    rng: random.Random = field(repr=False)
    output_rng: random.Random = field(repr=False)
    skip_rng: random.Random = field(repr=False)
    null_rng: random.Random = field(repr=False)
    transform_rng: random.Random = field(repr=False)

    def has(self, feature: str) -> bool:
        return feature in self.features

    @property
    def changes_ledger(self) -> bool:
        """Whether a sink that takes over has a ledger of its own."""
        return self.has("take-over") and self.has("other-ledger")

    def sink(self, number: int = 0) -> Sink:
        """The next manifest of the run, of the sink `number`."""
        manifest = _manifest(self, self.rng)
        manifest["metadata"]["name"] = name_of(number)
        if self.changes_ledger:
            manifest["spec"]["format"]["compression"] = {"codec": ("None", "Gzip", "Zstd")[self.seed % 3]}
        elif number:
            manifest["spec"]["sinkId"] = SINK_ID
        if self.has("many-uploads"):
            manifest["spec"]["partitioner"] = {"type": "Field", "fields": ["kind"], "timezone": "UTC"}
            manifest["spec"]["rotation"] = {"flushSize": 30}
            manifest["spec"]["s3"]["partSize"] = 60
        if self.has("previous-writer"):
            manifest["spec"]["partitioner"] = {"type": "Default", "timezone": "UTC"}
            manifest["spec"]["rotation"] = {"flushSize": 1 + len(manifest["spec"]["rotation"])}
            manifest["spec"]["format"]["compression"] = {"codec": "None"}
        if self.has("skips"):
            manifest["spec"].setdefault("errors", {})["skip"] = _skips(self)
        if self.has("equal-parts"):
            manifest["spec"]["s3"]["equalParts"] = True
            manifest["spec"]["s3"]["partSize"] = max(60, manifest["spec"]["s3"]["partSize"])
        if self.has("registry"):
            registry.change_output(manifest["spec"], self.output_rng)
        elif self.has("containers"):
            containers.change_output(manifest["spec"], self.output_rng)
            if self.has("inference"):
                containers.infer_schema(manifest["spec"]["format"])
        if self.has("two-buckets"):
            manifest["spec"]["s3"]["ledger"] = {"bucket": "ledgers"}
        if self.has("null-values"):
            null_values.write_nulls(manifest["spec"], self.null_rng)
        if self.has("transforms"):
            transforms.add_transforms(manifest["spec"], self.transform_rng)
        return parse_sink(manifest)


def config_of_seed(seed: int, *, without: Collection[str] = (), include: Collection[str] = ()) -> SimulationConfig:
    """The configuration of a seed, without and with some features."""
    rng = random.Random(f"{seed}/shape")
    features = {name for name in FEATURES if random.Random(f"{seed}/{name}").random() < RARE.get(name, 0.5)}
    features = (features | {"growth"} | set(include)) - set(without)
    if "dead-letters" in include:
        features.add("bad-records")
    elif "bad-records" not in features:
        features.discard("dead-letters")
    if "dead-letters" not in features or "take-over" in features:
        features.discard("dead-letter-topic")
    if "registry" in features:
        features.discard("null-values")
    if features >= {"take-over", "other-ledger"}:
        features.difference_update(NOT_WITH_OTHER_LEDGER)
    if "transforms" in features:
        features -= {"containers", "inference", "registry", "null-values"}
    if "repairs" in features:
        features -= {"reset", "take-over"}
    if "previous-writer" in features:
        features.difference_update(NOT_WITH)
    topics = ["log", "other"][: rng.choice((1, 1, 2))]
    partitions = {name: rng.choice((1, 1, 2, 3, 4)) for name in topics}
    return SimulationConfig(
        seed=seed,
        features=frozenset(features),
        partitions=partitions,
        steps=rng.choice((80, 150, 300, 500)),
        rate=rng.choice((0.02, 0.05, 0.1)),
        fault_rate=rng.choice((0.0, 0.005, 0.02, 0.05)),
        stay=rng.choice((0.5, 0.9, 0.97)),
        tick=rng.choice((5, 40, 200, 700)),
        page=2 if "pages" in features else 1000,
        snapshot_every=1 if "slow-records" in features else rng.choice((2, 3, 6, 100)),
        discovery_interval_ms=rng.choice((1_000, 5_000, 30_000)),
        kinds=rng.choice((1, 2, 3)),
        pad=rng.choice((0, 20, 60)),
        first={name: rng.choice((0, 0, 7)) for name in topics},
        scattered_times=rng.random() < 0.5,
        group_begins=rng.random() < 0.1,
        latest=rng.random() < 0.15,
        rng=rng,
        output_rng=random.Random(f"{seed}/outputs"),
        skip_rng=random.Random(f"{seed}/lists of skips"),
        null_rng=random.Random(f"{seed}/nulls"),
        transform_rng=random.Random(f"{seed}/transforms"),
    )


def _manifest(config: SimulationConfig, rng: random.Random) -> dict[str, Any]:
    partitioner = _partitioner(rng)
    kafka: dict[str, Any] = {"bootstrapServers": "127.0.0.1:9", "groupId": "group"}
    if config.has("pattern"):
        kafka["topicsPattern"] = f"(?!{TOPIC}$).*" if config.has("dead-letter-topic") else ".*"
    else:
        kafka["topics"] = sorted(config.partitions)
    if config.latest:
        kafka["startingOffsets"] = "Latest"
    spec: dict[str, Any] = {
        "kafka": kafka,
        "format": {"compression": {"codec": _compression(config, rng)}},
        "partitioner": partitioner,
        "rotation": _rotation(rng, partitioner),
        "rounds": {"minBytes": 0, "maxDelay": rng.choice(("1ms", "2s")), "maxRecords": rng.choice((2, 3, 5, 20))},
        "s3": {
            "bucket": "archive",
            "endpoint": "http://127.0.0.1:9",
            "region": "us-east-1",
            "partSize": rng.choice((1, 150, 400, 2000)),
        },
        "onDataLoss": "Continue" if config.has("continue") else "Fail",
    }
    if config.has("bad-records"):
        spec["errors"] = {"tolerance": "All", "onNullValue": "Ignore"}
    if config.has("dead-letters"):
        spec["errors"]["deadLetters"] = dead_letters_of(config)
    head = {"apiVersion": "s3sink.io/v1alpha1", "kind": "S3Sink", "metadata": {"name": "sink", "namespace": "default"}}
    return {**head, "spec": spec}


def _skips(config: SimulationConfig) -> list[dict[str, Any]]:
    """Some offsets of the topic-partitions, also of some that do not exist."""
    rng = config.skip_rng
    return [
        {"topic": topic, "partition": partition, "offset": offset}
        for topic in sorted(config.partitions)
        for partition in range(config.partitions[topic] + 1)
        for offset in sorted(rng.sample(range(config.first[topic] + 16), rng.choice((0, 1, 2, 4))))
    ]


def dead_letters_of(config: SimulationConfig) -> dict[str, Any]:
    """The section of the manifest: every third seed has a topic alone, every fifth has no transactions."""
    if not config.has("dead-letter-topic"):
        return {"prefix": DEAD_LETTERS}
    found = {"topic": TOPIC} if config.seed % 3 == 0 else {"topic": TOPIC, "prefix": DEAD_LETTERS}
    return found | ({"delivery": "AtLeastOnce"} if config.seed % 5 == 4 else {})


def _compression(config: SimulationConfig, rng: random.Random) -> str:
    """Zstd replaces Gzip in every other seed: so each seed draws the same other settings as without Zstd."""
    compression = rng.choice(("None", "None", "Gzip"))
    return "Zstd" if compression == "Gzip" and config.seed % 2 else compression


def _partitioner(rng: random.Random) -> dict[str, Any]:
    kind = rng.choice(("Default", "Default", "Field", "Field", "Time", "FieldAndTime"))
    found: dict[str, Any] = {"type": kind, "timezone": "UTC"}
    if kind in ("Field", "FieldAndTime"):
        found["fields"] = ["kind"]
    if kind in ("Time", "FieldAndTime"):
        found |= {"duration": "1h", "pathFormat": "'d'=YYYYMMdd/'h'=HH"}
        found["timestampExtractor"] = rng.choice(("Wallclock", "Record"))
    return found


def _rotation(rng: random.Random, partitioner: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {"flushSize": rng.choice((1, 2, 3, 5, 30))}
    if rng.random() < 0.25:
        found["maxBytes"] = rng.choice((100, 500))
    if "duration" in partitioner and rng.random() < 0.5:
        found["interval"] = rng.choice(("10m", "1h"))
        found["onPathChange"] = rng.random() < 0.5
    if rng.random() < 0.2:
        found["scheduleInterval"] = rng.choice(("1m", "1h"))
    if rng.random() < 0.3:
        found["maxOpenTime"] = rng.choice(("30s", "10m"))
    if rng.random() < 0.2:
        found["maxOpenObjects"] = 2
    if rng.random() < 0.4:
        found["scope"] = "Object"
    return found
