"""Objects that contain the schema of their records, on a real S3 server and a real registry."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import fastavro
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from devtools.schema_registry.server import SchemaRegistryServer, schema_registry
from sink_job.api.enums import OutputFormat
from sink_job.codecs import formats
from sink_job.envelope.columns import Origin
from sink_job.ledger.schemas.field_ids import LedgerFieldIds, field_ids_key
from sink_job.ledger.schemas.object_schemas import ObjectSchemas
from sink_job.verify.results import FindingType
from tests.support.crash_points import crash_before_publishing
from tests.support.registry import registry_client
from tests.support.schema_log import UNKNOWN, SchemaLog, run, seed, settings
from tests.support.sink_fixture import SinkFixture
from tests.support.verify_sink import CAUGHT_UP, LEFT_OPEN, ROOT, deep, findings, key_of, shallow

pytestmark = pytest.mark.data

OUTPUTS = [OutputFormat.AVRO, OutputFormat.PARQUET]
AVRO = SchemaLog(records=21, padding=300, output=OutputFormat.AVRO)
"""A block of an Avro object has four records."""
BACKWARD: dict[str, Any] = {"compatibility": "Backward"}
"""One object holds records of both versions."""


def log_of(output: OutputFormat) -> SchemaLog:
    return replace(AVRO, output=output)


@pytest.fixture
def registry() -> Iterator[SchemaRegistryServer]:
    with schema_registry() as server:
        seed(server, AVRO)
        yield server


def forget() -> None:
    """This process reads the schemas and field ids of objects from the ledger again, as a new process does."""
    for kept in (ObjectSchemas, LedgerFieldIds):
        kept._caches.clear()


def records_of(body: bytes) -> list[Any]:
    if body.startswith(b"PAR1"):
        rows: list[Any] = pq.read_table(io.BytesIO(body)).to_pylist()
        return rows
    return list(fastavro.reader(io.BytesIO(body)))


def objects(sink_fixture: SinkFixture) -> list[Any]:
    """The records of all visible objects, by offset."""
    found = [record for body in sink_fixture.contents().values() for record in records_of(body)]
    return sorted(found, key=lambda record: int(record["offset"]))


def expect_verified(sink_fixture: SinkFixture, log: SchemaLog, **given: Any) -> None:
    """Neither `verify` nor `verify --deep` finds anything. Both have no registry, and no memory of schemas."""
    forget()
    chosen = settings(log, "http://127.0.0.1:1", **given)
    assert findings(shallow(sink_fixture, log, **chosen)) == []
    results = deep(sink_fixture, log, **chosen)
    assert findings(results) == []
    assert [each.compared.objects for each in results if each.compared] == [len(sink_fixture.keys())]


@pytest.mark.parametrize("output", OUTPUTS)
def test_objects_of_small_rounds_have_the_bytes_of_one_round(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer, output: OutputFormat
) -> None:
    log, whole = log_of(output), sink_fixture.sibling()
    run(whole, log, CAUGHT_UP, registry.url, **BACKWARD)
    for records in range(2, 21, 3):
        run(sink_fixture, replace(log, records=records), LEFT_OPEN, registry.url, max_records=1, **BACKWARD)
        forget()
    run(sink_fixture, log, CAUGHT_UP, registry.url, **BACKWARD)
    assert sink_fixture.contents() == whole.contents()
    assert [record["offset"] for record in objects(sink_fixture)] == [*range(21)]
    expect_verified(sink_fixture, log, **BACKWARD)


@pytest.mark.parametrize("output", OUTPUTS)
def test_lost_staging_is_rebuilt_with_the_same_bytes(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer, output: OutputFormat
) -> None:
    log, undisturbed = log_of(output), sink_fixture.sibling()
    run(undisturbed, log, CAUGHT_UP, registry.url, **BACKWARD)
    run(sink_fixture, replace(log, records=9), LEFT_OPEN, registry.url, max_records=2, **BACKWARD)
    sink_fixture.delete_staging()
    forget()
    run(sink_fixture, log, CAUGHT_UP, registry.url, **BACKWARD)
    assert sink_fixture.contents() == undisturbed.contents()
    expect_verified(sink_fixture, log, **BACKWARD)


@pytest.mark.parametrize("output", OUTPUTS)
def test_lost_uploads_are_rebuilt_with_the_same_bytes_without_the_registry(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer, monkeypatch: pytest.MonkeyPatch, output: OutputFormat
) -> None:
    log, undisturbed = replace(log_of(output), records=10), sink_fixture.sibling()
    run(undisturbed, log, CAUGHT_UP, registry.url, **BACKWARD)
    with registry_client(registry) as client:
        given = settings(log, registry.url, **BACKWARD)
        crash_before_publishing(sink_fixture, monkeypatch, log, **given, context={"registry": client})
    registry.kill()
    sink_fixture.abort_uploads_of("")
    forget()
    run(sink_fixture, log, CAUGHT_UP, registry.url, **BACKWARD)
    assert sink_fixture.contents() == undisturbed.contents()


@pytest.mark.parametrize("output", OUTPUTS)
def test_another_version_of_a_library_begins_other_objects(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer, monkeypatch: pytest.MonkeyPatch, output: OutputFormat
) -> None:
    log = log_of(output)
    run(sink_fixture, replace(log, records=5), LEFT_OPEN, registry.url, **BACKWARD)
    assert sink_fixture.keys() == [key_of(sink_fixture, 0, 0)]
    monkeypatch.setattr(formats, "_library", lambda settings: "another 1.0")
    run(sink_fixture, log, CAUGHT_UP, registry.url, **BACKWARD)
    assert key_of(sink_fixture, 0, 5)
    assert [record["offset"] for record in objects(sink_fixture)] == [*range(21)]
    expect_verified(sink_fixture, log, **BACKWARD)


@pytest.mark.parametrize("output", OUTPUTS)
def test_verify_deep_finds_a_changed_record(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer, output: OutputFormat
) -> None:
    log = log_of(output)
    run(sink_fixture, log, CAUGHT_UP, registry.url, **BACKWARD)
    key = key_of(sink_fixture, 0, 1)
    body, kind = sink_fixture.content(key), str(log.item(0, 7)["kind"]).encode()
    sink_fixture.s3.put(key, body.replace(kind[:40], b"f" * 40, 1))
    results = deep(sink_fixture, log, **settings(log, registry.url, **BACKWARD))
    assert ("log-0", FindingType.RECORD_MISMATCH, 7) in findings(results)


def test_verify_deep_finds_a_missing_block(sink_fixture: SinkFixture, registry: SchemaRegistryServer) -> None:
    run(sink_fixture, AVRO, CAUGHT_UP, registry.url, **BACKWARD)
    key = key_of(sink_fixture, 0, 1)
    sync = sink_fixture.content(key)[-16:]
    *kept, _ = sink_fixture.content(key).removesuffix(sync).split(sync)
    sink_fixture.s3.put(key, sync.join([*kept, b""]))
    results = deep(sink_fixture, AVRO, **settings(AVRO, registry.url, **BACKWARD))
    assert ("log-0", FindingType.RECORD_MISMATCH, 9) in findings(results)


# -- field ids ---------------------------------------------------------------------------------------------------------

TWO_FIELDS = SchemaLog(records=20, ids=(2, UNKNOWN), output=OutputFormat.PARQUET)
"""Each of the two schemas has one field that the other one lacks, at the same place."""
HEAD = {"partition": 1, "offset": 2, "kind": 3}


def field_ids(sink_fixture: SinkFixture) -> dict[int, dict[str, int]]:
    """The field ids of the columns of each object, by its first offset."""
    found = {}
    for body in sink_fixture.contents().values():
        table = pq.read_table(io.BytesIO(body))
        found[table.column("offset")[0].as_py()] = {
            column.name: int(column.metadata[b"PARQUET:field_id"]) for column in table.schema
        }
    return found


@pytest.fixture
def two_fields(sink_fixture: SinkFixture, registry: SchemaRegistryServer) -> SinkFixture:
    """A sink that has written objects with both schemas, each process with an empty memory."""
    seed(registry, TWO_FIELDS, UNKNOWN)
    for records in (1, 2, 20):
        forget()
        goal = CAUGHT_UP if records == 20 else LEFT_OPEN
        run(sink_fixture, replace(TWO_FIELDS, records=records), goal, registry.url)
    return sink_fixture


def test_fields_of_all_schemas_of_a_topic_have_different_ids(
    two_fields: SinkFixture, registry: SchemaRegistryServer
) -> None:
    seats, gate = {**HEAD, "seats": 4}, {**HEAD, "gate": 5}
    assert field_ids(two_fields) == {0: seats, 1: gate, 10: seats, 11: gate}
    expect_verified(two_fields, TWO_FIELDS)


def test_lost_objects_with_the_ids_of_another_schema_are_rebuilt_with_the_same_bytes(
    two_fields: SinkFixture, registry: SchemaRegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = two_fields.sibling()
    run(lost, replace(TWO_FIELDS, records=2), LEFT_OPEN, registry.url)
    with registry_client(registry) as client:
        given = settings(TWO_FIELDS, registry.url)
        crash_before_publishing(lost, monkeypatch, TWO_FIELDS, **given, context={"registry": client})
    lost.abort_uploads_of("")
    forget()
    run(lost, TWO_FIELDS, CAUGHT_UP, registry.url)
    assert lost.contents() == two_fields.contents()


def test_a_reset_keeps_field_ids(two_fields: SinkFixture, registry: SchemaRegistryServer) -> None:
    log = replace(TWO_FIELDS, records=40, ids=(UNKNOWN,))
    two_fields.reset(log, "Latest", **settings(log, registry.url))
    forget()
    run(two_fields, replace(log, records=60), CAUGHT_UP, registry.url)
    assert field_ids(two_fields)[40] == {**HEAD, "gate": 5}


def test_verify_deep_finds_other_field_ids(two_fields: SinkFixture, registry: SchemaRegistryServer) -> None:
    key = field_ids_key(ROOT, "log", 5)
    two_fields.s3.put(key, two_fields.s3.get(key).replace(b"gate", b"other"))
    two_fields.s3.put(field_ids_key(ROOT, "log", 6), b'{"ids": {"gate": 6}, "format": 1}')
    forget()
    (result,) = deep(two_fields, TWO_FIELDS, **settings(TWO_FIELDS, registry.url))
    assert [(each.type, each.offset) for each in result.findings] == [
        (FindingType.RECORD_MISMATCH, 1),
        (FindingType.RECORD_MISMATCH, 11),
    ]
    assert "other field ids" in result.findings[0].message


# -- statistics --------------------------------------------------------------------------------------------------------


def test_verify_finds_statistics_with_other_offsets_than_the_ledger(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = replace(AVRO, output=OutputFormat.PARQUET, ids=(1,))
    given = settings(log, registry.url)
    given["spec"]["format"] |= {"envelope": True}
    with registry_client(registry) as client:
        sink_fixture.run(replace(log, records=10), CAUGHT_UP, **given, context={"registry": client})
        assert findings(shallow(sink_fixture, log, **given)) == []
        of = Origin.of
        wrong = lambda batch, tp: replace(origin := of(batch, tp), offsets=pc.add(origin.offsets, 1))  # noqa: E731
        monkeypatch.setattr(Origin, "of", wrong)
        sink_fixture.run(log, CAUGHT_UP, **given, context={"registry": client})
    (found, other) = (each for result in shallow(sink_fixture, log, **given) for each in result.findings)
    assert [(each.type, each.offset) for each in (found, other)] == [
        (FindingType.OBJECT_MISMATCH, 10),
        (FindingType.OBJECT_MISMATCH, 20),
    ]
    assert "10 records with the offsets 11 to 20, and in the ledger 10 to 19 remain for it" in found.message
