"""The schemas of objects in a ledger."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.errors import ConfigurationError, LedgerUnreadable
from sink_job.connect.schema import Field, Schema, SchemaType, schema_id
from sink_job.ledger.schemas.object_schemas import MAX_CACHED, ObjectSchemas, object_schema_key
from sink_job.s3 import Conflict
from tests.support.memory_s3 import MemoryS3

ROOT = "topics/_s3sink/flights/"
FLIGHT = Schema(
    SchemaType.STRUCT, "example.Flight", version=2, fields=(Field("number", Schema(SchemaType.INT64, optional=True)),)
)
KEY = object_schema_key(ROOT, schema_id(FLIGHT))


@pytest.fixture
def s3() -> MemoryS3:
    return MemoryS3()


def schemas(s3: Any) -> ObjectSchemas:
    """The schemas as a new process finds them."""
    ObjectSchemas._caches.clear()
    return ObjectSchemas(s3, ROOT)


def test_another_process_reads_a_schema_as_it_was_put(s3: MemoryS3) -> None:
    schemas(s3).put(FLIGHT)
    assert schemas(s3).find(schema_id(FLIGHT)) == FLIGHT
    assert [*s3.objects] == [KEY]


def test_a_schema_is_put_once_by_a_process_and_never_replaced(s3: MemoryS3) -> None:
    one = schemas(s3)
    one.put(FLIGHT)
    before = s3.objects[KEY]
    one.put(FLIGHT)
    schemas(s3).put(FLIGHT)
    assert s3.objects[KEY] is before


def test_a_process_needs_no_request_for_a_schema_that_it_has_put(s3: MemoryS3) -> None:
    one = schemas(s3)
    one.put(FLIGHT)
    s3.objects.clear()
    assert one.find(schema_id(FLIGHT)) == FLIGHT


def test_a_put_that_conflicts_with_one_of_another_process_succeeds(
    s3: MemoryS3, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = s3.put

    def conflicting(key: str, body: bytes, *, only_if_absent: bool = False) -> object:
        if only_if_absent:
            raise Conflict("another put is in progress")
        return put(key, body)

    monkeypatch.setattr(s3, "put", conflicting)
    schemas(s3).put(FLIGHT)
    assert schemas(s3).find(schema_id(FLIGHT)) == FLIGHT


def test_a_missing_schema_is_reported_with_its_key(s3: MemoryS3) -> None:
    with pytest.raises(LedgerUnreadable, match=f"{KEY} cannot be read .it does not exist."):
        schemas(s3).find(schema_id(FLIGHT))


def test_a_file_with_another_schema_is_not_used(s3: MemoryS3) -> None:
    schemas(s3).put(FLIGHT)
    other = object_schema_key(ROOT, "0" * 32)
    s3.put(other, s3.objects[KEY].body)
    with pytest.raises(LedgerUnreadable, match="its schema has another id"):
        schemas(s3).find("0" * 32)


def test_a_file_of_another_format_is_rejected(s3: MemoryS3) -> None:
    s3.put(KEY, b'{"schema": {"type": "string"}, "format": 2}')
    with pytest.raises(ConfigurationError, match="ledger format 2"):
        schemas(s3).find(schema_id(FLIGHT))


def test_a_process_remembers_a_limited_number_of_schemas(s3: MemoryS3) -> None:
    one = schemas(s3)
    for version in range(MAX_CACHED + 1):
        one.put(Schema(SchemaType.STRING, version=version))
    assert len(one._cache) == MAX_CACHED
    assert one.find(schema_id(Schema(SchemaType.STRING, version=0))).version == 0


def test_an_id_that_is_no_hash_never_leaves_the_folder() -> None:
    with pytest.raises(ValueError, match="not the id of an object's schema"):
        object_schema_key(ROOT, "../ledger")
