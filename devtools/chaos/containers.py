"""The outputs Avro and Parquet: their settings, and their objects and records without the product's code."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Mapping
from typing import Any, Final

import duckdb
import fastavro

_TEXT: Final = {"type": "string"}
_SCHEMA: Final = {
    "type": "object",
    "title": "Value",
    "properties": {
        "id": _TEXT,
        "user": {
            "type": "object",
            "title": "User",
            "properties": {"country": _TEXT, "tier": {"type": "integer"}},
            "required": ["country", "tier"],
        },
        "vip": {"type": "boolean"},
        "at": {"oneOf": [{"type": "integer"}, _TEXT]},
        "pad": _TEXT,
    },
    "required": ["id", "user", "vip", "at", "pad"],
}
"""The schema of the values of `load.value`."""


def _format(output: str, compression: str, **more: Any) -> Mapping[str, Any]:
    section = {"parquet": {"rowGroup": "1Mi", **more}} if output == "Parquet" else {"avro": {"block": "2Ki", **more}}
    schema = {"text": json.dumps(_SCHEMA)}
    return {
        "converter": "JsonSchema",
        "schema": schema,
        "output": output,
        "compression": {"codec": compression},
        **section,
    }


FORMATS: Final = (
    _format("Parquet", "Snappy"),
    _format("Avro", "Zstd"),
    _format("Parquet", "Zstd", dictionary=False),
    _format("Avro", "None"),
    _format("Parquet", "Lz4"),
    _format("Avro", "Deflate"),
    _format("Parquet", "Gzip"),
    _format("Avro", "Snappy"),
    _format("Parquet", "None"),
    _format("Parquet", "Brotli"),
    _format("Avro", "Bzip2"),
)
"""All compressions, with the smallest row groups and with Avro blocks of a few records."""

_PARQUET: Final = {
    "None": ".parquet",
    "Snappy": ".snappy.parquet",
    "Gzip": ".gz.parquet",
    "Zstd": ".zstd.parquet",
    "Lz4": ".lz4raw.parquet",
    "Brotli": ".br.parquet",
}
_DATUM: Final = fastavro.parse_schema(
    {
        "type": "record",
        "name": "Value",
        "fields": [
            {"name": "id", "type": "string"},
            {
                "name": "user",
                "type": {
                    "type": "record",
                    "name": "User",
                    "fields": [{"name": "country", "type": "string"}, {"name": "tier", "type": "long"}],
                },
            },
            {"name": "vip", "type": "boolean"},
            {
                "name": "at",
                "type": {
                    "type": "record",
                    "name": "At",
                    "fields": [{"name": "n", "type": ["null", "long"]}, {"name": "s", "type": ["null", "string"]}],
                },
            },
            {"name": "pad", "type": "string"},
        ],
    }
)


def codec_of(form: Mapping[str, Any]) -> str:
    """The compression codec of `spec.format`, as the sink chooses it."""
    default = "Snappy" if form.get("output") == "Parquet" else "None"
    return str(form.get("compression", {}).get("codec", default))


def extension(form: Mapping[str, Any]) -> str | None:
    """How the keys of these objects end; None for another output."""
    match form.get("output"):
        case "Avro":
            return ".avro"
        case "Parquet":
            return _PARQUET[codec_of(form)]
    return None


def is_container(key: str) -> bool:
    """Whether the object is an Avro or a Parquet file."""
    return key.endswith((".avro", ".parquet"))


def records(key: str, body: bytes) -> list[bytes]:
    """The records of an object, each as by `canonical`. Raises the errors of fastavro and DuckDB."""
    return [_canonical(each) for each in (_avro(body) if key.endswith(".avro") else parquet_rows(body))]


def _avro(body: bytes) -> list[Any]:
    return list(fastavro.reader(io.BytesIO(body)))


def parquet_rows(body: bytes) -> list[Any]:
    """The rows of a Parquet file as DuckDB reads them, as dicts."""
    with tempfile.NamedTemporaryFile(suffix=".parquet") as file, duckdb.connect() as connection:
        file.write(body)
        file.flush()
        table: Any = connection.sql("select * from read_parquet(?)", params=[file.name]).to_arrow_table()
        rows: list[Any] = table.to_pylist()
        return rows


def canonical(value: bytes) -> bytes:
    """A JSON value in a form that is the same for equal values; another value as it is."""
    try:
        return _canonical(json.loads(value))
    except ValueError:
        return value


def _canonical(record: Any) -> bytes:
    if isinstance(record, dict) and isinstance(record.get("at"), dict):
        record = {**record, "at": _member(record["at"])}
    return json.dumps(record, sort_keys=True).encode()


def _member(union: Mapping[str, Any]) -> Any:
    """The alternative that a union has."""
    found = [each for each in union.values() if each is not None]
    return found[0] if len(found) == 1 else dict(union)


def row_size(record: bytes) -> int:
    """The bytes that a canonical record counts for `maxBytes`: its Avro data, and 4."""
    value, out = json.loads(record), io.BytesIO()
    at = value["at"]
    union = {"n": at, "s": None} if isinstance(at, int) else {"n": None, "s": at}
    fastavro.schemaless_writer(out, _DATUM, {**value, "at": union})
    return len(out.getvalue()) + 4
