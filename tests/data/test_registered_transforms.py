"""Transforms of values with the schema of a registry, on a real S3 server and a real registry: objects, gaps, changes
of the list, rebuilds and `verify --deep`."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest

from devtools.schema_registry.server import SchemaRegistryServer, schema_registry
from sink_job.api.enums import ConverterType, OutputFormat
from sink_job.coordinator.schemas import schema_resolver
from tests.data.test_repair import repair
from tests.support.crash_points import crash_before_publishing
from tests.support.registry import registry_client
from tests.support.schema_log import UNKNOWN, SchemaLog, run, schemas_of, seed, settings
from tests.support.sink_fixture import SinkFixture
from tests.support.verify_sink import CAUGHT_UP, LEFT_OPEN, deep

pytestmark = pytest.mark.data

LOG = SchemaLog(records=23, transformed=True)
CONVERTERS = [ConverterType.AVRO, ConverterType.PROTOBUF, ConverterType.JSON_SCHEMA]
DROP_KIND: dict[str, Any] = {"spec": {"transforms": [{"type": "Drop", "fields": ["kind"]}]}}


@pytest.fixture
def registry() -> Iterator[SchemaRegistryServer]:
    with schema_registry() as server:
        yield server


def expected(log: SchemaLog) -> dict[int, dict[str, Any]]:
    """The transformed records by their offsets, from an independent reader of the values."""
    found: dict[int, dict[str, Any]] = {}
    for offset in range(log.records):
        if offset != 1:
            read: Any = dict(log.read(0, offset))  # type: ignore[call-overload]
            read |= {"partition": str(read["partition"]), "topic": "log", "of": read.pop("kind")}
            found[offset] = read
    return found


def records(sink_fixture: SinkFixture, output: OutputFormat) -> Iterator[dict[str, Any]]:
    """The records of all objects."""
    for body in sink_fixture.contents().values():
        match output:
            case OutputFormat.AVRO:
                rows: Any = fastavro.reader(io.BytesIO(body))
                yield from rows
            case OutputFormat.PARQUET:
                yield from pq.read_table(io.BytesIO(body)).to_pylist()
            case _:
                yield from map(json.loads, body.splitlines())


@pytest.mark.parametrize("output", [OutputFormat.JSON, OutputFormat.AVRO, OutputFormat.PARQUET])
@pytest.mark.parametrize("converter", CONVERTERS)
def test_objects_have_the_transformed_records_and_the_filtered_one_is_a_gap(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer, converter: ConverterType, output: OutputFormat
) -> None:
    log = replace(LOG, converter=converter, output=output)
    seed(registry, log)
    run(sink_fixture, log, LEFT_OPEN, registry.url, max_records=7)
    run(sink_fixture, log, CAUGHT_UP, registry.url, max_records=7)
    found = {int(each["offset"]): dict(each) for each in records(sink_fixture, output)}
    assert found == expected(log)
    (verdict,) = deep(sink_fixture, log, **settings(log, registry.url))
    assert (verdict.findings, verdict.gaps) == ((), 1)


def test_two_versions_are_projected_with_their_transformed_schemas(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer
) -> None:
    seed(registry, LOG)
    run(sink_fixture, LOG, CAUGHT_UP, registry.url, compatibility="Backward")
    found = [set(map(tuple, map(sorted, each))) for each in by_object(sink_fixture)]
    assert all(len(fields) == 1 for fields in found)
    assert len(found) < LOG.records / 2
    (verdict,) = deep(sink_fixture, LOG, **settings(LOG, registry.url, "Backward"))
    assert verdict.findings == ()


def by_object(sink_fixture: SinkFixture) -> list[list[dict[str, Any]]]:
    return [list(map(json.loads, body.splitlines())) for body in sink_fixture.contents().values()]


def test_a_record_with_an_unknown_schema_is_dropped_and_the_others_are_transformed(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_resolver, "PAUSES_S", (0.0, 0.0))
    log = replace(LOG, ids=(1, 2, UNKNOWN))
    given: dict[str, Any] = {"unknown_ids": "Reject", "errors": {"tolerance": "All"}}
    seed(registry, log)
    run(sink_fixture, log, CAUGHT_UP, registry.url, **given)
    found = sorted(int(each["offset"]) for each in records(sink_fixture, OutputFormat.JSON))
    assert found == [offset for offset in range(log.records) if offset != 1 and log.id(offset) != UNKNOWN]
    (verdict,) = deep(sink_fixture, log, **settings(log, registry.url, **given))
    assert verdict.findings == ()


def test_what_is_open_keeps_its_list(sink_fixture: SinkFixture, registry: SchemaRegistryServer) -> None:
    """A change of the list closes the open objects (P8)."""
    log = replace(LOG, transformed=False, ids=(1,))
    seed(registry, log)
    run(sink_fixture, replace(log, records=7, transformed=True), LEFT_OPEN, registry.url)
    given = merged(settings(log, registry.url), DROP_KIND)
    with registry_client(urls=(registry.url,)) as client:
        sink_fixture.run(log, CAUGHT_UP, context={"registry": schemas_of(log, client)}, **given)
    fields = [{tuple(sorted(each)) for each in o} for o in by_object(sink_fixture)]
    assert [len(each) for each in fields] == [1] * len(fields)
    found = {each["offset"]: "kind" in each or "of" in each for each in records(sink_fixture, OutputFormat.JSON)}
    assert found == {offset: offset < 7 for offset in range(log.records) if offset != 1}
    (verdict,) = deep(sink_fixture, log, **given)
    assert (verdict.findings, verdict.gaps) == ((), 1)


def merged(given: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    return {**given, "spec": {**given["spec"], **more["spec"]}}


@pytest.mark.parametrize("output", [OutputFormat.JSON, OutputFormat.PARQUET])
def test_lost_uploads_and_deleted_objects_are_rebuilt_with_their_list(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer, monkeypatch: pytest.MonkeyPatch, output: OutputFormat
) -> None:
    log = replace(LOG, output=output)
    seed(registry, log)
    with registry_client(urls=(registry.url,)) as client:
        context = {"registry": schemas_of(log, client)}
        crash_before_publishing(sink_fixture, monkeypatch, log, context=context, **settings(log, registry.url))
    sink_fixture.abort_uploads_of("")
    sink_fixture.delete_staging()
    run(sink_fixture, log, CAUGHT_UP, registry.url)
    assert {int(each["offset"]): each for each in records(sink_fixture, output)} == expected(log)
    right = sink_fixture.contents()
    sink_fixture.s3.delete([*right])
    report = repair(sink_fixture, log, **settings(log, registry.url))
    assert len(report.objects) == len(right)
    assert sink_fixture.contents() == right
