"""The work of one task in its Python worker, without Kafka and Spark: `python -m bench.one_task --only 1k`.

Another process sends the frames of the reader over a Unix socket; the task checks, rotates, assembles and uploads its
parts to `null_s3`. The figures are CPU seconds of this process per GB of values, the best of several turns: other
processes on the machine can only make a turn slower. `receive` only receives the frames.
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import itertools
import json
import multiprocessing
import os
import pstats
import resource
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import yaml

from bench.data import AVRO_SCHEMA, CASES, FIRST_MS, JSON_SCHEMA, PARTITIONS, SPAN_MS, Case
from bench.servers import BUCKET, target
from bench.suites import DEAD_LETTERS, FORMATS, PASSED, SETTINGS, shape
from devtools.s3 import credentials_environment
from devtools.sink_process import local_spec, manifest
from sink_job.api.enums import OnNullValue
from sink_job.api.parser import load_sink
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.codecs.required_columns import task_columns
from sink_job.connect.schema import RegisteredSchema
from sink_job.engine.types import Columns
from sink_job.ledger.schemas.schema_store import SchemaStore
from sink_job.ledger.state import PartitionState
from sink_job.s3 import S3Settings, connect
from sink_job.spark.frames import END, HEAD, FrameReader
from sink_job.spark.task import YOUNG_OBJECTS, RangeCursor
from sink_job.tasks.parameters import RoundParameters
from sink_job.tasks.write import TaskInput, TaskResult
from sink_job.writer.partition_writer import WriteTask

TP = TopicPartition("bench", 0)
BATCH_BYTES = 2 << 20
MIB = 1 << 20
REGISTRY = {"registry": {"url": ["http://127.0.0.1:9"]}}
"""No task asks the registry: its schemas are in the ledger."""
MEASURED: Mapping[str, Mapping[str, Any]] = {
    **SETTINGS,
    "dead letters": DEAD_LETTERS,
    "rejected": dict(DEAD_LETTERS),
    "parquet": {"format": FORMATS["json to parquet, snappy"]},
    "avro": {"format": {**PASSED, **REGISTRY}},
    "avro to parquet": {"format": {"converter": "Avro", "output": "Parquet", **REGISTRY}},
}


def frames(case: Case, columns: Columns, size: int) -> list[bytes]:
    """Frames with `size` bytes of values in all, as the reader sends them."""
    per_frame = BATCH_BYTES // (case.size + len(columns.separator))
    source = itertools.islice(case.values(), size // case.size)
    made, first = [], 0
    while chunk := list(itertools.islice(source, per_frame)):
        made.append(_frame(case, chunk, first, columns))
        first += len(chunk)
    return made


def _frame(case: Case, chunk: Sequence[bytes], first: int, columns: Columns) -> bytes:
    """Records from the offset `first` on, with times as in a partition of the topics."""
    count = len(chunk)
    sections = [b""] * 17
    sections[0] = np.arange(first, first + count, dtype=np.int64).tobytes()
    sections[2] = np.cumsum([0, *(len(value) + len(columns.separator) for value in chunk)], dtype=np.int32).tobytes()
    sections[3] = b"".join(value + columns.separator for value in chunk)
    if columns.key or columns.headers:
        sections[5] = sections[8] = bytes(-(-count // 8))  # none has a key or headers
        sections[6] = sections[9] = np.zeros(count + 1, np.int32).tobytes()
        sections[11] = sections[14] = np.zeros(1, np.int32).tobytes()
    if columns.timestamp:
        per_partition = case.records // PARTITIONS
        sections[4] = (FIRST_MS + np.arange(first, first + count) * SPAN_MS // per_partition).tobytes()
    sizes = [len(section) for section in sections]
    head = HEAD.pack(0, count, *sizes, *[0] * (30 - len(sizes)))
    return head + b"".join(section + bytes(-len(section) % 8) for section in sections)


def send(path: Path, made: Sequence[bytes], turns: int) -> None:
    """Sends the frames to a new connection in each turn."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as server:
        server.bind(str(path))
        server.listen(1)
        for _ in range(turns):
            channel, _ = server.accept()
            channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            with channel:
                for frame in made:
                    channel.sendall(frame)
                channel.sendall(HEAD.pack(END, *[0] * 31))


