"""Records with a schema on a real S3 server and a real registry: objects, crashes, unknown ids, rebuilds, `verify`."""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from devtools.faults.s3_proxy import Drop, FaultProxy, Point
from devtools.faults.s3_requests import Predicate
from devtools.s3 import S3Server
from devtools.schema_registry.server import SchemaRegistryServer, schema_registry
from sink_job.api.enums import ConverterType
from sink_job.api.errors import DataError, RegistryChanged, SchemaNotFound, TransientError
from sink_job.coordinator.schemas import schema_resolver
from tests.support.crash_points import crash_before_publishing
from tests.support.forked import killed_at
from tests.support.registry import registry_client
from tests.support.schema_log import TWIN, UNKNOWN, SchemaLog, avro_schema, register, run, seed, settings
from tests.support.sink_fixture import SinkFixture
from tests.support.verify_sink import CAUGHT_UP, LEFT_OPEN, deep, findings, shallow

pytestmark = pytest.mark.data

LOG = SchemaLog(records=40)
WITH_UNKNOWN = SchemaLog(records=24, ids=(1, 2, 1, UNKNOWN))
TOLERANT: dict[str, Any] = {"errors": {"tolerance": "All"}}
DROPPING: dict[str, Any] = {"unknown_ids": "Reject", **TOLERANT}
"""Records with an unknown id are dropped."""
CONVERTERS = [ConverterType.AVRO, ConverterType.PROTOBUF, ConverterType.JSON_SCHEMA, ConverterType.CONNECT_JSON]


@pytest.fixture
def registry() -> Iterator[SchemaRegistryServer]:
    """A registry with the two versions of Avro."""
    with schema_registry() as server:
        seed(server, LOG)
        yield server


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """An id that the registry does not know is asked for again at once."""
    monkeypatch.setattr(schema_resolver, "PAUSES_S", (0.0, 0.0))


def lines(sink_fixture: SinkFixture) -> dict[str, list[dict[str, Any]]]:
    """The content of each visible object."""
    return {key: [json.loads(line) for line in body.splitlines()] for key, body in sink_fixture.contents().items()}


def offsets(sink_fixture: SinkFixture) -> list[list[int]]:
    """The offsets in each visible object."""
    return [[line["offset"] for line in each] for each in lines(sink_fixture).values()]


def expect_records(sink_fixture: SinkFixture, log: SchemaLog, *, without: frozenset[int] = frozenset()) -> None:
    """Each record is in one object, with the content that an independent reader finds, beside records of its version
    only."""
    objects = lines(sink_fixture)
    found = sorted((line for each in objects.values() for line in each), key=lambda line: line["offset"])
    assert found == [log.read(0, offset) for offset in range(log.records) if offset not in without]
    for each in objects.values():
        assert len({frozenset(line) for line in each}) == 1


def expect_verified(sink_fixture: SinkFixture, log: SchemaLog, **given: Any) -> None:
    """Neither `verify` nor `verify --deep` finds anything. Both have no registry."""
    chosen = settings(log, "http://127.0.0.1:1", **given)
    assert findings(shallow(sink_fixture, log, **chosen)) == []
    results = deep(sink_fixture, log, **chosen)
    assert findings(results) == []
    assert [each.compared.objects for each in results if each.compared] == [len(sink_fixture.keys())]


# -- two versions alternate --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("converter", CONVERTERS)
def test_with_separate_two_versions_have_twice_the_objects_of_one(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer, converter: ConverterType
) -> None:
    registry.reset()
    log = replace(LOG, converter=converter)
    seed(registry, log)
    one = sink_fixture.sibling()
    run(one, replace(log, ids=(1,)), CAUGHT_UP, registry.url)
    run(sink_fixture, log, CAUGHT_UP, registry.url)
    assert (len(one.keys()), len(sink_fixture.keys())) == (4, 8)
    expect_records(one, replace(log, ids=(1,)))
    expect_records(sink_fixture, log)
    expect_verified(sink_fixture, log)


