"""Two versions of an Avro schema in one topic-partition: number of objects and CPU time by `schemaCompatibility`.

`python -m bench.schema_versions [--records 100000] [--flush-size 1000] [--repeat 3]` prints a table. Records are
converted, assigned to objects, projected and encoded by the sink's own record pipeline and rotator, in one process on
one core: no Kafka, no Spark, no S3. The second version adds an optional field and one with a default at the end.
"""

from __future__ import annotations

import argparse
import io
import json
import random
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import fastavro
import pyarrow as pa

from bench.converters import LARGE_SCHEMA, SMALL_SCHEMA, large_value, small_value
from sink_job.api.enums import SchemaCompatibility
from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.connect.schema import RegisteredSchema
from sink_job.rotation.rotator import Rotator
from sink_job.rotation.types import Append, Close, RotationState
from sink_job.writer.record_pipeline import RecordPipeline
from sink_job.writer.row_slices import RowSelection, row_slices
from sink_job.writer.schema_stores import SchemaStores

BATCH_BYTES: Final = 1_000_000
TP: Final = TopicPartition("bench", 0)
ADDED: Final[list[dict[str, Any]]] = [
    {"name": "seats", "type": ["null", "long"], "default": None},
    {"name": "source", "type": {"type": "string", "connect.default": "web"}},
]
MODES: Final = {
    "None": SchemaCompatibility.NONE,
    "Separate": SchemaCompatibility.SEPARATE,
    "Backward": SchemaCompatibility.BACKWARD,
    "Forward": SchemaCompatibility.FORWARD,
}


class Values(NamedTuple):
    """The versions of a subject, and records with them."""

    versions: list[RegisteredSchema]
    batches: list[pa.RecordBatch]
    bytes: int

    def find(self, topic: str, schema_id: str) -> RegisteredSchema:
        return self.versions[int(schema_id) - 1]


class Counted(NamedTuple):
    """The number of objects and of their bytes, and the CPU time."""

    objects: int
    bytes: int
    seconds: float


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--flush-size", type=int, default=1_000)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    print("| values | order of versions | schemaCompatibility | objects | MB/s | CPU-s/GB |\n|---|---|---|---|---|---|")
    for size in ("100 B", "1 KB"):
        for order, versions in _orders(given.records).items():
            values = _values(versions, large=size == "1 KB")
            for name, mode in MODES.items():
                if order == "one version" and name != "None":
                    continue
                found = [_run(values, mode, given.flush_size) for _ in range(given.repeat)]
                seconds = min(each.seconds for each in found)
                print(
                    f"| {size} | {order} | `{name}` | {found[0].objects:,} | {values.bytes / 1e6 / seconds:.0f} "
                    f"| {seconds / (values.bytes / 1e9):.1f} |",
                    flush=True,
                )


def _orders(records: int) -> dict[str, list[int]]:
    rng = random.Random(1)
    return {
        "one version": [0] * records,
        "alternating": [number % 2 for number in range(records)],
        "random": [rng.randrange(2) for _ in range(records)],
    }


def _values(versions: Sequence[int], *, large: bool) -> Values:
    fields = [{"name": name, "type": of} for name, of in (LARGE_SCHEMA if large else SMALL_SCHEMA)]
    schemas = [{"type": "record", "name": "Value", "fields": each} for each in (fields, fields + ADDED)]
    parsed = [fastavro.parse_schema(schema) for schema in schemas]
    registered = [
        RegisteredSchema(str(number), "AVRO", json.dumps(schema), version=number)
        for number, schema in enumerate(schemas, 1)
    ]
    make, rng = large_value if large else small_value, random.Random(1)
    samples = [make(rng, number) | {"seats": number, "source": "app"} for number in range(1_000)]
    data = [_in_wire_format(version, parsed[version], samples[n % len(samples)]) for n, version in enumerate(versions)]
    count = BATCH_BYTES // (1_000 if large else 100)
    batches = [_batch(first, data[first : first + count]) for first in range(0, len(data), count)]
    return Values(registered, batches, sum(map(len, data)))


def _in_wire_format(version: int, schema: Any, value: dict[str, Any]) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, schema, value)
    return b"\0" + (version + 1).to_bytes(4) + out.getvalue()


def _batch(first: int, values: list[bytes]) -> pa.RecordBatch:
    offsets = pa.array(range(first, first + len(values)), pa.int64())
    return pa.record_batch({"offset": offsets, "value": pa.array(values, pa.binary())})


def _run(values: Values, mode: SchemaCompatibility, flush_size: int) -> Counted:
    settings = ObjectSettings.model_validate(
        {
            "format": {"converter": "Avro"},
            "framing": {"type": "Confluent", "subjects": "TopicName", "idIn": "Value"},
            "rotation": {"flushSize": flush_size},
        }
    ).model_copy(update={"schema_compatibility": mode})
    pipeline = RecordPipeline.of(settings, ErrorsSpec(), SchemaStores(values))
    started = time.process_time()
    closed, written = _write(pipeline, values.batches)
    return Counted(closed, written, time.process_time() - started)


def _write(pipeline: RecordPipeline, batches: Sequence[pa.RecordBatch]) -> tuple[int, int]:
    """The number of objects and of their bytes, with the objects that are open at the end."""
    rotator = Rotator(pipeline.rotation_policy, RotationState.start(0), [], 0)
    closed = written = 0
    for batch in batches:
        prepared = pipeline.prepare(batch, 0, TP)
        steps = rotator.add(prepared.rows)
        for step in steps:
            if isinstance(step, Append):
                pipeline.keep_schemas(TP.topic, [step.target], prepared.schemas)
        choices = [RowSelection(step.target.schema, step.rows) for step in steps if isinstance(step, Append)]
        written += sum(len(rows.data) for rows in row_slices(prepared, choices))
        closed += sum(_objects(steps))
    return closed + len(rotator.open), written


def _objects(steps: Sequence[Append | Close]) -> Iterator[int]:
    return (len(step.objects) for step in steps if isinstance(step, Close))


if __name__ == "__main__":
    main()
