"""Records without a value (`errors.onNullValue: Write`): the settings of a run that has them, and what their envelopes
must contain.

The objects are read without the product's code.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator
from typing import Any

import fastavro
import pyarrow.parquet as pq

from devtools.simulation import containers
from sink_job.api.topic_partition import TopicPartition

TOMBSTONES = "gone"
"""The path of records without a value in some of the manifests."""
JSON_NULL = b"null"
"""A value that is null for its converter, and not for Kafka."""


def write_nulls(spec: dict[str, Any], rng: random.Random) -> None:
    """Changes a manifest so that records without a value are written."""
    spec.setdefault("errors", {})["onNullValue"] = "Write"
    if rng.random() < 0.3:
        spec["errors"]["tombstonePath"] = TOMBSTONES
    spec["format"]["envelope"] = True


def null_value(rng: random.Random) -> tuple[bool, bytes | None]:
    """Whether a record has no value, and which null it is: that of Kafka or that of JSON."""
    return rng.random() < 0.3, rng.choice((None, None, JSON_NULL))


def envelopes(key: str, body: bytes) -> Iterator[tuple[TopicPartition, int, int, str | None]]:
    """For each record of an object its place in Kafka, its timestamp in ms, and its value as by `canonical`; None if it
    has none. Raises the errors of the libraries, KeyError and ValueError."""
    for row in _rows(key, body):
        tp, offset, timestamp = TopicPartition(row["topic"], row["partition"]), row["offset"], row["timestamp"]
        value = row.get("value")
        if row["valueIsNull"]:
            if value is not None:
                raise ValueError(f"the record at offset {offset} has a value, and valueIsNull is true")
            yield tp, offset, _ms(timestamp), None
        else:
            yield tp, offset, _ms(timestamp), containers.canonical(value and containers.restored(value))


def _rows(key: str, body: bytes) -> Iterator[Any]:
    file = io.BytesIO(body)
    if key.endswith(".avro"):
        yield from fastavro.reader(file)
    elif key.endswith(".parquet"):
        yield from pq.ParquetFile(file).read().to_pylist()
    else:
        yield from map(json.loads, body.splitlines())


def _ms(timestamp: Any) -> int:
    return timestamp if isinstance(timestamp, int) else round(timestamp.timestamp() * 1000)
