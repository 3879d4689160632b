"""Who may work: the Lease as one replica takes, keeps and leaves it to the next."""

from __future__ import annotations

import asyncio
import copy
from typing import Any, cast

import pytest

from s3sink_operator.kube.kube_api import ApiError, KubeApi
from s3sink_operator.kube.lease import LEASE_DURATION_S, RENEW_DEADLINE_S, RETRY_PERIOD_S, Lease
from s3sink_operator.types import Json


class Server:
    """One Lease, with an API server's lock on its version."""

    def __init__(self) -> None:
        self.lease: Json | None = None
        self.now = 1000.0
        self.asked = 0

    async def get(self, *_: Any) -> Json | None:
        self.asked += 1
        return copy.deepcopy(self.lease)

    async def create(self, manifest: Json) -> Json:
        if self.lease is not None:
            raise ApiError(409, "AlreadyExists", "it is there")
        return self._keep(manifest, 1)

    async def replace(self, manifest: Json) -> Json:
        version = int(self.lease["metadata"]["resourceVersion"]) if self.lease else 0
        if manifest["metadata"]["resourceVersion"] != str(version):
            raise ApiError(409, "Conflict", "it has changed")
        return self._keep(manifest, version + 1)

    def _keep(self, manifest: Json, version: int) -> Json:
        self.lease = copy.deepcopy(manifest)
        self.lease["metadata"]["resourceVersion"] = str(version)
        return copy.deepcopy(self.lease)

    def replica(self, name: str) -> Lease:
        return Lease(cast("KubeApi", self), "ops", "s3sink-operator", identity=name, clock=lambda: self.now)


def taken(*replicas: Lease) -> list[bool]:
    """Whether each has the Lease after it has tried, one after the other."""
    return [asyncio.run(each.try_acquire()) for each in replicas]


def test_the_first_one_takes_it_and_keeps_it() -> None:
    server = Server()
    first, second = server.replica("a"), server.replica("b")
    assert taken(first, second, first, second) == [True, False, True, False]


def test_renewing_is_one_call() -> None:
    server = Server()
    first = server.replica("a")
    assert taken(first, first, first) == [True, True, True]
    assert server.asked == 1


def test_a_deleted_lease_is_re_created() -> None:
    server = Server()
    first = server.replica("a")
    taken(first)
    server.lease = None
    assert taken(first) == [True]


def test_a_missing_namespace_is_not_a_lease_of_another_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    server = Server()

    async def create(_: Json) -> Json:
        raise ApiError(404, "NotFound", 'namespaces "ops" not found')

    monkeypatch.setattr(server, "create", create)
    with pytest.raises(ApiError, match="namespaces"):
        taken(server.replica("a"))


def test_a_lease_written_by_others_is_read_before_it_is_renewed() -> None:
    server = Server()
    first = server.replica("a")
    taken(first)
    assert server.lease
    server.lease["spec"]["holderIdentity"] = "another replica"
    server.lease["metadata"]["resourceVersion"] = "7"
    assert taken(first) == [False]


def test_one_that_is_renewed_is_never_taken() -> None:
    server = Server()
    first, second = server.replica("a"), server.replica("b")
    for _ in range(5):
        assert taken(first, second) == [True, False]
        server.now += LEASE_DURATION_S - 1


def test_one_that_is_not_renewed_is_taken_after_its_time() -> None:
    server = Server()
    first, second = server.replica("a"), server.replica("b")
    assert taken(first, second) == [True, False]
    server.now += LEASE_DURATION_S
    assert taken(second, first) == [True, False]
    assert server.lease is not None
    assert server.lease["spec"]["leaseTransitions"] == 1


def test_one_that_is_handed_over_is_taken_at_once() -> None:
    server = Server()
    first, second = server.replica("a"), server.replica("b")
    assert taken(first, second) == [True, False]
    asyncio.run(first.release())
    assert taken(second) == [True]


def test_what_another_holds_is_not_handed_over() -> None:
    server = Server()
    first, second = server.replica("a"), server.replica("b")
    assert taken(first) == [True]
    asyncio.run(second.release())
    assert taken(second, first) == [False, True]


def test_it_is_given_up_well_before_it_may_be_taken() -> None:
    assert RENEW_DEADLINE_S + RETRY_PERIOD_S < LEASE_DURATION_S
