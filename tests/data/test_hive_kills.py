"""`s3sink register` in its own process, killed with SIGKILL at each of its requests that have an effect, on a real S3
server and in Hive's metastore, which removes the locks of processes that have ended."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from uuid import uuid4

import pytest

from devtools.faults.s3_proxy import FaultProxy, Point
from devtools.faults.s3_requests import S3Request
from devtools.loopback_metastore.server import metastore
from sink_job.api.sections.tables_section import CatalogSpec
from tests.support.forked import killed_at
from tests.support.hive_lake import HiveTable, records
from tests.support.lake import LakeFixture
from tests.support.metastore_front import ALTER, CREATE, MetastoreFront, Request, metastore_front
from tests.support.sink_fixture import SinkFixture

pytestmark = pytest.mark.data

FIRST = ("create_database", CREATE)
PROBE = ("probe create_table", f"probe {ALTER}", "drop_table")
CHANGE = ("lock", ALTER, "unlock")
PUTS = ("the manifest", "the list of manifests", "the metadata", "the memory")


@pytest.fixture(scope="module")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URI of the metastore, for all tests of this file."""
    with metastore(tmp_path_factory.mktemp("hive"), lock_s=2) as uri:
        yield uri


@pytest.fixture
def front(hive: str) -> Iterator[MetastoreFront]:
    with metastore_front(hive) as found:
        yield found


def of_metastore(effect: str, request: Request) -> bool:
    return effect == (f"probe {request.method}" if request.is_probe else request.method)


def effect_of(request: S3Request) -> str:
    """What a request to the store changes; empty: nothing."""
    if request.kind != "PutObject":
        return ""
    if "/_s3sink/" in request.key:
        return PUTS[3]
    return PUTS[2] if request.key.endswith(".metadata.json") else PUTS["/snap-" in request.key]


def of_store(effect: str, request: S3Request) -> bool:
    return effect == effect_of(request)


def register(sink: SinkFixture, spec: CatalogSpec, name: str) -> int:
    return LakeFixture(sink, spec=spec).register("--from-beginning", name=name)


@pytest.mark.parametrize("point", ["before", "after"])
def test_a_registration_killed_at_an_effect_is_completed_by_the_next_one(
    sink_fixture: SinkFixture, s3_proxy: FaultProxy, hive: str, front: MetastoreFront, point: Point
) -> None:
    table = HiveTable(sink_fixture, front.uri, hive)
    count = 25
    for effect in (*FIRST, *PROBE, *PUTS, *CHANGE):
        if effect in FIRST:
            table.name = f"d{uuid4().hex[:12]}.log"
        else:
            count += 10
            table.write(count)
        proxy, matches = (s3_proxy, of_store) if effect in PUTS else (front, of_metastore)
        work = partial(register, sink_fixture.through(s3_proxy), table.spec, table.name)
        assert killed_at(work, proxy, partial(matches, effect), point, 1), effect
        assert register(sink_fixture, table.spec, table.name) == 0
        if effect in (*FIRST, CHANGE[-1]):  # reading takes a second
            assert table.rows() == records(count), effect
        assert table.lake.verify(table.name).findings == [], effect
    assert {effect_of(each) for each in s3_proxy.requests if each.mutating} == set(PUTS)
    reads = ("get_table_req", "get_database", "show_locks", "check_lock")
    methods = {f"probe {each.method}" if each.is_probe else each.method for each in front.requests}
    assert methods - {*reads} == {*FIRST, *PROBE, *CHANGE}


def test_the_lock_of_a_client_that_has_ended_is_removed_by_the_metastore(sink_fixture: SinkFixture, hive: str) -> None:
    table = HiveTable(sink_fixture, hive, hive)
    table.register()
    table.write(45)
    table.lock()
    table.register()
    assert table.rows() == records(45)
