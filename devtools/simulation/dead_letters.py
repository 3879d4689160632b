"""What dead-letter objects have to contain: the rejected records of a run, in the form of the documentation."""

from __future__ import annotations

import json
from base64 import b64encode
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from devtools.simulation.registered_objects import Source
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.dead_letter_topic import DeadLetter
from sink_job.ledger.state import ClosedObject

DEAD_LETTERS = "rejected"
"""The first element of the keys of dead-letter objects."""

TOPIC = "dead-letters"
"""The topic for dead letters."""


def is_dead_letters(key: str) -> bool:
    """Whether an object holds dead letters, by its key."""
    return key.startswith(f"{DEAD_LETTERS}/")


@dataclass
class TopicAccount:
    """What has to be in the dead-letter topic, by generation. `repeats`: a record may be there several times.
    `alone`: rejected records are in no object beside it."""

    repeats: bool = False
    alone: bool = False
    produced: dict[int, dict[TopicPartition, set[int]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )
    stored: dict[int, dict[TopicPartition, set[int]]] = field(
        default_factory=lambda: defaultdict(lambda: defaultdict(set))
    )
    """The records whose bytes are in objects of the ledger's folder."""

    def takes(self, generation: int, letter: DeadLetter, source: Source, value: bytes) -> str | None:
        """What is wrong with a record of the topic; None if nothing is."""
        found = self.produced[generation][source.tp]
        is_repeated = source.offset in found
        found.add(source.offset)
        if is_repeated and not self.repeats:
            return f"{letter.id} is in the topic twice"
        return None if letter.value == value else f"{letter.id} has the value {letter.value!r} and not {value!r}"


@dataclass
class DeadLetterAccount:
    """The rejected records of a run."""

    _values: dict[tuple[TopicPartition, int], tuple[Source, bytes]] = field(default_factory=dict)
    topic: TopicAccount | None = None

    def produced(self, source: Source, value: bytes) -> None:
        self._values[source.tp, source.offset] = source, value

    def has(self, tp: TopicPartition, offset: int) -> bool:
        """Whether the record has to be in a dead-letter object."""
        return (tp, offset) in self._values

    def of_letter(self, letter: DeadLetter) -> tuple[Source, bytes]:
        """The record of a dead letter. Raises KeyError for one that is none of the run."""
        _, topic, partition, offset = letter.id.split("/")
        return self._values[TopicPartition(topic, int(partition)), int(offset)]

    def sources(self, body: bytes) -> list[Source]:
        """The records of an object. Raises KeyError for a line that is none of them."""
        places = ((TopicPartition(line["topic"], line["partition"]), line["offset"]) for line in _lines(body))
        return [self._values[place][0] for place in places]

    def difference(self, o: ClosedObject, settings: str, body: bytes) -> str | None:
        """What is wrong with the content or the parts of an object; None if nothing is."""
        parsed = ObjectSettings.model_validate_json(settings)
        infers = parsed.bare_values is not None
        clocks = [(each.start, each.end, each.clock) for each in o.sources]
        for line in _lines(body):
            source, value = self._values[TopicPartition(o.topic, o.partition), line["offset"]]
            clock = next((clock for start, end, clock in clocks if start <= source.offset < end), 0)
            known = clock > 0 and not (infers and line["reason"] == "UnknownSchema")  # a rebuild before the inference
            expected: dict[str, Any] = {
                "key": None,
                "headers": [],
                "timestamp": source.time,
                "topic": o.topic,
                "partition": o.partition,
                "offset": source.offset,
                "value": b64encode(value).decode(),
                "reason": "InvalidRecord" if known else "UnknownSchema",
                "message": line["message"] or "no message",
                "rejectedAt": abs(clock),
            }
            if line != expected:
                return f"{line} is not {expected}"
        sizes = _equal_parts(body, parsed.s3.part_size) if parsed.s3.equal_parts else _parts(body, parsed.s3.part_size)
        found = [part.size for part in o.parts]
        return None if sizes == found else f"its parts have {found} bytes and not {sizes}"


def _lines(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in body.splitlines()]


def _equal_parts(body: bytes, part_size: int) -> list[int]:
    """The sizes of the parts if all but the last have the part size."""
    return [len(body[start : start + part_size]) for start in range(0, len(body), part_size)]


def _parts(body: bytes, part_size: int) -> list[int]:
    """The sizes of the parts: each ends with the first line that reaches the part size."""
    sizes = [0]
    for line in body.splitlines(keepends=True):
        if sizes[-1] >= part_size:
            sizes.append(0)
        sizes[-1] += len(line)
    return sizes
