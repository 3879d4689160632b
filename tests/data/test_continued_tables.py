"""Tables that are continued in Iceberg's REST server: rows of both by DuckDB, kills, and offset resets."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final
from uuid import uuid4

import pytest

from devtools.faults.s3_proxy import FaultProxy, Point
from devtools.faults.s3_requests import S3Request
from tests.support.chain_sink import NUMBER, TEXT, TypedLog, typed_log
from tests.support.forked import killed_at
from tests.support.lake import LakeFixture
from tests.support.sink_fixture import SinkFixture

pytestmark = pytest.mark.data

ROWS: Final = "result = connection.execute('select \"offset\", kind from t order by 1').fetchall()"
OPTIONS: Final = {"onIncompatible": "NewTable", "onReset": "NewTable"}
EFFECTS: Final = ("the commit", "the list of manifests", "the memory")


@pytest.fixture
def rest_proxy(rest: str) -> Iterator[FaultProxy]:
    """A proxy of the REST server."""
    with FaultProxy(rest) as proxy:
        yield proxy


def lake_of(sink: SinkFixture, rest: str, name: str) -> LakeFixture:
    lake = LakeFixture(sink, rest)
    lake.name = name
    lake.options = OPTIONS
    return lake


def rows(log: TypedLog, start: int, end: int) -> list[list[Any]]:
    return [[offset, log.item(0, offset)["kind"]] for offset in range(start, end)]


def has_effect(effect: str, request: S3Request) -> bool:
    if request.kind == "POST":
        return effect == EFFECTS[0] and request.key.removeprefix("namespaces").strip("/").count("/") == 2
    if request.kind != "PutObject":
        return False
    return effect == (EFFECTS[2] if "/_s3sink/" in request.key else EFFECTS[1 if "/snap-" in request.key else 0])


def register(sink: SinkFixture, rest: str, name: str) -> int:
    return lake_of(sink, rest, name).register("--from-beginning")


@pytest.mark.parametrize("point", ["before", "after"])
def test_a_registration_that_leaves_a_table_and_is_killed_at_an_effect_is_completed_by_the_next_one(
    sink_fixture: SinkFixture, s3_proxy: FaultProxy, rest: str, rest_proxy: FaultProxy, point: Point
) -> None:
    log = typed_log((20, (TEXT,)), (45, (NUMBER,)))
    LakeFixture(sink_fixture, rest).run_log(log)
    for effect in EFFECTS:
        for count in (1, 2):
            name = f"n{uuid4().hex[:12]}.log"
            work = partial(register, sink_fixture.through(s3_proxy), rest_proxy.endpoint, name)
            proxy = rest_proxy if effect == EFFECTS[0] else s3_proxy
            assert killed_at(work, proxy, partial(has_effect, effect), point, count), effect
            lake = lake_of(sink_fixture, rest, name)
            assert lake.register("--from-beginning") == 0
            assert lake.read(ROWS, name) == rows(log, 0, 20), effect
            assert lake.read(ROWS, f"{name}_2") == rows(log, 20, 45), effect
            assert lake.verify_command() == 0


def test_records_after_a_reset_are_in_a_new_table(sink_fixture: SinkFixture, rest: str) -> None:
    name = f"n{uuid4().hex[:12]}.log"
    lake = lake_of(sink_fixture, rest, name)
    log = typed_log((20, (TEXT,)))
    lake.run_log(log)
    assert lake.register("--from-beginning") == 0
    longer = typed_log((35, (TEXT,)))
    lake.run_log(longer)
    lake.reset(35, "NewPrefix")
    lake.run_log(longer)
    assert lake.register() == 0
    assert lake.read(ROWS, name) == lake.read(ROWS, f"{name}_2") == rows(longer, 0, 35)
    assert lake.verify_command() == 0
