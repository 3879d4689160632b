"""Keys with a schema in paths, and bare values, on a real S3 server and a real registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from devtools.schema_registry.server import SchemaRegistryServer, schema_registry
from sink_job.api.enums import ConverterType
from sink_job.api.errors import DataError, SchemaNotFound
from sink_job.api.parser import load_sink
from sink_job.coordinator.schemas import schema_resolver
from sink_job.registry.bare_values import BareValueSchema, bare_value_schema
from tests.support.crash_points import crash_before_publishing
from tests.support.registry import registry_client
from tests.support.schema_log import KEY_ID, KEY_SCHEMA, SchemaLog, avro_schema, run, schemas_of, seed, settings
from tests.support.sink_fixture import SinkFixture, manifest
from tests.support.verify_sink import CAUGHT_UP, LEFT_OPEN, deep, findings, shallow

pytestmark = pytest.mark.data

NOWHERE = "http://127.0.0.1:1"
KEYED = SchemaLog(records=24, keyed=True)
BARE_VALUES = SchemaLog(records=24, ids=(1,), in_wire_format=False)


@pytest.fixture
def registry() -> Iterator[SchemaRegistryServer]:
    with schema_registry() as server:
        seed(server, KEYED)
        yield server


def offsets(sink_fixture: SinkFixture) -> list[list[int]]:
    """The offsets in each visible object."""
    return list(map(sink_fixture.offsets, sink_fixture.keys()))


def expect_all(sink_fixture: SinkFixture, log: SchemaLog, **given: Any) -> None:
    """Each record is in one object, with the content that an independent reader finds. `verify` and `verify --deep`
    find the same, without registry and ConfigMap."""
    found = [json.loads(line) for body in sink_fixture.contents().values() for line in body.splitlines()]
    assert sorted(found, key=lambda line: int(line["offset"])) == [log.read(0, n) for n in range(log.records)]
    chosen = settings(log, NOWHERE, **given)
    assert findings(shallow(sink_fixture, log, **chosen)) == []
    results = deep(sink_fixture, log, **chosen)
    assert findings(results) == []
    assert [each.compared.objects for each in results if each.compared] == [len(sink_fixture.keys())]


# -- keys and headers in paths -----------------------------------------------------------------------------------------


def expect_paths(sink_fixture: SinkFixture, name: str = "example.Flight") -> None:
    """The path of each object is that of its records. `name` is that of their schema."""
    keys = sink_fixture.keys()
    for key in keys:
        for n in sink_fixture.offsets(key):
            path = f"schema_name={name}/key.id={n % 2}/header.tenant=t{n % 3}"
            assert key.split("/", 2)[2].rpartition("/")[0] == path


@pytest.mark.parametrize("log", [KEYED, replace(BARE_VALUES, keyed=True)], ids=["values in wire format", "bare values"])
def test_paths_have_fields_of_keys_with_a_schema_and_headers(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer, log: SchemaLog
) -> None:
    run(sink_fixture, log, CAUGHT_UP, registry.url, max_records=7)
    expect_paths(sink_fixture)
    expect_all(sink_fixture, log)


def test_paths_have_fields_of_protobuf_keys(sink_fixture: SinkFixture) -> None:
    log = replace(KEYED, converter=ConverterType.PROTOBUF, key_converter=ConverterType.PROTOBUF)
    with schema_registry() as server:
        seed(server, log)
        run(sink_fixture, log, CAUGHT_UP, server.url, max_records=7)
    expect_paths(sink_fixture, "Flight")
    expect_all(sink_fixture, log)


def test_lost_uploads_with_keys_in_paths_are_rebuilt_without_the_registry(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed, log = sink_fixture.sibling(), replace(KEYED, records=10)
    run(undisturbed, log, CAUGHT_UP, registry.url)
    with registry_client(registry) as client:
        given = settings(log, registry.url)
        crash_before_publishing(sink_fixture, monkeypatch, log, **given, context={"registry": client})
    registry.kill()
    sink_fixture.abort_uploads_of("")
    run(sink_fixture, log, CAUGHT_UP, registry.url)
    assert sink_fixture.contents() == undisturbed.contents()
    expect_all(sink_fixture, log)


def test_an_unknown_id_of_a_key_stops_the_sink_before_its_record(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_resolver, "PAUSES_S", (0.0,))
    registry.reset()
    seed(registry, replace(KEYED, keyed=False))
    given: dict[str, Any] = {"errors": {"tolerance": "All"}}
    with pytest.raises(SchemaNotFound, match=rf"the schema id {KEY_ID} \(of the key\) of the record at log-0 offset 0"):
        run(sink_fixture, KEYED, CAUGHT_UP, registry.url, **given)
    assert sink_fixture.contents() == {}
    with pytest.raises(DataError, match=rf"does not know the schema id {KEY_ID} \(of the key\)") as raised:
        run(sink_fixture, KEYED, CAUGHT_UP, registry.url, unknown_ids="Reject")
    assert raised.value.offset == 0
    registry.seed("log-key", 1, KEY_ID, KEY_SCHEMA)
    run(sink_fixture, KEYED, CAUGHT_UP, registry.url)
    expect_all(sink_fixture, KEYED)


# -- bare values --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("converter", [ConverterType.AVRO, ConverterType.PROTOBUF, ConverterType.JSON_SCHEMA])
def test_bare_values_have_the_schema_of_the_manifest(sink_fixture: SinkFixture, converter: ConverterType) -> None:
    log = replace(BARE_VALUES, converter=converter)
    run(sink_fixture, log, CAUGHT_UP, NOWHERE, max_records=7)
    expect_all(sink_fixture, log)


def test_a_changed_schema_starts_new_objects_and_older_ones_are_rebuilt_with_the_previous_one(
    sink_fixture: SinkFixture,
) -> None:
    run(sink_fixture, replace(BARE_VALUES, records=7), LEFT_OPEN, NOWHERE)
    assert sink_fixture.keys() == []
    sink_fixture.delete_staging()
    chosen = settings(BARE_VALUES, NOWHERE)
    chosen["spec"]["format"]["schema"] = {"text": json.dumps(avro_schema(2))}
    found = bare_value_schema(load_sink(manifest("archive", NOWHERE, **chosen)).spec.format)
    assert found is not None
    later = replace(BARE_VALUES, records=24, ids=(1,) * 7 + (2,) * 17)
    sink_fixture.run(later, CAUGHT_UP, **chosen, context={"registry": BareValueSchema(found)})
    assert offsets(sink_fixture)[0] == list(range(7))
    expect_all(sink_fixture, later)


def test_lost_uploads_of_bare_values_are_rebuilt_from_the_copy_of_the_schema(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed, log = sink_fixture.sibling(), replace(BARE_VALUES, records=10)
    run(undisturbed, log, CAUGHT_UP, NOWHERE)
    given = settings(log, NOWHERE)
    crash_before_publishing(sink_fixture, monkeypatch, log, **given, context={"registry": schemas_of(log, None)})
    sink_fixture.abort_uploads_of("")
    run(sink_fixture, log, CAUGHT_UP, NOWHERE)
    assert sink_fixture.contents() == undisturbed.contents()
    expect_all(sink_fixture, log)
