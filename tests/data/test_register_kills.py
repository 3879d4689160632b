"""`s3sink register` in its own process, killed with SIGKILL at each of its requests that have an effect, on a real S3
server and in Iceberg's REST server.

`tests/unit/tables/test_registration.py` kills in memory, before each effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from uuid import uuid4

import pytest

from devtools.faults.s3_proxy import FaultProxy, Point
from devtools.faults.s3_requests import S3Request
from tests.support.forked import killed_at
from tests.support.lake import VALUES, LakeFixture, expected
from tests.support.sink_fixture import SinkFixture

pytestmark = pytest.mark.data

POSTS = ("the namespace", "the staged table", "the commit")
PUTS = ("the manifest", "the list of manifests", "the memory")


@pytest.fixture
def rest_proxy(rest: str) -> Iterator[FaultProxy]:
    """A proxy of the REST server."""
    with FaultProxy(rest) as proxy:
        yield proxy


def effect_of(request: S3Request) -> str:
    """What a request of a registration changes; empty: nothing."""
    if request.kind == "POST":
        return POSTS[request.key.removeprefix("namespaces").strip("/").count("/")]
    if request.kind == "PutObject":
        return PUTS[2] if "/_s3sink/" in request.key else PUTS["/snap-" in request.key]
    return ""


def has_effect(effect: str, request: S3Request) -> bool:
    return effect_of(request) == effect


def register(sink: SinkFixture, rest: str, name: str) -> int:
    return LakeFixture(sink, rest).register("--from-beginning", name=name)


@pytest.mark.parametrize("point", ["before", "after"])
def test_a_registration_killed_at_an_effect_is_completed_by_the_next_one(
    sink_fixture: SinkFixture, s3_proxy: FaultProxy, rest: str, rest_proxy: FaultProxy, point: Point
) -> None:
    lake = LakeFixture(sink_fixture, rest)
    records = 25
    lake.run(records, (2,))
    for effect in (*POSTS, *PUTS):
        for creates in (True, False):
            if creates:
                name = f"n{uuid4().hex[:12]}.log"
            elif effect in POSTS[:2]:
                continue  # the table exists
            else:
                records += 10
                lake.run(records, (2,))
            work = partial(register, sink_fixture.through(s3_proxy), rest_proxy.endpoint, name)
            proxy = rest_proxy if effect in POSTS else s3_proxy
            assert killed_at(work, proxy, partial(has_effect, effect), point, 1), effect
            assert register(sink_fixture, rest, name) == 0
            assert lake.read(VALUES, name) == expected(records, lambda offset: 2), effect
            assert lake.verify(name).findings == [], effect
    proxied = [each for proxy in (s3_proxy, rest_proxy) for each in proxy.requests]
    assert {effect_of(each) for each in proxied if each.mutating or each.kind == "POST"} == {*POSTS, *PUTS}
