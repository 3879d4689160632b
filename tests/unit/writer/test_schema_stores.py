"""The stores of schemas and field ids of one process."""

from __future__ import annotations

import pytest

from sink_job.connect.schema import Schema, SchemaType, schema_id
from sink_job.writer.schema_stores import InMemoryFieldIds, InMemoryObjectSchemas, SchemaStores


def test_a_schema_is_found_by_its_id() -> None:
    store, schemas = InMemoryObjectSchemas(), [Schema(SchemaType.INT32), Schema(SchemaType.STRING)]
    store.put_all(schemas[:1])
    store.put_all(schemas)
    store.prefetch([schema_id(schemas[1])])
    assert [store.find(schema_id(each)) for each in schemas] == schemas
    with pytest.raises(KeyError):
        store.find("unknown")


def test_an_id_of_a_field_never_changes() -> None:
    store = InMemoryFieldIds()
    store.add("flights", ["a", "b"])
    first = dict(store.find("flights", ["a", "b"]))
    store.add("flights", ["c", "b", "a", "d"])
    second = store.find("flights", [])
    assert {path: second[path] for path in first} == first
    assert list(second) == ["a", "b", "c", "d"]
    assert sorted(second.values()) == [1, 2, 3, 4]


def test_each_topic_has_field_ids_of_its_own() -> None:
    store = InMemoryFieldIds()
    store.add("flights", ["a", "b"])
    store.add("logs", ["b"])
    assert store.find("logs", ["b"]) == {"b": 1}


def test_two_tasks_share_no_store() -> None:
    assert SchemaStores().objects is not SchemaStores().objects
    assert SchemaStores().registered is None
