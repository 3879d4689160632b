"""The requests for many schemas of a topic: only for what exists and what records need."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from sink_job.api.errors import LedgerUnreadable, RegistryChanged
from sink_job.connect.errors import UnknownSchema
from sink_job.connect.schema import Field, RegisteredSchema, Schema, SchemaType, schema_id
from sink_job.ledger.files import MIN_LISTED
from sink_job.ledger.schemas.field_ids import FieldIdsEntry, LedgerFieldIds, field_ids_key
from sink_job.ledger.schemas.object_schemas import MAX_LISTED_RATIO, ObjectSchemas, object_schema_key
from sink_job.ledger.schemas.schema_store import SchemaStore, schema_key
from sink_job.ledger.schemas.schema_table import KnownSchemas, LedgerSchemas
from tests.support.memory_s3 import MemoryS3

ROOT = "topics/_s3sink/flights/"
URL = "https://registry.example.com"
COUNT = 100
IDS = [str(number) for number in range(1, COUNT + 1)]


def copy(schema_id: str, version: int | None = None, text: str = '"long"') -> RegisteredSchema:
    return RegisteredSchema(schema_id, "AVRO", text, (), "flights-value", version)


class CountingS3(MemoryS3):
    """Counts the calls after `reset`, by their names. Several threads call it."""

    def __init__(self) -> None:
        super().__init__()
        self._calls: list[str] = []
        self.fault = lambda call, key: self._calls.append(call)

    @property
    def calls(self) -> Counter[str]:
        return Counter(self._calls)

    def reset(self) -> None:
        self._calls.clear()


@pytest.fixture
def s3() -> Any:
    return CountingS3()


@pytest.fixture
def store(s3: Any) -> SchemaStore:
    found = SchemaStore(s3, ROOT)
    for each in IDS:
        found.put("flights", copy(each), URL)
    s3.reset()
    return found


def known(*ids: str) -> KnownSchemas:
    return KnownSchemas({"flights": frozenset(ids or IDS)})


def test_a_cold_worker_reads_each_copy_once_and_no_version_that_does_not_exist(s3: Any, store: SchemaStore) -> None:
    table = LedgerSchemas(s3, ROOT, known())
    table.prefetch("flights", IDS)
    assert s3.calls == {"get": COUNT, "list": 1}
    assert [table.find("flights", each) for each in IDS] == [copy(each) for each in IDS]
    assert s3.calls == {"get": COUNT, "list": 1}


def test_the_next_task_of_a_worker_only_lists_the_versions(s3: Any, store: SchemaStore) -> None:
    LedgerSchemas(s3, ROOT, known()).prefetch("flights", IDS)
    s3.reset()
    LedgerSchemas(s3, ROOT, known()).prefetch("flights", IDS)
    assert s3.calls == {"list": 1}


def test_a_worker_reads_only_the_copies_that_its_records_need(s3: Any, store: SchemaStore) -> None:
    LedgerSchemas(s3, ROOT, known()).prefetch("flights", ["3", "5"])
    assert s3.calls == {"get": 4}  # two copies, and two looks for a version


def test_ids_that_come_one_by_one_are_listed_in_the_end(s3: Any, store: SchemaStore) -> None:
    table = LedgerSchemas(s3, ROOT, known())
    for each in IDS:
        table.find("flights", each)
    assert s3.calls == {"get": COUNT + MIN_LISTED - 1, "list": 1}


def test_an_id_that_no_driver_has_resolved_is_not_read(s3: Any, store: SchemaStore) -> None:
    table = LedgerSchemas(s3, ROOT, known("1"))
    table.prefetch("flights", IDS)
    assert s3.calls["get"] == 2
    assert table.find("flights", "2") is None


def test_the_versions_that_exist_are_read_among_many(s3: Any, store: SchemaStore) -> None:
    store.put("flights", copy("7", version=70), URL, needs_version=True)
    s3.reset()
    table = LedgerSchemas(s3, ROOT, known())
    table.prefetch("flights", IDS)
    assert s3.calls == {"get": COUNT + 1, "list": 1}
    assert table.find("flights", "7") == copy("7", version=70)


def test_a_version_that_was_added_between_two_tasks_is_found_by_the_second(s3: Any, store: SchemaStore) -> None:
    LedgerSchemas(s3, ROOT, known()).prefetch("flights", IDS)
    store.put("flights", copy("7", version=70), URL, needs_version=True)
    table = LedgerSchemas(s3, ROOT, known())
    table.prefetch("flights", IDS)
    assert table.find("flights", "7") == copy("7", version=70)


def test_a_verification_reads_the_markers_that_exist_among_many(s3: Any, store: SchemaStore) -> None:
    store.put_unknown("flights", "7", "the schema registry does not know the schema id 7")
    s3.reset()
    table = LedgerSchemas(s3, ROOT, prefer_unknown=True)
    table.prefetch("flights", IDS)
    assert s3.calls == {"get": COUNT, "list": 1}  # 99 copies and a marker
    with pytest.raises(UnknownSchema, match="does not know the schema id 7"):
        table.find("flights", "7")
    assert table.find("flights", "8") == copy("8")


def test_a_copy_that_was_written_after_the_listing_is_found(s3: Any, store: SchemaStore) -> None:
    table = LedgerSchemas(s3, ROOT)
    table.prefetch("flights", IDS)
    assert s3.calls["list"] == 1
    store.put("flights", copy("500"), URL)
    assert table.find("flights", "500") == copy("500")


def test_a_rebuild_reads_the_marker_of_an_id_without_a_copy_among_many(s3: Any, store: SchemaStore) -> None:
    store.put_unknown("flights", "500", "the schema registry does not know the schema id 500")
    table = LedgerSchemas(s3, ROOT)
    table.prefetch("flights", [*IDS, "500", "501"])
    for schema_id_, reason in (("500", "does not know the schema id 500"), ("501", "no schema with the id 501")):
        with pytest.raises(UnknownSchema, match=reason):
            table.find("flights", schema_id_)


def test_a_resolved_schema_that_was_deleted_is_reported_among_many(s3: Any, store: SchemaStore) -> None:
    s3.delete([schema_key(ROOT, "flights", "7")])
    with pytest.raises(LedgerUnreadable, match=r"7\.json cannot be read \(it does not exist\)"):
        LedgerSchemas(s3, ROOT, known()).prefetch("flights", IDS)


def test_a_driver_reads_no_file_that_a_listing_lacks(s3: Any, store: SchemaStore) -> None:
    listed = store.with_listing(["flights"])
    assert listed.put("flights", copy("1"), URL) == copy("1")
    assert listed.put("flights", copy("500"), URL) == copy("500")
    assert s3.calls == {"list": 1, "get": 1, "put": 1}


def test_a_driver_compares_a_copy_that_was_written_after_its_listing(s3: Any, store: SchemaStore) -> None:
    listed = store.with_listing(["flights"])
    store.put("flights", copy("500", text='"int"'), URL)
    with pytest.raises(RegistryChanged, match="returns another schema for id 500"):
        listed.put("flights", copy("500"), URL)


def test_a_driver_compares_a_version_that_was_added_after_its_listing(s3: Any, store: SchemaStore) -> None:
    listed = store.with_listing(["flights"])
    store.put("flights", copy("7", version=70), URL, needs_version=True)
    with pytest.raises(RegistryChanged, match=r"as version 71 .* and the ledger as version 70"):
        listed.put("flights", copy("7", version=71), URL, needs_version=True)


def test_a_driver_finds_a_copy_that_was_written_after_its_listing(s3: Any, store: SchemaStore) -> None:
    listed = store.with_listing(["flights"])
    store.put("flights", copy("500"), URL)
    assert listed.get("flights", "500") == copy("500")


# -- field ids -------------------------------------------------------------------------------------------------------


def ids_of_a_process(s3: Any) -> LedgerFieldIds:
    found = LedgerFieldIds(s3, ROOT)
    found._cache = {}
    return found


def put_field_ids(s3: Any) -> list[str]:
    """Many files with one path each."""
    paths = [f"field{number}" for number in range(1, COUNT + 1)]
    for number, path in enumerate(paths, 1):
        s3.put(field_ids_key(ROOT, "flights", number), msgspec.json.encode(FieldIdsEntry({path: number})))
    s3.reset()
    return paths


def test_many_files_of_field_ids_are_listed_and_read_once(s3: Any) -> None:
    paths = put_field_ids(s3)
    ids = ids_of_a_process(s3)
    assert ids.find("flights", paths) == {path: number for number, path in enumerate(paths, 1)}
    assert s3.calls == {"get": COUNT, "list": 1}
    ids.add("flights", paths)
    assert s3.calls == {"get": COUNT, "list": 1}


def test_a_new_path_follows_many_files(s3: Any) -> None:
    paths = put_field_ids(s3)
    ids_of_a_process(s3).add("flights", [*paths, "new"])
    assert ids_of_a_process(s3).find("flights", ["new"])["new"] == COUNT + 1


def test_other_files_in_the_folder_of_field_ids_are_ignored(s3: Any) -> None:
    paths = put_field_ids(s3)
    for name in ("copy of 3.json", "0000000000.json.bak", "~"):
        s3.put(f"{ROOT}field-ids/flights/{name}", b"?")
    assert ids_of_a_process(s3).find("flights", paths)[paths[-1]] == COUNT


def test_a_gap_in_the_files_of_field_ids_is_reported(s3: Any) -> None:
    paths = put_field_ids(s3)
    s3.delete([field_ids_key(ROOT, "flights", 50)])
    with pytest.raises(LedgerUnreadable, match=r"0000000050\.json cannot be read .*the field field50 has no id"):
        ids_of_a_process(s3).find("flights", paths)


# -- schemas of objects ----------------------------------------------------------------------------------------------

OBJECT_SCHEMAS = [
    Schema(SchemaType.STRUCT, fields=(Field(f"field{number}", Schema(SchemaType.INT64)),)) for number in range(COUNT)
]


def objects_of_a_process(s3: Any) -> ObjectSchemas:
    ObjectSchemas._caches.clear()
    return ObjectSchemas(s3, ROOT)


def test_schemas_of_objects_that_exist_are_not_put_again(s3: Any) -> None:
    objects_of_a_process(s3).put_all(OBJECT_SCHEMAS)
    assert s3.calls == {"list": 1, "put": COUNT}
    s3.reset()
    process = objects_of_a_process(s3)
    process.put_all(OBJECT_SCHEMAS)
    process.prefetch(map(schema_id, OBJECT_SCHEMAS))
    assert s3.calls == {"list": 1}


def test_schemas_of_objects_are_read_once(s3: Any) -> None:
    objects_of_a_process(s3).put_all(OBJECT_SCHEMAS)
    s3.reset()
    process = objects_of_a_process(s3)
    process.prefetch(map(schema_id, OBJECT_SCHEMAS))
    assert [process.find(schema_id(each)) for each in OBJECT_SCHEMAS] == OBJECT_SCHEMAS
    assert s3.calls == {"get": COUNT}


def test_a_schema_beyond_the_end_of_a_long_listing_is_put(s3: Any) -> None:
    """The folder has the schemas of all topics."""
    chosen = OBJECT_SCHEMAS[:MIN_LISTED]
    last = max(object_schema_key(ROOT, schema_id(each)) for each in chosen)
    for number in range(MAX_LISTED_RATIO * len(chosen)):
        s3.put(f"{ROOT}object-schemas/{number:032x}.json", b"")
    objects_of_a_process(s3).put_all(chosen)
    assert last in s3.objects
    assert objects_of_a_process(s3).find(schema_id(chosen[0])) == chosen[0]
