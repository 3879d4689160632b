"""A simulated schema registry, and the Avro records of a run with one.

All topics have the same versions of the schema; the id of a version is `FIRST_ID` + version. The product's resolver
asks `SimulatedRegistry` in place of an HTTP client.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import fastavro
import msgspec

from devtools.simulation import containers
from devtools.simulation.scheduler import Actor, Scheduler
from sink_job.api.errors import AccessDenied, TransientError
from sink_job.connect.schema import RegisteredSchema

MODES = ("None", "Separate", "Backward", "Forward", "Full")
FIRST_ID = 100

_TEXT, _NOTE = "string", ["null", "string"]
_FIELDS: Mapping[int, Mapping[str, Mapping[str, Any]]] = {
    1: {"at": {"type": _TEXT}, "kind": {"type": _TEXT}, "pad": {"type": _TEXT}, "count": {"type": "int"}},
    2: {
        "at": {"type": _TEXT},
        "kind": {"type": _TEXT},
        "pad": {"type": _TEXT},
        "count": {"type": "int"},
        "note": {"type": _NOTE, "default": None},
    },
    3: {
        "at": {"type": _TEXT},
        "more": {"type": _TEXT, "default": "m"},
        "kind": {"type": _TEXT},
        "pad": {"type": _TEXT},
        "count": {"type": "int"},
    },
    4: {
        "at": {"type": _TEXT},
        "kind": {"type": _TEXT},
        "count": {"type": "long"},
        "note": {"type": _NOTE, "default": None},
        "more": {"type": _TEXT, "default": "n"},
    },
}
"""The fields of each version. Values are projected in both directions but to version 4 only upwards: it widens `count`
and lacks `pad`."""

FAULTS = ("down", "slow", "denied", "forgets", "swaps", "renumbers")
"""No answer, a late answer, 403, an id that is not known for a while, and another schema or another version for an id
of which the ledger has a copy: an earlier lie cannot be seen."""

FAULT_RATE = 0.25
LATE_MS = (0, 0, 0, 1_000, 20_000, 300_000)
"""The time after which the registry knows the id of a record that was produced before."""


def text_of(version: int) -> str:
    """The schema of a version."""
    fields = [{"name": name, **each} for name, each in _FIELDS[version].items()]
    return json.dumps({"type": "record", "name": "Value", "namespace": "test", "fields": fields})


_PARSED = {version: fastavro.parse_schema(json.loads(text_of(version))) for version in _FIELDS}


def change_output(spec: dict[str, Any], rng: random.Random) -> None:
    """Changes a manifest to records with a registry, one of the modes and one of the outputs."""
    output = rng.choice(("Json", "Avro", "Parquet"))
    found: dict[str, Any] = {"converter": "Avro", "output": output, "registry": {"url": ["http://127.0.0.1:9"]}}
    if output != "Json":
        found["compression"] = {"codec": rng.choice(containers.CODECS[output])}
        found |= containers.block_size(output, rng)
        spec["s3"]["partSize"] = rng.choice((200, 500, 2000, 2000, 5000))
    else:
        found["compression"] = spec["format"]["compression"]
    spec["format"] = found
    spec["schemaCompatibility"] = rng.choice(MODES)
    spec["rotation"]["flushSize"] = rng.choice((2, 5, 30, 30))


def values_of(version: int, fields: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """The value of a record: those of `fields` that the version has, and others."""
    others = {"count": rng.choice((0, 1, -7)), "note": rng.choice((None, "", "n")), "more": rng.choice(("", "x"))}
    return {name: {**fields, **others}[name] for name in _FIELDS[version]}


def in_wire_format(version: int, value: dict[str, Any]) -> bytes:
    """The value in Avro, in Confluent's wire format."""
    file = io.BytesIO()
    fastavro.schemaless_writer(file, _PARSED[version], value)
    return b"\0" + (FIRST_ID + version).to_bytes(4, "big") + file.getvalue()


def version_of(value: bytes) -> int:
    """The version of a value in wire format."""
    return int.from_bytes(value[1:5], "big") - FIRST_ID


def projected(value: Mapping[str, Any], source: int, target: int) -> dict[str, Any] | None:
    """A value of the version `source` under the version `target`; None if it cannot be projected."""
    ours, theirs = _FIELDS[target], _FIELDS[source]
    for name, each in ours.items():
        widens = name in theirs and (theirs[name]["type"], each["type"]) == ("int", "long")
        if name in theirs and theirs[name]["type"] != each["type"] and not widens:
            return None
        if name not in theirs and "default" not in each:
            return None
    return {name: value[name] if name in theirs else each["default"] for name, each in ours.items()}


