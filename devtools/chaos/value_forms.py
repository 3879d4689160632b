"""How the records of a topic occur in objects: as they came, as canonical JSON, or under the schema of their object."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from typing import Any

import fastavro

from devtools import bucket_listing
from devtools.chaos import containers
from devtools.chaos.registry_values import VersionedValues, canonical, version_of


class ValueForm:
    """Values are written as they came, a record a line."""

    def content(self, value: bytes) -> bytes:
        """What the comparison keeps of a value in Kafka; JSON if paths depend on it."""
        return value

    def identity(self, record: bytes) -> bytes:
        """What a record in an object and its `content` have in common, and no other record of the topic-partition."""
        return record

    def records(self, key: str, body: bytes) -> list[bytes]:
        """The records of an object, each in a form of its own. Raises the errors of the libraries that read it."""
        return bucket_listing.decompressed(body, key).removesuffix(b"\n").split(b"\n")

    def row_size(self, record: bytes, extension: str) -> int:
        """The number of bytes that a record of an object counts for `maxBytes` at least."""
        return len(record) + 1

    def why_not(self, compatibility: str, contents: Sequence[bytes], records: Sequence[bytes]) -> str | None:
        """The reason why an object should not have these `records`, whose values have `contents`."""
        return None


class TypedForm(ValueForm):
    """JSON values with one schema, in Avro and Parquet objects."""

    def identity(self, record: bytes) -> bytes:
        return containers.canonical(record)

    def records(self, key: str, body: bytes) -> list[bytes]:
        return containers.records(key, body)

    def row_size(self, record: bytes, extension: str) -> int:
        return containers.row_size(record)


class RegisteredForm(ValueForm):
    """Values with several versions of a schema in a registry, whose field `id` is unique."""

    def __init__(self, values: VersionedValues) -> None:
        self.values = values

    def content(self, value: bytes) -> bytes:
        return self.values.content(value)

    def identity(self, record: bytes) -> bytes:
        try:
            return str(json.loads(record)["id"]).encode()
        except (ValueError, KeyError, TypeError):
            return record

    def records(self, key: str, body: bytes) -> list[bytes]:
        if key.endswith(".avro"):
            return [canonical(each) for each in _dicts(list(fastavro.reader(io.BytesIO(body))))]
        if key.endswith(".parquet"):
            return [canonical(each) for each in containers.parquet_rows(body)]
        return super().records(key, body)

    def row_size(self, record: bytes, extension: str) -> int:
        if not containers.is_container(extension):
            return super().row_size(record, extension)
        return self.values.min_row_size(json.loads(record))

    def why_not(self, compatibility: str, contents: Sequence[bytes], records: Sequence[bytes]) -> str | None:
        """Each record has the fields and values of its own version, projected to that of the object's first record."""
        version = None
        for content, record in zip(contents, records, strict=False):
            came, found = json.loads(content), json.loads(record)
            own = version_of(came)
            version = version or own
            if own is None or version is None or version_of(found) != version:
                wrong = f"has the fields {[*found]}, not those of version {version}"
                return f"the record {came.get('id')} of version {own} {wrong}"
            if not _fits(compatibility, own, version):
                return f"the record {came['id']} of version {own} is in an object of version {version}"
            expected = self.values.projected(came, version)
            if canonical(found) != canonical(expected):
                different = next(name for name in expected if found[name] != expected[name])
                return f"{came['id']}: {different} is {found[different]!r}, expected {expected[different]!r}"
        return None


def _fits(compatibility: str, own: int, version: int) -> bool:
    """Whether an object of this version may have a record of its `own` version."""
    match compatibility:
        case "Backward" | "Full":
            return own <= version
        case "Forward":
            return own >= version
    return own == version


def _dicts(rows: list[Any]) -> list[dict[str, Any]]:
    for row in rows:
        if not isinstance(row, dict):
            raise ValueError(f"a record is expected, not {row!r}")
    return rows
