"""The ledger's files and requests with many versions of a schema in one topic: `python -m bench.many_schemas`.

A driver over a synthetic log writes to a real S3 server (VersityGW). Every record has another version of an Avro
schema, which adds a field; with `schemaCompatibility: Separate` each version has an open object. "Cold" is a driver
whose process, and whose workers, have read nothing from the ledger yet; its requests pass a proxy that delays each of
them. The registry answers at once. Requests do not depend on the machine.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import pickle
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import fastavro
import pyarrow as pa

from devtools.faults.proxy import Delay
from devtools.faults.s3_proxy import FaultProxy
from devtools.s3 import s3_server
from sink_job.api.topic_partition import TopicPartition
from sink_job.connect.schema import RegisteredSchema
from sink_job.coordinator.context import StopCondition
from sink_job.ledger.schemas.field_ids import LedgerFieldIds
from sink_job.ledger.schemas.object_schemas import ObjectSchemas
from sink_job.ledger.schemas.schema_table import KnownSchemas, LedgerSchemas
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import SyntheticLog

DONE: Final = StopCondition(until_caught_up=True)
HEADERS: Final = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
FIELDS: Final = ("seats", "gate", "fare", "note")


@dataclass(frozen=True)
class Versions:
    """A registry with `count` versions of a schema, whose ids are their numbers. Without `subject` they have none."""

    count: int
    subject: str | None = "log-value"
    url: str = "https://registry"

    def fetch(self, topic: str, schema_id: str, *, is_key: bool = False) -> RegisteredSchema:
        number = int(schema_id)
        version = None if self.subject is None else number
        return RegisteredSchema(schema_id, "AVRO", json.dumps(schema(number)), (), self.subject, version)

    def close(self) -> None:
        pass


@dataclass(frozen=True)
class VersionLog(SyntheticLog):
    """Record `n` has the version `n % versions + 1`."""

    versions: int = 1

    def value(self, partition: int, offset: int) -> bytes:
        return encoded(offset % self.versions + 1)

    def batches(self, tp: TopicPartition, start: int, end: int) -> Iterator[pa.RecordBatch]:
        offsets = list(range(start, end))
        if offsets:
            yield pa.RecordBatch.from_pydict(
                {
                    "offset": pa.array(offsets, pa.int64()),
                    "value": pa.array([self.value(tp.partition, o) for o in offsets], pa.binary()),
                    "timestamp": pa.array([self.timestamp(o) for o in offsets], pa.int64()),
                    "headers": pa.nulls(len(offsets), HEADERS),
                }
            )


def schema(number: int) -> dict[str, Any]:
    """The Avro schema of a version: five fields, and one of its own."""
    fields: list[dict[str, Any]] = [{"name": "id", "type": "long"}]
    fields += [{"name": name, "type": ["null", "string"], "default": None} for name in (*FIELDS, f"field{number}")]
    return {"type": "record", "name": "example.Flight", "fields": fields}


@cache
def encoded(number: int) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema(number)), {"id": number, "seats": "12A"})
    return b"\0" + number.to_bytes(4) + out.getvalue()


def cold() -> None:
    """Forgets what this process has read from ledgers."""
    for kept in (LedgerSchemas, ObjectSchemas, LedgerFieldIds):
        kept._caches.clear()


class Case:
    """A sink on a bucket of its own, whose driver resolves the ids of `versions` schemas."""

    def __init__(self, endpoint: str, folder: Path, given: dict[str, Any], versions: Versions) -> None:
        self.sink = SinkFixture.new(endpoint, folder)
        self.given = given
        self.registry = versions

    def run(self, records: int, needed: int, through: FaultProxy | None = None) -> None:
        """A new driver; the log ends at `records`, and its first `needed` versions occur."""
        cold()
        place = self.sink if through is None else self.sink.through(through)
        context = {"registry": self.registry}
        place.run(VersionLog(records=records, versions=needed), DONE, context=context, **self.given)

    def files(self) -> dict[str, list[int]]:
        """The sizes of the ledger's files in bytes, by folder."""
        found: dict[str, list[int]] = {}
        for listed in self.sink.s3.list(""):
            if "/_s3sink/" in listed.key:
                folder = listed.key.partition("/_s3sink/")[2].split("/")[1]
                found.setdefault(folder, []).append(listed.size)
        return found

    def largest_record(self) -> tuple[int, int]:
        """The size of the largest ledger record in bytes, stored and decompressed."""
        keys = [listed.key for listed in self.sink.s3.list("") if "/ledger/" in listed.key]
        contents = [self.sink.s3.get(key) for key in keys]
        return max((len(content), len(gzip.decompress(content))) for content in contents)


CASES: Final[dict[str, dict[str, Any]]] = {
    "Json": {"spec": {"format": {"converter": "Avro"}}},
    "Parquet": {"spec": {"format": {"converter": "Avro", "output": "Parquet"}}},
}


def _given(name: str) -> dict[str, Any]:
    spec: dict[str, Any] = {"schemaCompatibility": "Separate", "format": {**CASES[name]["spec"]["format"]}}
    spec["format"]["registry"] = {"type": "Confluent", "url": ["https://registry"]}
    return {"flush_size": 100_000, "max_records": 100_000, "spec": spec}


def measure(endpoint: str, proxy: FaultProxy, name: str, versions: int, *, subject: bool) -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="s3sink-bench-") as folder:
        registry = Versions(versions, "log-value" if subject else None)
        case = Case(endpoint, Path(folder), _given(name), registry)
        head = f"| {name} | {'yes' if subject else 'no'} |"
        case.run(versions, versions)
        for step, records, needed in (
            ("3 versions", versions + 3, 3),
            ("all versions", 2 * versions + 3, versions),
        ):
            proxy.forget()
            started = time.monotonic()
            case.run(records, needed, proxy)
            seconds = time.monotonic() - started
            kinds = Counter(str(request.kind) for request in proxy.requests)
            shown = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
            yield f"{head} cold, {step} | {seconds:.1f} | {shown} |"
        counts = ", ".join(f"{len(sizes)} in {folder}/" for folder, sizes in sorted(case.files().items()))
        stored, whole = case.largest_record()
        known = KnownSchemas({"log": frozenset(map(str, range(1, versions + 1)))})
        task = len(pickle.dumps(known))
        yield f"{head} files | | {counts}; largest record {stored} B ({whole} B decompressed); ids of a task {task} B |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--versions", type=int, default=1_000)
    parser.add_argument("--latency-ms", type=float, default=20)
    parser.add_argument("--only")
    options = parser.parse_args()
    print("| output | versions known | run | seconds | requests |\n|---|---|---|---|---|")
    with s3_server() as server, FaultProxy(server.endpoint) as proxy:
        proxy.when(lambda request: True, Delay(options.latency_ms / 1_000), times=None)
        for name in CASES:
            for subject in (True, False):
                if name.startswith(options.only or ""):
                    for line in measure(server.endpoint, proxy, name, options.versions, subject=subject):
                        print(line, flush=True)


if __name__ == "__main__":
    main()