def contradiction(mode: str, first: int, version: int) -> str | None:
    """Why an object whose first record has the version `first` cannot have one of `version`; None if it can."""
    if version == first:
        return None
    if mode in ("None", "Separate"):
        return "schemas are not mixed"
    if (version < first) if mode == "Forward" else (version > first):
        return f"a record {'older' if mode == 'Forward' else 'newer'} than the first one closes the object"
    return None if projected(dict.fromkeys(_FIELDS[version]), version, first) is not None else "it cannot be projected"


@dataclass
class RegistryState:
    """The registry of a run. `known_from` are the times from which it knows a version, `forgotten_until` those until
    which it does not. `lies`: about each id of which the ledger has a copy."""

    rng: random.Random
    faulty: bool
    newest: int = 1
    lies: bool = False
    known_from: dict[int, int] = field(default_factory=lambda: {1: 0})
    forgotten_until: dict[int, int] = field(default_factory=dict)

    def produce(self, now: int) -> int:
        """The version of a new record. Sometimes it is a new one, which the registry may know later."""
        if self.newest < len(_FIELDS) and self.rng.random() < 0.12:
            self.newest += 1
            self.known_from[self.newest] = now + (self.rng.choice(LATE_MS) if self.faulty else 0)
        return self.newest if self.rng.random() < 0.7 else self.rng.randint(1, self.newest)


@dataclass
class SimulatedRegistry:
    """The registry as one driver sees it (`sink_job.registry.base.SchemaRegistry`). `is_copied` returns whether the
    ledger has a copy of an id in a topic; `deceived` is called when the registry has returned another schema than
    before and the driver has to notice it."""

    state: RegistryState
    scheduler: Scheduler
    trace: Callable[[str], None]
    is_calm: Callable[[], bool]
    is_copied: Callable[[str, str], bool]
    deceived: Callable[[], None]
    compares_versions: bool
    url: str = "http://registry"

    def fetch(self, topic: str, schema_id: str, *, is_key: bool = False) -> RegisteredSchema | None:
        """As `SchemaRegistry.fetch`."""
        actor, version = self.scheduler.current, int(schema_id) - FIRST_ID
        assert actor is not None, "a driver asks"
        self.scheduler.step()
        if self.state.lies:
            fault: str | None = self.state.rng.choice(("swaps", "renumbers"))
        else:
            fault = None if self.is_calm() or not self.state.faulty else self._draw(topic, schema_id)
        if fault is not None:
            self.trace(f"{actor.name}: the registry: {fault} for {topic} {schema_id}")
        found = self._answer(actor, topic, version, fault)
        self.trace(f"{actor.name}: the registry: {topic} {schema_id} -> {found and found.version}")
        return found

    def close(self) -> None:
        """Does nothing."""

    def _draw(self, topic: str, schema_id: str) -> str | None:
        """The fault of an answer, if any. An id with a copy is rarely asked for, so its answers have more faults."""
        rate = 2 * FAULT_RATE if self.is_copied(topic, schema_id) else FAULT_RATE
        return self.state.rng.choice(FAULTS) if self.state.rng.random() < rate else None

    def _answer(self, actor: Actor, topic: str, version: int, fault: str | None) -> RegisteredSchema | None:
        if version not in _FIELDS:
            return None
        state, now, schema_id = self.state, self.scheduler.now, str(FIRST_ID + version)
        found = RegisteredSchema(schema_id, "AVRO", text_of(version), subject=f"{topic}-value", version=version)
        if fault == "slow":
            self.scheduler.sleep(state.rng.choice((1_000, 20_000, 120_000)))
        elif fault == "down":
            self.scheduler.sleep(120_000)
            actor.faults.add("registry")
            raise TransientError("the schema registry http://registry did not answer for 120 s")
        elif fault == "denied":
            actor.faults.add("registry-denied")
            raise AccessDenied("the schema registry http://registry: HTTP 403")
        elif fault == "forgets":
            state.forgotten_until[version] = now + state.rng.choice((1_000, 30_000, 300_000))
        elif fault in ("swaps", "renumbers") and self.is_copied(topic, schema_id):
            return self._lie(found, fault)
        absent = max(state.known_from.get(version, 0), state.forgotten_until.get(version, 0))
        if absent > now and not self.is_calm():
            actor.faults.add("registry")
            return None
        return found

    def _lie(self, found: RegisteredSchema, fault: str) -> RegisteredSchema:
        version = int(found.id) - FIRST_ID
        if fault == "swaps":
            self.deceived()
            return msgspec.structs.replace(found, text=text_of(version % len(_FIELDS) + 1))
        if self.compares_versions:
            self.deceived()
        return msgspec.structs.replace(found, version=version + self.state.rng.choice((1, 7)))