def receive(reader: FrameReader, records: int) -> None:
    while reader.next() is not None:
        pass


def write(parameters: RoundParameters, reader: FrameReader, records: int) -> None:
    task = WriteTask(parameters)
    state = TaskInput(PartitionState.start(0), records, True)
    answer = task(TP, msgspec.msgpack.encode(state), RangeCursor(reader.next).of(0))
    result = msgspec.msgpack.decode(answer, type=TaskResult)
    assert result.counts.records + result.counts.rejected == records, result.error
    task.close()


def measure(case: Case, name: str, endpoint: str, args: argparse.Namespace) -> None:
    settings = MEASURED.get(name, {})
    case = replace(case, has_invalid=name == "rejected", is_avro=name.startswith("avro"))
    sections = shape(case) | dict(settings)
    spec = local_spec(bootstrap="127.0.0.1:9", topics=["bench"], endpoint=endpoint, bucket=BUCKET, **sections)
    sink = load_sink(yaml.safe_dump(manifest("bench", spec)))
    shaped = sink.object_settings()
    columns = task_columns(shaped)
    made = frames(case, columns, args.mb * 1_000_000)
    parameters = RoundParameters(
        s3=S3Settings.of(sink.spec, {}),
        root="bench/",
        settings_json=shaped.model_dump_json(),
        settings_record=1,
        tolerant="errors" in settings,
        on_null=OnNullValue.FAIL,
        epoch=1,
        round=1,
        now=1_700_000_000_000,
        budget=256 * MIB,
        threads=3,
        part_buffers=3,
    )
    _put_schema(parameters, shaped)
    records = args.mb * 1_000_000 // case.size
    work: Callable[..., None] = receive if name == "receive" else partial(write, parameters)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sender"
        sender = multiprocessing.get_context("fork").Process(target=send, args=(path, made, args.turns + 1))
        sender.start()
        del made
        turns = list(_turns(path, columns, work, records, args))
        sender.join()
    gb = records * case.size / 1e9
    print(f"{case.name:>5} {name:<12} {min(turns[1:]) / gb:6.2f} CPU-s/GB (first {turns[0] / gb:.2f})", flush=True)


def _put_schema(parameters: RoundParameters, settings: ObjectSettings) -> None:
    """Puts the schema of the values into the ledger."""
    schema = RegisteredSchema("1", "AVRO", json.dumps(AVRO_SCHEMA))
    if settings.bare_values is not None:
        schema = RegisteredSchema(settings.bare_values.id, "JSON", JSON_SCHEMA)
    if settings.has_schemas:
        SchemaStore(connect(parameters.s3), parameters.root).put_first(TP.topic, schema)


def _turns(
    path: Path, columns: Columns, work: Callable[[FrameReader, int], None], records: int, args: argparse.Namespace
) -> Iterator[float]:
    for turn in range(args.turns + 1):
        while not path.exists():
            pass
        with FrameReader(path, columns) as reader:
            before = _cpu()
            profile = cProfile.Profile() if args.profile and turn == args.turns else None
            if profile is not None:
                profile.enable()
            work(reader, records)
            yield _cpu() - before
            if profile is not None:
                profile.disable()
                pstats.Stats(profile, stream=sys.stdout).sort_stats("tottime").print_stats(25)


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.one_task", description=__doc__)
    parser.add_argument("--only", action="append", choices=list(CASES), help="sizes of values (default: all)")
    parser.add_argument("--settings", action="append", choices=[*MEASURED, "receive"], help="(default: all)")
    parser.add_argument("--mb", type=int, default=400, help="bytes of values of a turn, in MB")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--profile", action="store_true", help="print a profile of the last turn")
    args = parser.parse_args()
    os.environ.update(credentials_environment())
    gc.set_threshold(YOUNG_OBJECTS)
    with target("null") as s3:
        for name in args.only or CASES:
            for each in args.settings or ["receive", *MEASURED]:
                measure(CASES[name], each, s3.endpoint, args)
    return 0


if __name__ == "__main__":
    sys.exit(main())
