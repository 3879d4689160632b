"""The outputs Avro and Parquet: the settings of a run that draws them, and its records.

The objects are read with fastavro and pyarrow, without the product's code.
"""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator, Mapping
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.parquet as pq

CODECS = {
    "Avro": ("None", "Deflate", "Snappy", "Zstd", "Bzip2"),
    "Parquet": ("None", "Snappy", "Gzip", "Zstd", "Lz4", "Brotli"),
}

_TEXT = {"type": "string"}
_NUMBERS = {"type": "object", "properties": {"count": {"type": "integer"}, "ratio": {"type": "number"}}}
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "title": "Value",
    "properties": {
        "at": _TEXT,
        "kind": _TEXT,
        "pad": _TEXT,
        "numbers": _NUMBERS,
        "tags": {"type": "array", "items": _TEXT},
        "note": {"oneOf": [{"type": "null"}, _TEXT]},
    },
    "required": ["at", "kind", "pad", "tags"],
}
SCHEMAS = (
    json.dumps(_SCHEMA),
    json.dumps({**_SCHEMA, "properties": {"later": {"type": "boolean"}, **_SCHEMA["properties"]}}),
)
"""Both are valid for all values; no value has the field `later`. It is the first one, so that the other fields would
have other ids if ids were numbers in the order of the schema."""


def block_size(output: str, rng: random.Random) -> dict[str, Any]:
    """The section of the output, Avro or Parquet, with the size of a block or row group in bytes."""
    section, field = {"Avro": ("avro", "block"), "Parquet": ("parquet", "rowGroup")}[output]
    return {section: {field: rng.choice((1, 100, 300, 2000))}}


def change_output(spec: dict[str, Any], rng: random.Random) -> None:
    """Changes a manifest to one of the outputs. With Json it keeps its format."""
    output = rng.choice(("Avro", "Avro", "Parquet", "Parquet", "Json"))
    if output == "Json":
        return
    spec["format"] = {
        "converter": "JsonSchema",
        "output": output,
        "schema": {"text": rng.choice(SCHEMAS)},
        "compression": {"codec": rng.choice(CODECS[output])},
        **block_size(output, rng),
    }
    spec["rotation"]["flushSize"] = rng.choice((2, 5, 30, 30))
    spec["s3"]["partSize"] = rng.choice((200, 500, 2000, 2000, 5000))


def infer_schema(settings: dict[str, Any]) -> None:
    """Changes the section `format` of a manifest to an inferred schema, if it has a schema."""
    if settings.pop("schema", None) is not None:
        settings |= {"converter": "Json", "inference": "Once", "unknownFields": "Json"}


def more_fields(rng: random.Random) -> dict[str, Any]:
    """The fields of a value beside those of each run."""
    found: dict[str, Any] = {"tags": [rng.choice(("", "a", "long" * 9)) for _ in range(rng.choice((0, 0, 1, 3)))]}
    if rng.random() < 0.7:
        found["numbers"] = {"count": rng.choice((0, -1, 1 << 40)), "ratio": rng.choice((0.5, -1e300))}
    if rng.random() < 0.5:
        found["note"] = rng.choice((None, "", "n"))
    return found


def is_container(key: str) -> bool:
    """Whether the object with this key is an Avro or a Parquet file."""
    return key.endswith((".avro", ".parquet"))


def values(key: str, body: bytes) -> list[str]:
    """The values of an object, in order, each as by `canonical`. Raises the errors of the libraries."""
    file = io.BytesIO(body)
    rows = fastavro.reader(file) if key.endswith(".avro") else pq.ParquetFile(file).read().to_pylist()
    return [canonical(restored(row)) for row in rows]


def restored(row: Any) -> Any:
    """A row with the properties that its inferred schema lacks, and with JSON texts as what they contain."""
    return _merged(_parsed({name: each for name, each in row.items() if name != UNKNOWN}), row.get(UNKNOWN))


UNKNOWN = "_unknown"
"""The column with the properties that an inferred schema lacks."""


def _merged(row: dict[str, Any], unknown: str | None) -> dict[str, Any]:
    for name, each in json.loads(unknown or "{}").items():
        row[name] = {**row[name], **each} if isinstance(each, dict) and row.get(name) else each
    return row


def _parsed(value: Any) -> Any:
    """No text of a record begins with a quotation mark, so one that does is a JSON text."""
    if isinstance(value, dict):
        return {name: _parsed(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_parsed(each) for each in value]
    return json.loads(value) if isinstance(value, str) and value.startswith('"') else value


def field_ids(body: bytes) -> dict[tuple[str, ...], int]:
    """The field id of each type in a Parquet object, by its names from the top level down."""
    return dict(_ids(list(pq.ParquetFile(io.BytesIO(body)).schema_arrow), ()))


def _ids(fields: list[pa.Field], parent: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    for each in fields:
        path = (*parent, each.name)
        yield path, int(each.metadata[b"PARQUET:field_id"])
        if pa.types.is_nested(each.type):
            yield from _ids([each.type.field(number) for number in range(each.type.num_fields)], path)


def canonical(value: Any) -> str:
    """A JSON text that is equal for equal values; a null field is an absent one."""
    return json.dumps(_without_nulls(value), sort_keys=True)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return value
