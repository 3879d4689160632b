"""The schemas of a ledger as a task reads them: what is found, what is rejected, and what is read again."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from sink_job.api.errors import LedgerUnreadable
from sink_job.connect.errors import UnknownSchema
from sink_job.ledger.schemas.schema_store import SchemaStore, unknown_key
from sink_job.ledger.schemas.schema_table import KnownSchemas, LedgerSchemas
from tests.support.memory_s3 import MemoryS3
from tests.unit.ledger.schemas.test_schema_store import FLIGHT, KEY, KNOWN, ROOT, URL, changed, table


@pytest.fixture
def s3() -> MemoryS3:
    return MemoryS3()


@pytest.fixture
def store(s3: Any) -> SchemaStore:
    return SchemaStore(s3, ROOT)


def test_an_id_that_the_driver_has_not_resolved_is_not_in_the_table(s3: MemoryS3, store: SchemaStore) -> None:
    store.put("flights", changed(FLIGHT, id="9"), URL)
    assert table(s3).find("flights", "9") is None


def test_an_id_of_another_topic_is_not_in_the_table(s3: MemoryS3, store: SchemaStore) -> None:
    store.put("flights", FLIGHT, URL)
    assert table(s3).find("other", "7") is None


def test_an_unknown_id_rejects_its_records(s3: MemoryS3) -> None:
    with pytest.raises(UnknownSchema, match="the registry does not know 8"):
        table(s3).find("flights", "8")


def test_a_schema_is_read_once_per_process(s3: MemoryS3, store: SchemaStore) -> None:
    store.put("flights", FLIGHT, URL)
    table(s3).find("flights", "7")
    s3.objects.clear()
    assert table(s3).find("flights", "7") == FLIGHT


def test_each_ledger_has_its_own_schemas(s3: Any, store: SchemaStore) -> None:
    store.put("flights", FLIGHT, URL)
    table(s3).find("flights", "7")
    other = changed(FLIGHT, text='{"type": "int"}')
    SchemaStore(s3, "topics/_s3sink/other/").put("flights", other, URL)
    assert LedgerSchemas(s3, "topics/_s3sink/other/", KNOWN).find("flights", "7") == other


def test_a_resolved_schema_that_was_deleted_is_reported(s3: MemoryS3) -> None:
    with pytest.raises(LedgerUnreadable, match=rf"{KEY} cannot be read \(it does not exist\)"):
        table(s3).find("flights", "7")


def test_a_damaged_schema_is_reported(s3: MemoryS3) -> None:
    s3.put(KEY, b'{"schema": 1}')
    with pytest.raises(LedgerUnreadable, match=KEY):
        table(s3).find("flights", "7")


def test_a_rebuild_reads_every_schema_of_the_ledger(s3: MemoryS3, store: SchemaStore) -> None:
    store.put("flights", FLIGHT, URL)
    assert table(s3, known=None).find("flights", "7") == FLIGHT


def test_a_rebuild_rejects_records_whose_id_was_unknown(s3: MemoryS3, store: SchemaStore) -> None:
    store.put_unknown("flights", "8", "the registry does not know 8")
    with pytest.raises(UnknownSchema, match="the registry does not know 8"):
        table(s3, known=None).find("flights", "8")


def test_a_rebuild_decodes_records_whose_id_was_registered_later(s3: MemoryS3, store: SchemaStore) -> None:
    store.put_unknown("flights", "7", "the registry does not know 7")
    store.put("flights", FLIGHT, URL)
    assert table(s3, known=None).find("flights", "7") == FLIGHT


def test_for_a_rebuild_an_id_that_the_ledger_does_not_have_is_unknown(s3: MemoryS3) -> None:
    with pytest.raises(UnknownSchema, match="the ledger has no schema with the id 9"):
        table(s3, known=None).find("flights", "9")


def test_an_id_that_was_unknown_once_is_preferred_over_its_later_schema(s3: MemoryS3, store: SchemaStore) -> None:
    reader: Any = s3
    store.put_unknown("flights", "7", "the schema registry does not know the schema id 7")
    store.put("flights", FLIGHT, "http://registry")
    assert table(s3, known=None).find("flights", FLIGHT.id) == FLIGHT
    with pytest.raises(UnknownSchema, match="does not know the schema id 7"):
        LedgerSchemas(reader, ROOT, prefer_unknown=True).find("flights", "7")


@pytest.mark.parametrize("prefer_unknown", [False, True])
@pytest.mark.parametrize("is_marked", [False, True])
def test_a_table_reads_each_file_of_an_unknown_id_once(
    s3: MemoryS3, store: SchemaStore, prefer_unknown: bool, is_marked: bool
) -> None:
    if is_marked:
        store.put_unknown("flights", "8", "the registry does not know 8")
    reads: list[str] = []
    s3.fault = lambda call, key: reads.append(key)
    reader: Any = s3
    one = LedgerSchemas(reader, ROOT, prefer_unknown=prefer_unknown)
    for _ in range(3):
        with pytest.raises(UnknownSchema, match="8"):
            one.find("flights", "8")
    assert reads
    assert len(reads) == len(set(reads))


def test_a_table_looks_for_the_marker_of_a_known_id_once(s3: MemoryS3, store: SchemaStore) -> None:
    store.put("flights", FLIGHT, URL)
    reads: list[str] = []
    s3.fault = lambda call, key: reads.append(key)
    reader: Any = s3
    one = LedgerSchemas(reader, ROOT, prefer_unknown=True)
    assert [one.find("flights", "7") for _ in range(3)] == [FLIGHT] * 3
    assert reads == [unknown_key(ROOT, "flights", "7"), KEY]


def test_the_known_schemas_of_a_round_can_be_pickled() -> None:
    assert pickle.loads(pickle.dumps(KNOWN)) == KNOWN


def calls_of(s3: MemoryS3) -> list[str]:
    """The keys of the calls from now on."""
    found: list[str] = []
    s3.fault = lambda call, key: found.append(key)
    return found


def test_an_id_that_is_both_resolved_and_unknown_is_rejected(s3: Any, store: SchemaStore) -> None:
    """The driver reports an id as unknown for a while after the registry did not have it."""
    store.put("flights", FLIGHT, URL)
    known = KnownSchemas({"flights": frozenset({"7"})}, {"flights": {"7": "not now"}})
    with pytest.raises(UnknownSchema, match="not now"):
        LedgerSchemas(s3, ROOT, known).find("flights", "7")


def test_ids_that_the_driver_has_not_resolved_are_not_read_ahead(s3: MemoryS3, store: SchemaStore) -> None:
    store.put("flights", FLIGHT, URL)
    calls = calls_of(s3)
    table(s3).prefetch("flights", ["8", "9", "10"])
    assert calls == []
    table(s3).prefetch("flights", ["7", "8"])
    assert calls == [KEY]


def test_what_was_read_ahead_is_found_without_another_read(s3: MemoryS3, store: SchemaStore) -> None:
    store.put("flights", FLIGHT, URL)
    one = table(s3)
    one.prefetch("flights", ["7"])
    calls = calls_of(s3)
    assert one.find("flights", "7") == FLIGHT
    assert calls == []


def test_a_version_that_was_added_to_a_copy_is_read_by_each_task(s3: MemoryS3, store: SchemaStore) -> None:
    store.put("flights", changed(FLIGHT, version=None), URL)
    first = table(s3)
    found = first.find("flights", "7")
    assert found is not None
    assert found.version is None
    store.put("flights", changed(FLIGHT, version=5), URL, needs_version=True)
    again, later = first.find("flights", "7"), table(s3).find("flights", "7")
    assert again is not None
    assert later is not None
    assert (again.version, later.version) == (None, 5)