@pytest.mark.parametrize("converter", CONVERTERS)
def test_with_none_each_change_of_the_version_closes_the_object(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer, converter: ConverterType
) -> None:
    registry.reset()
    log = replace(LOG, records=8, ids=(1, 1, 2), converter=converter)
    seed(registry, log)
    run(sink_fixture, log, CAUGHT_UP, registry.url, compatibility="None")
    assert [[line["offset"] for line in each] for each in lines(sink_fixture).values()] == [
        [0, 1],
        [2],
        [3, 4],
        [5],
        [6, 7],
    ]
    expect_records(sink_fixture, log)
    expect_verified(sink_fixture, log, compatibility="None")


def test_with_none_two_alternating_versions_have_an_object_for_each_record(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer
) -> None:
    log = replace(LOG, records=6)
    run(sink_fixture, log, CAUGHT_UP, registry.url, compatibility="None")
    assert offsets(sink_fixture) == [[n] for n in range(6)]


def test_each_path_has_an_object_for_each_schema(sink_fixture: SinkFixture, registry: SchemaRegistryServer) -> None:
    log = replace(LOG, records=12, paths=3)
    given = settings(log, registry.url, flush_size=12)
    given["spec"] |= {"partitioner": {"type": "Field", "fields": ["kind"]}}
    with registry_client(registry) as client:
        sink_fixture.run(log, CAUGHT_UP, **given, context={"registry": client})
    paths = [key.split("/")[2] for key in lines(sink_fixture)]
    assert paths == ["kind=k0", "kind=k0", "kind=k1", "kind=k1", "kind=k2", "kind=k2"]
    assert offsets(sink_fixture) == [[0, 6], [3, 9], [1, 7], [4, 10], [2, 8], [5, 11]]
    assert findings(deep(sink_fixture, log, **given)) == []


def test_the_output_bytes_has_the_values_as_they_came(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer
) -> None:
    log = replace(LOG, records=4)
    given = settings(log, registry.url)
    given["spec"]["format"] |= {"output": "Bytes", "bytes": {"separator": ""}}
    with registry_client(registry) as client:
        sink_fixture.run(log, CAUGHT_UP, **given, context={"registry": client})
    assert [*sink_fixture.contents().values()] == [log.value(0, 0) + log.value(0, 2), log.value(0, 1) + log.value(0, 3)]
    assert findings(deep(sink_fixture, log, **given)) == []


# -- crashes -----------------------------------------------------------------------------------------------------------

CRASHED = SchemaLog(records=4)
GIVEN: dict[str, Any] = {"flush_size": 4, "max_records": 2}
"""A round that resolves the ids, then two rounds of two records, and objects of both versions that close together."""

EFFECTS: dict[str, Predicate] = {
    "the put of a schema": lambda r: r.kind == "PutObject" and "/schemas/" in r.key,
    "a record": lambda r: r.kind == "PutObject" and "/ledger/" in r.key and not r.key.endswith(f"{1:020d}.json.gz"),
    "the begin of an upload": lambda r: r.kind == "CreateMultipartUpload",
    "a completion": lambda r: r.kind == "CompleteMultipartUpload",
}
"""The effects of a round that schemas change. `test_converter_kills` has all effects, on a bucket in memory."""


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
    for nth in range(1, count + 1):
        sink_fixture = fresh(s3, tmp_path, nth)
        with FaultProxy(s3.endpoint) as proxy:
            work = partial(run, sink_fixture.through(proxy), CRASHED, CAUGHT_UP, registry.url, **GIVEN)
            assert killed_at(work, proxy, EFFECTS[effect], point, nth)
        run(sink_fixture, CRASHED, CAUGHT_UP, registry.url, **GIVEN)
        expect_same(sink_fixture, undisturbed, registry.url)


def test_a_lost_reply_to_the_put_of_a_schema_changes_nothing(
    s3: S3Server, registry: SchemaRegistryServer, tmp_path: Path
) -> None:
    undisturbed, sink_fixture = fresh(s3, tmp_path, 0), fresh(s3, tmp_path, 1)
    run(undisturbed, CRASHED, CAUGHT_UP, registry.url, **GIVEN)
    with FaultProxy(s3.endpoint) as proxy:
        proxy.when(EFFECTS["the put of a schema"], Drop(), point="after", nth=1)
        run(sink_fixture.through(proxy), CRASHED, CAUGHT_UP, registry.url, **GIVEN)
    expect_same(sink_fixture, undisturbed, registry.url)


