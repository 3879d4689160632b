"""Functions that Spark's workers run in tests. Workers import this module."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from sink_job.api.errors import DataError, TransientError
from sink_job.api.topic_partition import TopicPartition

Batches = Iterator[pa.RecordBatch]


def rows_as_json(tp: TopicPartition, given: bytes, batches: Batches) -> bytes:
    """Every record with all its columns, as JSON; bytes as text."""
    return json.dumps([_plain(row) for batch in batches for row in batch.to_pylist()]).encode()


def summary(tp: TopicPartition, given: bytes, batches: Batches) -> bytes:
    """The arguments of the call: topic-partition, input, number of records, first and last offset."""
    first = last = None
    count = 0
    for batch in batches:
        count += batch.num_rows
        first = batch["offset"][0].as_py() if first is None else first
        last = batch["offset"][-1].as_py()
    return json.dumps([str(tp), given.decode(), count, first, last]).encode()


def first_offset(tp: TopicPartition, given: bytes, batches: Batches) -> bytes:
    """The offset of the first record; the others are not read."""
    return str(next(batches)["offset"][0].as_py()).encode()


def digests(tp: TopicPartition, given: bytes, batches: Batches) -> bytes:
    """Each record's offset and the SHA-256 of its value."""
    read = (row for batch in batches for row in batch.to_pylist())
    return json.dumps([[row["offset"], hashlib.sha256(row["value"]).hexdigest()] for row in read]).encode()


def size_of_input(tp: TopicPartition, given: bytes, batches: Batches) -> bytes:
    return str(len(given)).encode()


def reject(tp: TopicPartition, given: bytes, batches: Batches) -> bytes:
    raise DataError(tp.topic, tp.partition, 7, "not JSON")


def fail_transiently(attempts: Path, tp: TopicPartition, given: bytes, batches: Batches) -> bytes:
    """Always fails, and appends a byte to `attempts` for each attempt."""
    with attempts.open("a") as log:
        log.write("x")
    raise TransientError("S3 is slow")


def raise_bug(tp: TopicPartition, given: bytes, batches: Batches) -> bytes:
    return bytes(1 // (tp.partition - tp.partition))


def kill_self(tp: TopicPartition, given: bytes, batches: Batches) -> bytes:
    os.kill(os.getpid(), signal.SIGKILL)
    return b""


def start_and_block(started: Path, tp: TopicPartition, given: bytes, batches: Batches) -> bytes:
    started.touch()
    threading.Event().wait()
    return b""


def count_rest(batches: Batches) -> bytes:
    return str(sum(batch.num_rows for batch in batches)).encode()


def count(tp: TopicPartition, given: bytes, batches: Batches) -> bytes:
    """The number of records."""
    return count_rest(batches)


def fail_first(how: str, attempts: Path | str, tp: TopicPartition, given: bytes, batches: Batches) -> bytes:
    """Fails after the first batch of the first attempt; later attempts return the number of records."""
    if not Path(attempts).exists():
        next(batches)
        Path(attempts).touch()
        if how == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        raise ValueError("in the first attempt")
    return count_rest(batches)


def kill_executor_first(attempts: str, tp: TopicPartition, given: bytes, batches: Batches) -> bytes:
    """Kills the JVM of its executor after the first batch of the first attempt; later attempts return the number of
    records. The parent of a worker is the daemon, whose parent is the JVM."""
    if not Path(attempts).exists():
        next(batches)
        Path(attempts).touch()
        status = Path(f"/proc/{os.getppid()}/status").read_text()
        os.kill(int(status.partition("PPid:")[2].split()[0]), signal.SIGKILL)
    return count_rest(batches)


def raise_after_first(tp: TopicPartition, given: bytes, batches: Batches) -> bytes:
    """Fails after the first batch of each attempt."""
    next(batches)
    raise ValueError("after a batch")


def reject_after_first(tp: TopicPartition, given: bytes, batches: Batches) -> bytes:
    raise DataError(tp.topic, tp.partition, next(batches)["offset"][0].as_py(), "not JSON")


def pause_after_first(started: Path, resumed: Path, tp: TopicPartition, given: bytes, batches: Batches) -> bytes:
    """Waits after the first batch until `resumed` exists; returns the number of records."""
    first = next(batches)
    started.touch()
    while not resumed.exists():
        time.sleep(0.02)
    return str(first.num_rows + int(count_rest(batches))).encode()


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value
