"""Objects of whole sinks over a fixed log: their keys, and hashes of their bytes."""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from sink_job.api.enums import ConverterType
from sink_job.api.parser import load_sink
from tests.support.memory_sink import MemorySinkFixture
from tests.support.schema_log import SchemaLog
from tests.support.sink_fixture import manifest
from tests.support.synthetic_log import SyntheticLog

_TYPED: Final = {"converter": "ConnectJson"}
_TOMBSTONES: Final = {"errors": {"onNullValue": "Write"}}
_HOURLY: Final = {"type": "Hourly", "timezone": "Europe/Berlin", "locale": "de-DE", "timestampExtractor": "Record"}

LOG: Final = SyntheticLog(partitions=2, records=23, paths=3)
TYPED_LOG: Final = SchemaLog(
    partitions=2, records=23, paths=3, converter=ConverterType.CONNECT_JSON, ids=(1, 1, 1, 2), envelope=True
)
"""Two versions of a schema, some keys and headers."""

CASES: Final[dict[str, dict[str, Any]]] = {
    "JSON lines": {},
    "JSON lines, gzip": {"format": {"compression": {"codec": "Gzip"}}},
    "JSON lines, zstd": {"format": {"compression": {"codec": "Zstd"}}},
    "JSON lines with an envelope": {"format": {"envelope": True}},
    "bytes": {"format": {"output": "Bytes", "converter": "Bytes"}},
    "text as JSON": {"format": {"converter": "Text"}},
    "a path of a field": {"partitioner": {"type": "Field", "fields": ["kind"]}},
    "a path of hours": {"partitioner": _HOURLY},
    "an object for each path": {
        "partitioner": {"type": "Field", "fields": ["kind"]},
        "rotation": {"flushSize": 5, "scope": "Object"},
    },
    "Avro": {"format": {**_TYPED, "output": "Avro"}},
    "Avro, deflate": {"format": {**_TYPED, "output": "Avro", "compression": {"codec": "Deflate"}}},
    "Parquet": {"format": {**_TYPED, "output": "Parquet"}},
    "Parquet, zstd": {"format": {**_TYPED, "output": "Parquet", "compression": {"codec": "Zstd"}}},
    "JSON lines with tombstones": {"format": {"envelope": True}, **_TOMBSTONES},
    "Avro with tombstones": {"format": {**_TYPED, "output": "Avro", "envelope": True}, **_TOMBSTONES},
    "Parquet with tombstones": {
        "format": {**_TYPED, "output": "Parquet", "envelope": True},
        "schemaCompatibility": "Separate",
        **_TOMBSTONES,
    },
    "Parquet with an envelope": {"format": {**_TYPED, "output": "Parquet", "envelope": True}},
}
"""Sections of the manifest of each sink."""


def objects() -> dict[str, dict[str, str]]:
    """For each case the keys of all objects, and the start of the SHA-256 of each."""
    return {name: objects_of(name) for name in CASES}


def objects_of(case: str) -> dict[str, str]:
    """The keys of the objects of one case, and the start of the SHA-256 of each."""
    spec = {"rotation": {"flushSize": 5}, **CASES[case]}
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patches:
        sink = MemorySinkFixture(Path(folder), patches)
        sink.sink = load_sink(manifest("archive", "http://127.0.0.1:9", max_records=4, spec=spec))
        typed = sink.sink.spec.format.converter is ConverterType.CONNECT_JSON
        log = TYPED_LOG if typed or sink.sink.spec.format.envelope else LOG
        sink.run(replace(log, tombstones=frozenset({0, 2, 7, 8, 15})) if "errors" in spec else log)
        stored = {key: stored.body for key, stored in sorted(sink.s3.objects.items()) if "/_s3sink/" not in key}
    return {key: hashlib.sha256(body).hexdigest()[:16] for key, body in stored.items()}
