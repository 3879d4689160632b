"""A connector before the sink: its group's offsets, its objects, and a task of it that still runs when drivers start.

Runs with the feature `previous-writer` have it. The objects behind the group's offsets have the records of Kafka, and
the first start accepts them. The task has one unfinished upload, which it completes at any time.
"""

from __future__ import annotations

import hashlib
import json
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from devtools.simulation.store import Stored
from sink_job.api.spec import Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.types import Engine
from sink_job.ledger.first_claim.previous_writer import PreviousWriter
from sink_job.maintenance.position.finder import find_position
from sink_job.maintenance.position.start import has_ledger
from sink_job.s3.checksums import crc64nvme

if TYPE_CHECKING:
    from devtools.simulation.simulation import Simulation

COMPLETION_RATE = 0.03
SIZES = (1, 2, 3)
NOT_WITH = (
    "bad-records",
    "dead-letters",
    "dead-letter-topic",
    "containers",
    "registry",
    "null-values",
    "skips",
    "repairs",
    "reset",
    "take-over",
    "retention",
    "data-loss",
    "reader",
    "group-back",
    "group-forward",
    "group-forgotten",
    "foreign-etags",
)
"""Features that no run with a connector has: it writes JSON lines, and other programs leave its objects and its
group's offsets alone until the sink has started."""


@dataclass(frozen=True)
class ConnectorObject:
    """An object of the connector: its topic-partition and the offsets of its records."""

    tp: TopicPartition
    offsets: tuple[int, ...]


class PreviousConnector:
    """What the connector has written."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._rng = random.Random(f"{simulation.config.seed}/previous-writer")
        self.committed: dict[TopicPartition, int] = {}
        self.objects: dict[str, ConnectorObject] = {}
        self.completed = False
        self._upload: tuple[str, str, ConnectorObject] | None = None

    def write(self) -> None:
        """Writes the objects and the offsets of the group, before the first driver starts."""
        simulation = self._simulation
        for tp in sorted(simulation.kafka.logs):
            log = simulation.kafka.logs[tp]
            offsets = [offset for offset in simulation.oracle.accepted[tp] if offset < log.stable]
            chosen = self._rng.randint(0, len(offsets))
            end = self._rng.randint(chosen, len(offsets))
            self.committed[tp] = offsets[chosen] if chosen < len(offsets) else log.stable
            simulation.kafka.group[tp] = self.committed[tp], "", False
            if chosen:
                self._put(ConnectorObject(tp, tuple(offsets[:chosen])))
            at = chosen
            while at < end:
                size = min(self._rng.choice(SIZES), end - at)
                self._put(ConnectorObject(tp, tuple(offsets[at : at + size])))
                at += size
            if end < len(offsets) and self._upload is None and self._rng.random() < 0.7:
                self._begin(ConnectorObject(tp, tuple(offsets[end : end + self._rng.choice(SIZES)])))

    def _key(self, o: ConnectorObject) -> str:
        return f"topics/{o.tp.topic}/partition={o.tp.partition}/{o.tp.topic}+{o.tp.partition}+{o.offsets[0]:010d}.json"

    def _put(self, o: ConnectorObject) -> None:
        """Puts the object, its fields in another order than the records have."""
        simulation, key = self._simulation, self._key(o)
        values = simulation.kafka.logs[o.tp].values
        rows = [json.dumps(dict(reversed(json.loads(values[offset] or b"").items()))) for offset in o.offsets]
        body = "".join(f"{row}\n" for row in rows).encode()
        etag = f'"{hashlib.md5(body, usedforsecurity=False).hexdigest()}"'
        simulation.store.put_back(key, Stored(body, etag, crc64nvme(body), simulation.store.second()))
        self.objects[key] = o
        simulation.trace(f"the connector has written {key} with the offsets {o.offsets}")

    def _begin(self, o: ConnectorObject) -> None:
        key = self._key(o)
        self._upload = key, self._simulation.store.create_upload(key), o
        self._simulation.trace(f"the connector has started an upload of {key}")

    def step(self) -> None:
        """A task that still runs completes its upload at some step, unless it was aborted."""
        if self._upload is not None and self._rng.random() < COMPLETION_RATE:
            self.complete()

    def complete(self) -> None:
        """The task completes its upload. It learns that it was aborted."""
        if self._upload is None:
            return
        key, upload_id, o = self._upload
        self._upload = None
        if self._simulation.store.uploads.pop(upload_id, None) is None:
            self._simulation.trace(f"the upload of the connector at {key} was aborted")
            return
        self._put(o)
        self.completed = True

    def position(self, sink: Sink, engine: Engine) -> PreviousWriter | None:
        """What a first claim records; None if the sink has a ledger. Raises LedgerLost for objects that differ."""
        simulation = self._simulation
        if has_ledger(sink, simulation.s3):
            return None
        found = find_position(sink, simulation.s3, simulation.s3.settings, simulation.admin, engine)
        return found.previous_writer()
