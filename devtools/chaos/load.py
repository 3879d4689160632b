"""Producers for a sink under test: plain and transactional, with aborted transactions, late timestamps and idle phases.

The content is a function of the seed. Its offsets depend on timing, so the comparison reads them from Kafka.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from confluent_kafka import KafkaException, Producer

from devtools.topics import Record

COUNTRIES = ("DE", "FR", "US", "JP", "a/b", "..", "São Tomé", "")
"""Values for Field paths: some need percent-encoding, one is empty."""

_SECONDS = 60.0
_TRANSACTION_MS = 20_000
_HOUR_MS = 3_600_000
_TRICKLE_SECONDS = 0.4


@dataclass(frozen=True, kw_only=True)
class Burst:
    """`records` over about `seconds`, to the partitions `active`, with values of `smallest` to `largest` bytes.

    `transactional` is the share of batches in transactions, `aborted` the share of those that are aborted; record
    times are up to `late_hours` before now, out of order. `nulls` and `broken` are fractions of records. With a
    registry the producers choose one of the `versions` of the schema for `run` records at a time.
    """

    records: int
    seconds: float
    active: tuple[int, ...]
    smallest: int = 80
    largest: int = 400
    transactional: float = 0.3
    aborted: float = 0.25
    late_hours: float = 3.0
    nulls: float = 0.0
    broken: float = 0.0
    versions: tuple[int, ...] = (1,)
    run: int = 50


Values = Callable[[random.Random, str, int, Burst], bytes | None]
"""Makes the value of an identity and a time in ms."""


def base_fields(rng: random.Random, identity: str, at_ms: int, burst: Burst) -> dict[str, Any]:
    """The fields that all values have."""
    text = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat(timespec="milliseconds")
    fields: dict[str, Any] = {
        "id": identity,
        "user": {"country": rng.choice(COUNTRIES), "tier": rng.randrange(3)},
        "vip": rng.random() < 0.5,
        "at": rng.choice((at_ms, str(at_ms), text)),
    }
    size = int(burst.smallest * (burst.largest / burst.smallest) ** rng.random())
    fields["pad"] = "x" * max(0, size - 120)
    return fields


def value(rng: random.Random, identity: str, at_ms: int, burst: Burst) -> bytes | None:
    """A JSON value with fields for Field and RecordField paths; sometimes None or invalid JSON, if the burst requests
    it."""
    drawn = rng.random()
    if drawn < burst.nulls:
        return None
    if drawn < burst.nulls + burst.broken:
        return b'{"id":"' + identity.encode() + b'", broken'
    fields = base_fields(rng, identity, at_ms, burst)
    return json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()


def batches(rng: random.Random, name: str, burst: Burst, now_ms: int, values: Values = value) -> Iterator[list[Record]]:
    """The burst's records in batches, then small batches without end.

    Each record's identity occurs once.
    """
    sent = 0
    while True:
        left = burst.records - sent
        count = min(rng.randint(1, max(2, burst.records // 12)), left) if left > 0 else rng.randint(1, 4)
        batch = []
        # Activity also grows within a burst.
        active = burst.active[: max(1, len(burst.active) // 5)] if sent < burst.records // 3 else burst.active
        for n in range(sent, sent + count):
            at = now_ms - int(rng.random() ** 3 * burst.late_hours * _HOUR_MS)
            body = values(rng, f"{name}-{n:06d}", at, burst)
            key = None if body is not None and rng.random() < 0.5 else b"key-%d" % rng.randrange(50)
            batch.append(Record(value=body, key=key, partition=rng.choice(active), timestamp=at))
        yield batch
        sent += count


class Loader:
    """Produces bursts to one topic in a thread, and a few more records until the burst is finished.

    A failed batch is not repeated; its records may or may not be in Kafka.
    """

    def __init__(self, bootstrap: str, topic: str, values: Values = value) -> None:
        self.topic = topic
        self._values = values
        self.counts: Counter[str] = Counter()
        self._bootstrap = bootstrap
        self._thread: threading.Thread | None = None
        self._plain: Producer | None = None
        self._transactional: Producer | None = None
        self._enough = threading.Event()
        self._stop = threading.Event()

    def begin(self, name: str, seed: int, burst: Burst) -> None:
        """Starts a burst; finishes the previous one first."""
        self.finish()
        self._enough.clear()
        self._thread = threading.Thread(target=self._run, args=(name, seed, burst), name="load", daemon=True)
        self._thread.start()

    @property
    def busy(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def finish(self) -> None:
        """Waits until all records of the burst are sent; no more follow."""
        self._enough.set()
        if self._thread is not None:
            self._thread.join()
            self._thread = None

    def settle(self) -> None:
        """Finishes the burst and aborts a transaction that a fault has left open."""
        self.finish()
        end = time.monotonic() + _SECONDS
        while self._transactional is None and self.counts["transactions"] and time.monotonic() < end:
            self._in_transaction([], commit=True)

    def close(self) -> None:
        """Ends the burst without waiting for its records."""
        self._stop.set()
        self.finish()
        self._plain = self._transactional = None

    def _run(self, name: str, seed: int, burst: Burst) -> None:
        rng = random.Random(seed)
        started = time.monotonic()
        sent = 0
        for batch in batches(rng, name, burst, time.time_ns() // 1_000_000, self._values):
            if self._stop.is_set() or (sent >= burst.records and self._enough.is_set()):
                return
            if rng.random() < burst.transactional:
                self._in_transaction(batch, commit=rng.random() >= burst.aborted)
            else:
                self._send_plain(batch)
            sent += len(batch)
            if sent >= burst.records:
                self._enough.wait(_TRICKLE_SECONDS)
            else:
                self._stop.wait(max(0.0, started + burst.seconds * sent / burst.records - time.monotonic()))

    def _send_plain(self, batch: list[Record]) -> None:
        try:
            if self._plain is None:
                self._plain = Producer(self._settings())
            self._send(self._plain, batch)
            if self._plain.flush(_SECONDS):
                raise RuntimeError("not acknowledged")
            self.counts["plain batches"] += 1
            self.counts["produced"] += len(batch)
        except (KafkaException, RuntimeError):
            self.counts["failed batches"] += 1
            self._plain = None

    def _in_transaction(self, batch: list[Record], *, commit: bool) -> None:
        try:
            if self._transactional is None:
                identity = {"transactional.id": f"{self.topic}-load", "transaction.timeout.ms": _TRANSACTION_MS}
                self._transactional = Producer({**self._settings(), **identity})
                self._transactional.init_transactions(_SECONDS)
            producer = self._transactional
            producer.begin_transaction()
            self._send(producer, batch)
            self.counts["transactions"] += 1
            if commit:
                producer.commit_transaction(_SECONDS)
                self.counts["produced"] += len(batch)
            else:
                producer.flush(_SECONDS)
                producer.abort_transaction(_SECONDS)
                self.counts["aborted transactions"] += 1
        except (KafkaException, RuntimeError):
            self.counts["failed batches"] += 1
            self._transactional = None

    def _send(self, producer: Producer, batch: list[Record]) -> None:
        for record in batch:
            assert record.timestamp is not None
            producer.produce(
                self.topic, record.value, record.key, record.partition, timestamp=record.timestamp, on_delivery=_ignored
            )
            producer.poll(0)

    def _settings(self) -> dict[str, Any]:
        return {
            "bootstrap.servers": self._bootstrap,
            "log_level": 0,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 5,
            "reconnect.backoff.max.ms": 500,
        }


def _ignored(error: object, message: object) -> None:
    """Ignores delivery results: the comparison reads Kafka later."""
