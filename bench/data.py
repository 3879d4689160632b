"""The content of the topics: JSON values of one size per topic, produced once and kept.

A value reads `{"id": 17, "path": "p17", "text": "..."}`, padded with words from a small vocabulary to its exact size;
it compresses about as well as logs. Eight partitions, no keys, uncompressed batches; record times run over 48 hours.
"""

from __future__ import annotations

import contextlib
import io
import itertools
import json
import random
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import fastavro
from confluent_kafka import KafkaException, Producer

from devtools.topics import Topics

PARTITIONS = 8
PATHS = 2_000
FIRST_MS = 1_700_000_000_000 // 3_600_000 * 3_600_000
SPAN_MS = 48 * 3_600_000
_TEXTS = 997


@dataclass(frozen=True)
class Case:
    """A topic with values of `size` bytes, `records` of them in all partitions."""

    name: str
    size: int
    records: int
    is_avro: bool = field(default=False, kw_only=True)
    """Whether the values are Avro data with Confluent's wire format and the schema id 1; else they are JSON."""
    has_invalid: bool = field(default=False, kw_only=True)
    """Whether every tenth value of a partition is not JSON."""

    @property
    def topic(self) -> str:
        kind = "avro-" if self.is_avro else "invalid-" if self.has_invalid else ""
        return f"bench-{kind}{self.name}-{self.records}"

    def values(self) -> Iterator[bytes]:
        """The values of all partitions in turn, without an end."""
        made = avro_values(self.size) if self.is_avro else values(self.size)
        if not self.has_invalid:
            return made
        invalid = b"x" * self.size
        return (invalid if number // PARTITIONS % 10 == 9 else value for number, value in enumerate(made))

    @property
    def bytes(self) -> int:
        """The bytes of all values."""
        return self.size * self.records

    def scaled(self, factor: float) -> Case:
        """The same case with fewer records."""
        return replace(self, records=int(self.records * factor) // PARTITIONS * PARTITIONS)


Cases = Mapping[str, Case]

CASES: Cases = {
    case.name: case for case in (Case("100b", 100, 4_000_000), Case("1k", 1_000, 800_000), Case("10k", 10_000, 60_000))
}


def fill(bootstrap: str, cases: Cases) -> None:
    """Produces the topics of `cases` that are missing or incomplete."""
    topics = Topics(bootstrap)
    held = set(topics.admin.list_topics(timeout=30).topics)
    for case in cases.values():
        if case.topic in held and _held(topics, case.topic) != case.records:
            topics.delete(case.topic)
            held.discard(case.topic)
        if case.topic not in held:
            print(f"producing {case.bytes / 1e9:.2f} GB of {case.size} B values ...", file=sys.stderr, flush=True)
            create(topics, case.topic, PARTITIONS)
            _produce(bootstrap, case)


def create(topics: Topics, name: str, partitions: int) -> None:
    """Creates a topic; returns when its partitions accept records."""
    with contextlib.suppress(KafkaException):
        topics.create(name, partitions=partitions)
    _held(topics, name)


def _held(topics: Topics, name: str) -> int:
    """The number of records in a topic. Retries, since leader election takes a while on a busy machine."""
    for _ in range(60):
        with contextlib.suppress(KafkaException):
            return sum(topics.ends(name).values())
        time.sleep(0.5)
    raise RuntimeError(f"no leader for the partitions of {name} after 30 s")


def _produce(bootstrap: str, case: Case) -> None:
    producer = Producer(
        {
            "bootstrap.servers": bootstrap,
            "linger.ms": 50,
            "batch.size": 1 << 20,
            "batch.num.messages": 100_000,
            "queue.buffering.max.messages": 500_000,
            "queue.buffering.max.kbytes": 256 << 10,
        }
    )
    per_partition = case.records // PARTITIONS
    for number, value in zip(range(case.records), case.values(), strict=False):
        partition, offset = number % PARTITIONS, number // PARTITIONS
        at = FIRST_MS + offset * SPAN_MS // per_partition
        while True:
            try:
                producer.produce(case.topic, value, partition=partition, timestamp=at)
                break
            except BufferError:
                producer.poll(0.2)
    if left := producer.flush(300):
        raise RuntimeError(f"{left} records were not acknowledged")


def values(size: int, texts: int = _TEXTS) -> Iterator[bytes]:
    """Endless JSON objects of exactly `size` bytes, whose texts repeat after `texts` objects."""
    pool = _texts(size, texts)
    for number in itertools.count():
        head = b'{"id": %d, "path": "p%d", "text": "' % (number, number // PARTITIONS % PATHS)
        yield head + pool[number % texts][: size - len(head) - 2] + b'"}'


AVRO_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Value",
    "fields": [{"name": "id", "type": "long"}, {"name": "path", "type": "string"}, {"name": "text", "type": "string"}],
}
JSON_SCHEMA = json.dumps(
    {
        "title": "Value",
        "type": "object",
        "properties": {"id": {"type": "integer"}, "path": {"type": "string"}, "text": {"type": "string"}},
        "required": ["id", "path", "text"],
    }
)
"""The schema of the values, as Avro and as JSON Schema."""


def avro_values(size: int) -> Iterator[bytes]:
    """The same content as Avro data with Confluent's wire format, of exactly `size` bytes."""
    pool, schema = _texts(size, _TEXTS), fastavro.parse_schema(AVRO_SCHEMA)
    for number in itertools.count():
        item = {"id": number, "path": f"p{number // PARTITIONS % PATHS}", "text": ""}
        text = pool[number % _TEXTS]
        item["text"] = text[: size - 32].decode()
        item["text"] = text[: 2 * size - 32 - len(_in_wire_format(schema, item))].decode()
        yield _in_wire_format(schema, item)


def _in_wire_format(schema: Any, item: dict[str, Any]) -> bytes:
    out = io.BytesIO(b"\0\0\0\0\1")
    out.seek(5)
    fastavro.schemaless_writer(out, schema, item)
    return out.getvalue()


def _texts(size: int, count: int) -> list[bytes]:
    rng = random.Random(3)
    vocabulary = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9))) for _ in range(2_000)]
    texts = []
    for _ in range(count):
        words: list[str] = []
        length = 0
        while length < size:
            words.append(rng.choice(vocabulary) if rng.random() < 0.7 else str(rng.randrange(10**9)))
            length += len(words[-1]) + 1
        texts.append(" ".join(words).encode())
    return texts