def fresh(s3: S3Server, folder: Path, number: int) -> SinkFixture:
    (folder / str(number)).mkdir()
    return SinkFixture.new(s3.endpoint, folder / str(number))


def expect_same(sink_fixture: SinkFixture, undisturbed: SinkFixture, url: str) -> None:
    assert sink_fixture.contents() == undisturbed.contents()
    assert sink_fixture.group() == undisturbed.group()
    assert sink_fixture.orphans_after(CAUGHT_UP, CRASHED, settings(CRASHED, url, **GIVEN)) == []


# -- ids that the registry does not know -------------------------------------------------------------------------------


@pytest.mark.parametrize("tolerance", ["None", "All"])
def test_an_unknown_id_ends_the_sink_and_drops_no_record(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer, quick: None, tolerance: str
) -> None:
    given: dict[str, Any] = {"errors": {"tolerance": tolerance}}
    with pytest.raises(SchemaNotFound, match="does not know the schema id 9 of the record at log-0 offset 3") as raised:
        run(sink_fixture, WITH_UNKNOWN, CAUGHT_UP, registry.url, **given)
    assert raised.value.exit_code == 75
    assert sink_fixture.ledger_access().ledger.load().partitions["log-0"].next == 3, "the records before it are written"
    seed(registry, WITH_UNKNOWN, UNKNOWN)
    run(sink_fixture, WITH_UNKNOWN, CAUGHT_UP, registry.url, **given)
    expect_records(sink_fixture, WITH_UNKNOWN)
    expect_verified(sink_fixture, WITH_UNKNOWN, **given)


def test_a_record_with_an_unknown_id_can_be_skipped_alone(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer, quick: None
) -> None:
    """Each fourth record has such an id."""
    for offset in range(3, 24, 4):
        listed = [{"topic": "log", "partition": 0, "offset": each} for each in range(3, offset, 4)]
        with pytest.raises(SchemaNotFound, match=rf"kubectl s3sink skip log -n default log-0@{offset},"):
            run(sink_fixture, WITH_UNKNOWN, CAUGHT_UP, registry.url, errors={"skip": listed})
    all_ = {"skip": [{"topic": "log", "partition": 0, "offset": each} for each in range(3, 24, 4)]}
    run(sink_fixture, WITH_UNKNOWN, CAUGHT_UP, registry.url, errors=all_)
    expect_records(sink_fixture, WITH_UNKNOWN, without=frozenset(range(3, 24, 4)))
    expect_verified(sink_fixture, WITH_UNKNOWN, errors=all_)


