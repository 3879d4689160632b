"""Records that are projected to the schema of their object, on a real S3 server and a real registry."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from devtools.faults.s3_proxy import FaultProxy, Point
from devtools.faults.s3_requests import Predicate
from devtools.s3 import S3Server
from devtools.schema_registry.server import SchemaRegistryServer, schema_registry
from sink_job.api.enums import ConverterType
from sink_job.api.errors import DataError
from sink_job.ledger.schemas.object_schemas import ObjectSchemas
from tests.support.crash_points import crash_before_publishing
from tests.support.forked import killed_at
from tests.support.registry import registry_client
from tests.support.schema_log import OPTIONAL, SchemaLog, run, seed, settings
from tests.support.sink_fixture import SinkFixture
from tests.support.verify_sink import CAUGHT_UP, LEFT_OPEN, deep, findings, shallow

pytestmark = pytest.mark.data

LOG = SchemaLog(records=21)
CONVERTERS = [ConverterType.AVRO, ConverterType.JSON_SCHEMA, ConverterType.CONNECT_JSON]
GROUPS = {
    "Backward": [[0], [*range(1, 11)], [*range(11, 21)]],
    "Full": [[0], [*range(1, 11)], [*range(11, 21)]],
    "Forward": [[*range(10)], [*range(10, 20)], [20]],
}
"""The offsets of each object if the versions 1 and 2 alternate, with flushSize 10."""


@pytest.fixture
def registry() -> Iterator[SchemaRegistryServer]:
    with schema_registry() as server:
        seed(server, LOG)
        yield server


def forget() -> None:
    """This process reads the schemas of objects from the ledger again, as a new process does."""
    ObjectSchemas._caches.clear()


def objects(sink_fixture: SinkFixture) -> list[list[dict[str, Any]]]:
    """The records of each visible object, ordered by their first offsets."""
    found = [[json.loads(line) for line in body.splitlines()] for body in sink_fixture.contents().values()]
    return sorted(found, key=lambda each: int(each[0]["offset"]))


def expected(log: SchemaLog, groups: list[list[int]]) -> list[list[dict[str, Any]]]:
    """The records of each object as an independent reader finds them, with the fields of the object's first record."""
    return [[projected(log, each, offset) for offset in each] for each in groups]


def projected(log: SchemaLog, group: list[int], offset: int) -> dict[str, Any]:
    record = log.read(0, offset)
    assert isinstance(record, dict)
    field = OPTIONAL[log.id(group[0])]
    head = {name: record[name] for name in ("partition", "offset", "kind")}
    return head | ({field: record.get(field)} if field else {})


def expect_verified(sink_fixture: SinkFixture, log: SchemaLog, compatibility: str, **given: Any) -> None:
    """Neither `verify` nor `verify --deep` finds anything. Both have no registry, and no memory of schemas."""
    forget()
    chosen = settings(log, "http://127.0.0.1:1", compatibility, **given)
    assert findings(shallow(sink_fixture, log, **chosen)) == []
    results = deep(sink_fixture, log, **chosen)
    assert findings(results) == []
    assert [each.compared.objects for each in results if each.compared] == [len(sink_fixture.keys())]


@pytest.mark.parametrize("compatibility", GROUPS)
@pytest.mark.parametrize("converter", CONVERTERS)
def test_records_have_the_schema_of_their_object(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer, converter: ConverterType, compatibility: str
) -> None:
    registry.reset()
    log = replace(LOG, converter=converter)
    seed(registry, log)
    run(sink_fixture, log, CAUGHT_UP, registry.url, compatibility=compatibility, max_records=8)
    assert objects(sink_fixture) == expected(log, GROUPS[compatibility])
    expect_verified(sink_fixture, log, compatibility, max_records=8)


@pytest.mark.parametrize("compatibility", GROUPS)
def test_an_object_keeps_its_schema_over_drivers_that_read_other_versions_only(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer, compatibility: str
) -> None:
    ids = (2, 1, 1) if compatibility != "Forward" else (1, 2, 2)
    log = replace(LOG, records=9, ids=ids * 3)
    for records in (1, 2, 3, 9):
        run(sink_fixture, replace(log, records=records), LEFT_OPEN, registry.url, compatibility=compatibility)
        forget()
    run(sink_fixture, log, CAUGHT_UP, registry.url, compatibility=compatibility)
    assert objects(sink_fixture) == expected(log, [[*range(9)]])
    expect_verified(sink_fixture, log, compatibility)


def test_each_path_has_one_object_with_one_schema(sink_fixture: SinkFixture, registry: SchemaRegistryServer) -> None:
    log = replace(LOG, records=12, paths=3)
    given = settings(log, registry.url, "Forward", flush_size=12)
    given["spec"] |= {"partitioner": {"type": "Field", "fields": ["kind"]}}
    with registry_client(registry) as client:
        sink_fixture.run(log, CAUGHT_UP, **given, context={"registry": client})
    # the offsets 4 and 8 have an older version than the open object of their path: all objects close
    groups = [[0, 3], [1], [2], [4, 7], [5], [6], [8, 11], [9], [10]]
    assert objects(sink_fixture) == expected(log, groups)
    forget()
    assert findings(deep(sink_fixture, log, **given)) == []


# -- crashes and rebuilds ----------------------------------------------------------------------------------------------

CRASHED = SchemaLog(records=7)
GIVEN: dict[str, Any] = {"flush_size": 5, "max_records": 2, "compatibility": "Backward"}
EFFECTS: dict[str, Predicate] = {
    "the put of an object's schema": lambda r: r.kind == "PutObject" and "/object-schemas/" in r.key,
    "the begin of an upload": lambda r: r.kind == "CreateMultipartUpload",
}


