"""A sink in memory and a copy of its objects in another directory, as a connector beside it writes them."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

from sink_job.api.enums import ConverterType, OutputFormat
from sink_job.api.parser import load_sink
from tests.support.memory_sink import MemorySinkFixture
from tests.support.schema_log import SchemaLog
from tests.support.sink_fixture import manifest
from tests.support.synthetic_log import SyntheticLog

Change = Callable[[list[Any]], list[Any]]

OUTPUTS: dict[str, dict[str, Any]] = {
    "Json": {"converter": "Json", "output": "Json"},
    "JsonGzip": {"converter": "Json", "output": "Json", "compression": {"codec": "Gzip"}},
    "Bytes": {"converter": "Bytes", "output": "Bytes"},
    "Avro": {"converter": "ConnectJson", "output": "Avro"},
    "Parquet": {"converter": "ConnectJson", "output": "Parquet"},
}
"""Settings of `format`."""


def log_of(output: str, records: int, paths: int = 1) -> SyntheticLog:
    """Records for these settings. Their values differ."""
    if output in ("Avro", "Parquet"):
        return SchemaLog(
            records=records,
            paths=paths,
            ids=(1,),
            converter=ConverterType.CONNECT_JSON,
            output=OutputFormat(output),
        )
    return SyntheticLog(records=records, paths=paths)


@dataclass
class ComparedSink:
    """A sink with `flush_size` records in an object, and the other directory `connect`."""

    fixture: MemorySinkFixture
    path: Path
    output: str = "Json"
    _schema: Any = None

    def write(self, log: SyntheticLog, **given: Any) -> None:
        """Runs the sink, and writes its manifest to `path`."""
        spec = {"format": OUTPUTS[self.output], **given.pop("spec", {})}
        text = manifest("archive", "http://127.0.0.1:9", **{"flush_size": 5, "spec": spec, **given})
        self.path.write_text(text)
        self.fixture.sink = load_sink(text)
        self.fixture.run(log)

    def copy(self, rename: Callable[[str], str] = lambda name: name) -> None:
        """Writes all objects of the sink to the other directory, with other bytes for the same records."""
        for key in self.keys("topics"):
            name = rename(key.removeprefix("topics/"))
            self.fixture.s3.put(f"connect/{name}", self._encoded(self._decoded(self.fixture.s3.get(key), key), key))

    def keys(self, directory: str = "connect") -> list[str]:
        """The keys of all objects in a directory, in the order of their first offsets."""
        found = [key for key in self.fixture.s3.objects if key.startswith(f"{directory}/") and "_s3sink" not in key]
        return sorted(found, key=lambda key: (key.rsplit("+", 1)[1], key))

    def change(self, key: str, change: Change) -> None:
        """Changes the records of an object. JSON records are dicts, those of the output Bytes are bytes."""
        body = self._encoded(change(self._decoded(self.fixture.s3.get(key), key)), key)
        self.fixture.s3.put(key, body)

    def records(self, key: str) -> list[Any]:
        return self._decoded(self.fixture.s3.get(key), key)

    def put(self, key: str, records: list[Any]) -> None:
        """Writes an object."""
        self.fixture.s3.put(key, self._encoded(records, key))

    def retype(self, key: str) -> None:
        """Writes the records of an object of Avro or Parquet with another type of the field `partition`."""
        records = self.records(key)
        if self.output == "Avro":
            fields = [
                {**field, "type": "int"} if field["name"] == "partition" else field for field in self._schema["fields"]
            ]
            self._schema = {**self._schema, "fields": fields}
        else:
            at = self._schema.get_field_index("partition")
            self._schema = self._schema.set(at, pa.field("partition", pa.int32(), nullable=False))
        self.put(key, records)

    def truncate(self, key: str, size: int) -> None:
        """Removes `size` bytes at the end of an object."""
        self.fixture.s3.put(key, self.fixture.s3.get(key)[:-size])

    def move(self, key: str, to: str) -> None:
        self.fixture.s3.put(to, self.fixture.s3.get(key))
        del self.fixture.s3.objects[key]

    def _decoded(self, body: bytes, key: str) -> list[Any]:
        if self.output == "Avro":
            reader = fastavro.reader(io.BytesIO(body))
            self._schema = reader.writer_schema
            return list(reader)
        if self.output == "Parquet":
            rows: list[Any] = pq.read_table(io.BytesIO(body)).to_pylist()
            self._schema = pq.read_schema(io.BytesIO(body))
            return rows
        lines = (gzip.decompress(body) if key.endswith(".gz") else body).removesuffix(b"\n").split(b"\n")
        return lines if self.output == "Bytes" else list(map(json.loads, lines))

    def _encoded(self, records: list[Any], key: str) -> bytes:
        """The records as another writer encodes them: JSON with other white space and keys in another order, one block
        in Avro, columns in the order of their names in Parquet."""
        out = io.BytesIO()
        if self.output == "Avro":
            fields = sorted(self._schema["fields"], key=lambda field: str(field["name"]))
            schema = {**self._schema, "doc": "of another writer", "fields": fields}
            fastavro.writer(out, schema, records, codec="deflate")
            return out.getvalue()
        if self.output == "Parquet":
            table = pa.Table.from_pylist(records, schema=self._schema)
            pq.write_table(table.select(sorted(table.column_names)), out, compression="gzip")
            return out.getvalue()
        if self.output != "Bytes":
            records = [json.dumps(record, separators=(" ,", ": "), sort_keys=True).encode() for record in records]
        body = b"".join(record + b"\n" for record in records)
        return gzip.compress(body) if key.endswith(".gz") else body
