"""The records of a dead-letter topic, from the lines of a dead-letter object."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from sink_job.api.enums import ConverterType
from sink_job.engine.dead_letter_topic import ID_HEADER, DeadLetter

BATCH_BYTES: Final = 1 << 20
"""Size of the lines that are produced with one call."""

VALUE_OMITTED: Final = "s3sink.value.omitted"
"""Header of a record without its value, which is too large for the topic: the size of the value in bytes."""

KEY_OMITTED: Final = "s3sink.key.omitted"
"""Header of a record that is too large without its value, too: it has neither key nor headers. The size of both."""

_PREFIX: Final = "__connect.errors."
_TIMESTAMP: Final = "s3sink.timestamp"
_RECORD_OVERHEAD: Final = 61 + 36
"""Maximum bytes of a batch of one record beside key, value and headers."""
_HEADER_OVERHEAD: Final = 10
_MAX_MESSAGE: Final = 2_000
"""Maximum characters of a message in a record that is shortened."""

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


class RecordFormat:
    """How the lines of dead-letter objects become records of a topic."""

    def __init__(self, sink_id: str, converter: ConverterType, *, errors: bool, max_bytes: int) -> None:
        """`errors`: with the headers of Kafka Connect. `max_bytes`: the maximum size of a record."""
        self._sink_id = sink_id
        self._converter = converter
        self._errors = errors
        self._max_bytes = max_bytes

    def batches(self, lines: Iterable[bytes], produced: frozenset[str] = frozenset()) -> Iterator[list[DeadLetter]]:
        """The records of lines, without those whose id is in `produced`."""
        batch: list[DeadLetter] = []
        size = 0
        for line in lines:
            record = self.record(line)
            if record.id in produced:
                continue
            batch.append(record)
            size += len(line)
            if size >= BATCH_BYTES:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch

    def record(self, line: bytes) -> DeadLetter:
        """The record of a line, shortened if it is too large."""
        fields = _decode(line)
        key, value = _bytes(fields["key"]), _bytes(fields["value"])
        given = [(each["name"], _bytes(each["value"])) for each in fields["headers"]]
        own = self._headers(fields)
        found = DeadLetter(fields["rejectedAt"], key, value, [*given, *own])
        if _size(found) <= self._max_bytes:
            return found
        omitted = [(VALUE_OMITTED, str(len(value or b"")).encode())]
        found = DeadLetter(fields["rejectedAt"], key, None, [*given, *own, *omitted])
        if _size(found) <= self._max_bytes:
            return found
        size = len(key or b"") + sum(len(name.encode()) + len(each or b"") for name, each in given)
        short = [(name, each[:_MAX_MESSAGE]) for name, each in own]
        omitted.append((KEY_OMITTED, str(size).encode()))
        found = DeadLetter(fields["rejectedAt"], None, None, [*short, *omitted])
        if _size(found) <= self._max_bytes:
            return found
        return found._replace(headers=[own[0], *omitted])  # the id: a search needs it

    def _headers(self, fields: dict[str, Any]) -> list[tuple[str, bytes]]:
        topic, partition, offset = fields["topic"], fields["partition"], fields["offset"]
        found = {ID_HEADER: f"{self._sink_id}/{topic}/{partition}/{offset}"}
        if fields["timestamp"] is not None:
            found[_TIMESTAMP] = str(fields["timestamp"])
        if self._errors:
            error = f"s3sink.{fields['reason']}"
            context = {
                "topic": topic,
                "partition": partition,
                "offset": offset,
                "connector.name": self._sink_id,
                "task.id": 0,
                "stage": "TASK_PUT" if fields["reason"] == "InvalidPath" else "VALUE_CONVERTER",
                "class.name": f"s3sink.{self._converter}",
                "exception.class.name": error,
                "exception.message": fields["message"],
                "exception.stacktrace": f"{error}: {fields['message']}",
            }
            found |= {f"{_PREFIX}{name}": str(value) for name, value in context.items()}
        return [(name, text.encode()) for name, text in found.items()]


def lines_of(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The lines of an object from its chunks."""
    rest = b""
    for chunk in chunks:
        *lines, rest = (rest + chunk).split(b"\n")
        yield from lines
    if rest:
        yield rest


def first_rejected(lines: Iterable[bytes]) -> int:
    """The earliest time at which a record of the lines was rejected, in ms."""
    return min((int(_decode(line)["rejectedAt"]) for line in lines), default=0)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def _size(record: DeadLetter) -> int:
    """An upper bound of the size of a record in a batch of its own."""
    headers = sum(_HEADER_OVERHEAD + len(name.encode()) + len(value or b"") for name, value in record.headers)
    return _RECORD_OVERHEAD + len(record.key or b"") + len(record.value or b"") + headers