@pytest.mark.parametrize("point", ["before", "after"])
@pytest.mark.parametrize("effect", EFFECTS)
def test_a_crash_at_an_effect_leaves_the_same_objects_and_no_orphans(
    s3: S3Server, registry: SchemaRegistryServer, tmp_path: Path, effect: str, point: Point
) -> None:
    undisturbed = fresh(s3, tmp_path, 0)
    with FaultProxy(s3.endpoint) as proxy:
        run(undisturbed.through(proxy), CRASHED, CAUGHT_UP, registry.url, **GIVEN)
        count = proxy.count(EFFECTS[effect])
    assert count > 1
    assert objects(undisturbed) == expected(CRASHED, [[0], [1, 2, 3, 4, 5], [6]])
    for nth in range(1, count + 1):
        sink_fixture = fresh(s3, tmp_path, nth)
        with FaultProxy(s3.endpoint) as proxy:
            work = partial(run, sink_fixture.through(proxy), CRASHED, CAUGHT_UP, registry.url, **GIVEN)
            assert killed_at(work, proxy, EFFECTS[effect], point, nth)
        run(sink_fixture, CRASHED, CAUGHT_UP, registry.url, **GIVEN)
        assert sink_fixture.contents() == undisturbed.contents()
        assert sink_fixture.orphans_after(CAUGHT_UP, CRASHED, settings(CRASHED, registry.url, **GIVEN)) == []


def fresh(s3: S3Server, folder: Path, number: int) -> SinkFixture:
    (folder / str(number)).mkdir()
    return SinkFixture.new(s3.endpoint, folder / str(number))


@pytest.mark.parametrize("compatibility", ["Backward", "Forward"])
@pytest.mark.parametrize("converter", CONVERTERS)
def test_lost_uploads_of_projected_objects_are_rebuilt_byte_for_byte_without_the_registry(
    sink_fixture: SinkFixture,
    registry: SchemaRegistryServer,
    monkeypatch: pytest.MonkeyPatch,
    converter: ConverterType,
    compatibility: str,
) -> None:
    registry.reset()
    log = replace(LOG, records=10, converter=converter)
    seed(registry, log)
    undisturbed = sink_fixture.sibling()
    run(undisturbed, log, CAUGHT_UP, registry.url, compatibility=compatibility)
    with registry_client(registry) as client:
        given = settings(log, registry.url, compatibility)
        crash_before_publishing(sink_fixture, monkeypatch, log, **given, context={"registry": client})
    registry.kill()
    sink_fixture.abort_uploads_of("")
    forget()
    run(sink_fixture, log, CAUGHT_UP, registry.url, compatibility=compatibility)
    assert sink_fixture.contents() == undisturbed.contents()
    expect_verified(sink_fixture, log, compatibility)


def test_a_lost_remainder_of_a_projected_object_is_rebuilt(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer
) -> None:
    run(sink_fixture, replace(LOG, records=7), LEFT_OPEN, registry.url, compatibility="Backward")
    sink_fixture.delete_staging()
    forget()
    run(sink_fixture, LOG, CAUGHT_UP, registry.url, compatibility="Backward")
    assert objects(sink_fixture) == expected(LOG, GROUPS["Backward"])
    expect_verified(sink_fixture, LOG, "Backward")


def test_verify_deep_finds_a_record_that_is_not_projected(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer
) -> None:
    run(sink_fixture, LOG, CAUGHT_UP, registry.url, compatibility="Backward")
    (key,) = (key for key in sink_fixture.contents() if "+0000000001." in key)
    changed = sink_fixture.contents()[key].replace(b',"seats":null}', b"}", 1)
    sink_fixture.s3.put(key, changed)
    results = deep(sink_fixture, LOG, **settings(LOG, registry.url, "Backward"))
    assert ("log-0", "RecordMismatch", 1) in findings(results)


# -- data errors -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class WithoutVersion(SchemaLog):
    """Envelopes; the schema of the offset 2 has no version."""

    converter: ConverterType = ConverterType.CONNECT_JSON

    def value(self, partition: int, offset: int) -> bytes:
        envelope = json.loads(super().value(partition, offset))
        if offset == 2:
            del envelope["schema"]["version"]
        return json.dumps(envelope).encode()


def test_a_record_whose_schema_has_no_version_stops_the_sink_before_it(sink_fixture: SinkFixture) -> None:
    log = WithoutVersion(records=5)
    with pytest.raises(DataError) as raised:
        run(sink_fixture, log, CAUGHT_UP, "", compatibility="Forward")
    assert (raised.value.offset, raised.value.exit_code) == (2, 4)
    assert "is in no version of its subject" in str(raised.value)


def test_with_tolerance_all_a_record_whose_schema_has_no_version_is_dropped(sink_fixture: SinkFixture) -> None:
    log, errors = WithoutVersion(records=5), {"tolerance": "All"}
    run(sink_fixture, log, CAUGHT_UP, "", compatibility="Forward", errors=errors)
    assert objects(sink_fixture) == expected(log, [[0, 1, 3, 4]])
    expect_verified(sink_fixture, log, "Forward", errors=errors)


def test_a_schema_in_no_version_of_its_subject_is_a_data_error(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer
) -> None:
    log, errors = replace(LOG, records=6, ids=(1, 2, 9)), {"tolerance": "All"}
    registry.seed("other-value", 1, 9, {"type": "record", "name": "example.Other", "fields": []})
    run(sink_fixture, log, CAUGHT_UP, registry.url, compatibility="Backward", errors=errors)
    assert objects(sink_fixture) == expected(log, [[0], [1, 3, 4]])
    expect_verified(sink_fixture, log, "Backward", errors=errors)