def test_an_id_that_a_replica_of_the_registry_does_not_know_yet_drops_no_record(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_resolver, "PAUSES_S", (0.0, 0.125))

    class Lag(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            if timeout == 0.125:  # the second pause: the replica has caught up
                seed(registry, WITH_UNKNOWN, UNKNOWN)
            return super().wait(timeout)

    run(sink_fixture, WITH_UNKNOWN, CAUGHT_UP, registry.url, **TOLERANT, context={"stop": Lag()})
    expect_records(sink_fixture, WITH_UNKNOWN)


def test_with_unknown_ids_rejected_the_sink_stops_before_their_first_record(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer, quick: None
) -> None:
    given: dict[str, Any] = {"unknown_ids": "Reject"}
    with pytest.raises(DataError) as raised:
        run(sink_fixture, WITH_UNKNOWN, CAUGHT_UP, registry.url, **given)
    error = raised.value
    assert (error.topic, error.partition, error.offset, error.exit_code) == ("log", 0, 3, 4)
    assert "does not know the schema id 9" in str(error)
    seed(registry, WITH_UNKNOWN, UNKNOWN)
    run(sink_fixture, WITH_UNKNOWN, CAUGHT_UP, registry.url, **given)
    expect_records(sink_fixture, WITH_UNKNOWN)
    expect_verified(sink_fixture, WITH_UNKNOWN, **given)


def test_with_tolerance_all_rejected_records_are_dropped_and_counted(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer, quick: None
) -> None:
    given = settings(WITH_UNKNOWN, registry.url, **DROPPING)
    with registry_client(registry) as client:
        driver = sink_fixture.driver(WITH_UNKNOWN, CAUGHT_UP, **given, context={"registry": client})
        driver.run()
    assert driver.progress.report().totals.dropped == 6
    expect_records(sink_fixture, WITH_UNKNOWN, without=unknown_offsets(24))
    expect_verified(sink_fixture, WITH_UNKNOWN, **DROPPING)


def unknown_offsets(end: int) -> frozenset[int]:
    return frozenset(range(3, end, 4))


def expect_same_after_lost_uploads(
    sink_fixture: SinkFixture,
    registry: SchemaRegistryServer,
    monkeypatch: pytest.MonkeyPatch,
    sections: Mapping[str, Any],
    *,
    is_registered: bool,
) -> None:
    """A driver ends before it publishes, and all its uploads are lost: the next one writes the objects of an
    undisturbed one. `is_registered`: the unknown schema id is registered in between."""
    undisturbed = sink_fixture.sibling()
    run(undisturbed, WITH_UNKNOWN, CAUGHT_UP, registry.url, **sections)
    given = settings(WITH_UNKNOWN, registry.url, **sections)
    with registry_client(registry) as client:
        crash_before_publishing(sink_fixture, monkeypatch, WITH_UNKNOWN, **given, context={"registry": client})
    if is_registered:
        seed(registry, WITH_UNKNOWN, UNKNOWN)
    sink_fixture.abort_uploads_of("")
    run(sink_fixture, WITH_UNKNOWN, CAUGHT_UP, registry.url, **sections)
    assert sink_fixture.contents() == undisturbed.contents()


@pytest.mark.parametrize("is_registered", [False, True], ids=["still unknown", "registered"])
def test_lost_uploads_are_rebuilt_without_the_records_whose_id_was_unknown(
    sink_fixture: SinkFixture,
    registry: SchemaRegistryServer,
    quick: None,
    monkeypatch: pytest.MonkeyPatch,
    is_registered: bool,
) -> None:
    expect_same_after_lost_uploads(sink_fixture, registry, monkeypatch, DROPPING, is_registered=is_registered)
    expect_verified(sink_fixture, WITH_UNKNOWN, **DROPPING)


WITH_DEAD_LETTERS: dict[str, Any] = {
    **DROPPING,
    "errors": {"tolerance": "All", "deadLetters": {"prefix": "rejected"}},
}


@pytest.mark.parametrize("is_registered", [False, True], ids=["still unknown", "registered"])
def test_lost_uploads_of_dead_letters_are_rebuilt_with_the_records_whose_id_was_unknown(
    sink_fixture: SinkFixture,
    registry: SchemaRegistryServer,
    quick: None,
    monkeypatch: pytest.MonkeyPatch,
    is_registered: bool,
) -> None:
    """Also if the id is registered, and used by later records, before the rebuild."""
    expect_same_after_lost_uploads(sink_fixture, registry, monkeypatch, WITH_DEAD_LETTERS, is_registered=is_registered)
    lines = [
        json.loads(line)
        for key, body in sink_fixture.contents().items()
        if key.startswith("rejected/")
        for line in body.splitlines()
    ]
    assert {line["offset"] for line in lines} == unknown_offsets(24)
    assert {line["reason"] for line in lines} == {"UnknownSchema"}
    expect_verified(sink_fixture, WITH_UNKNOWN, **WITH_DEAD_LETTERS)


def test_a_lost_remainder_is_rebuilt_without_the_records_whose_id_was_unknown(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer, quick: None
) -> None:
    run(sink_fixture, replace(WITH_UNKNOWN, records=7), LEFT_OPEN, registry.url, **DROPPING)
    assert sink_fixture.keys() == []
    seed(registry, WITH_UNKNOWN, UNKNOWN)
    sink_fixture.delete_staging()
    run(sink_fixture, WITH_UNKNOWN, CAUGHT_UP, registry.url, **DROPPING)
    expect_records(sink_fixture, WITH_UNKNOWN, without=unknown_offsets(7))
    expect_verified(sink_fixture, WITH_UNKNOWN, **DROPPING)


@pytest.mark.parametrize("compatibility", ["None", "Separate"])
def test_a_rebuild_leaves_out_records_whose_id_was_unknown_and_is_in_the_ledger_by_then(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer, quick: None, compatibility: str
) -> None:
    """The unknown id is that of an equal schema: nothing but its source ranges separates the object from it."""
    log, given = replace(WITH_UNKNOWN, ids=(1, 1, 1, TWIN)), {"compatibility": compatibility, **DROPPING}
    registry.reset()
    registry.seed("one-value", 1, 1, avro_schema(1))
    run(sink_fixture, replace(log, records=7), LEFT_OPEN, registry.url, **given)
    registry.seed("other-value", 1, TWIN, avro_schema(TWIN))
    run(sink_fixture, replace(log, records=9), LEFT_OPEN, registry.url, **given)
    assert sink_fixture.keys() == []
    sink_fixture.delete_staging()
    run(sink_fixture, log, CAUGHT_UP, registry.url, **given)
    assert offsets(sink_fixture)[0] == [0, 1, 2, 4, 5, 6, 7, 8, 9, 10]
    expect_records(sink_fixture, log, without=unknown_offsets(7))
    expect_verified(sink_fixture, log, **given)


# -- the registry is gone, or another one ------------------------------------------------------------------------------


def test_without_the_registry_a_driver_ends_and_the_next_one_continues(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer
) -> None:
    registry.kill()
    with pytest.raises(TransientError, match="schema registry: schema id 1: failed for") as raised:
        run(sink_fixture, LOG, CAUGHT_UP, registry.url)
    assert raised.value.exit_code == 75
    assert sink_fixture.contents() == {}
    registry.start()
    seed(registry, LOG)
    run(sink_fixture, LOG, CAUGHT_UP, registry.url)
    expect_records(sink_fixture, LOG)


def test_a_driver_that_has_resolved_the_ids_continues_without_the_registry(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer
) -> None:
    rounds = itertools.count(1)

    def between_rounds() -> None:
        if next(rounds) == 2:
            registry.kill()

    run(sink_fixture, LOG, CAUGHT_UP, registry.url, max_records=4, context={"between_rounds": between_rounds})
    assert registry.process is None
    expect_records(sink_fixture, LOG)


def test_a_rebuild_needs_no_registry(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = sink_fixture.sibling()
    log = replace(LOG, records=10)
    run(undisturbed, log, CAUGHT_UP, registry.url)
    with registry_client(registry) as client:
        given = settings(log, registry.url)
        crash_before_publishing(sink_fixture, monkeypatch, log, **given, context={"registry": client})
    registry.kill()
    sink_fixture.abort_uploads_of("")
    run(sink_fixture, log, CAUGHT_UP, registry.url)
    assert sink_fixture.contents() == undisturbed.contents()
    assert len(sink_fixture.keys()) == 2
    expect_verified(sink_fixture, log)


def test_two_swapped_ids_stop_the_next_driver_before_it_decodes_a_record(
    sink_fixture: SinkFixture, registry: SchemaRegistryServer
) -> None:
    run(sink_fixture, replace(LOG, records=10), CAUGHT_UP, registry.url)
    before = sink_fixture.contents(), sink_fixture.group()
    registry.reset()
    register(registry, LOG, 1, like=2)
    register(registry, LOG, 2, like=1)
    with pytest.raises(RegistryChanged, match=r"returns another schema for id [12] of topic log") as raised:
        run(sink_fixture, LOG, CAUGHT_UP, registry.url)
    assert raised.value.exit_code == 7
    assert (sink_fixture.contents(), sink_fixture.group()) == before
    registry.reset()
    seed(registry, LOG)
    run(sink_fixture, LOG, CAUGHT_UP, registry.url)
    expect_records(sink_fixture, LOG)
