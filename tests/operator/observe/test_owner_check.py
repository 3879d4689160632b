"""Whether the owner that an OwnershipConflict names still exists."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from s3sink_operator.kube.kube_api import ApiError, KubeApi, ResponseTooLarge
from s3sink_operator.observe.owner_check import OwnerChecker
from s3sink_operator.types import Json, OwnerState, to_timestamp
from tests.operator.decide.test_handover import OWNER
from tests.operator.fake_cluster import MINUTE, START, document

MAX_LISTED = 5_000
"""Pods that take more than the limit of a list."""


class Api:
    """An API server with some sinks and pods."""

    def __init__(
        self, *, sink: Json | None = None, pods: int = 0, age_ms: int = -MINUTE, error: ApiError | None = None
    ) -> None:
        self.sink, self.pods, self.age_ms, self.error = sink, pods, age_ms, error

    async def get(self, kind: str, namespace: str, name: str) -> Json | None:
        if self.error is not None:
            raise self.error
        return self.sink

    async def list(self, kind: str, namespace: str, selector: str, *, most: int) -> list[Json]:
        if self.pods > MAX_LISTED:
            raise ResponseTooLarge("the response is longer than 1 MiB")
        return [{"metadata": {"creationTimestamp": to_timestamp(START + self.age_ms)}}] * min(self.pods, most)


def state(api: Api, *, owner: str = OWNER, name: str = "flights") -> OwnerState:
    sink = document(name) | {"status": {"retry": {"reason": "OwnershipConflict", "owner": owner}}}
    found = asyncio.run(OwnerChecker(cast("KubeApi", api), "c1").owner(sink, []))
    assert found is not None
    assert found.identity == owner
    return found.state


def test_an_owner_without_a_sink_and_pods_is_gone() -> None:
    assert state(Api()) is OwnerState.GONE


def test_an_owner_exists_as_long_as_its_sink_or_its_pods_do() -> None:
    assert state(Api(sink=document("old"))) is OwnerState.EXISTS
    assert state(Api(pods=1)) is OwnerState.EXISTS


@pytest.mark.parametrize("pods", [1_000, MAX_LISTED + 1])
def test_of_the_pods_of_an_owner_a_limited_number_is_read(pods: int) -> None:
    """A driver may name any owner, and anyone can create pods with its label. Whoever has so many pods exists."""
    previous = "c1/data/flights/previous"
    assert state(Api(sink=document(), pods=1, age_ms=MINUTE), owner=previous) is OwnerState.GONE
    assert state(Api(sink=document(), pods=pods, age_ms=MINUTE), owner=previous) is OwnerState.EXISTS


def test_a_sink_that_was_re_created_with_another_sink_id_is_another_owner() -> None:
    assert state(Api(sink=document("old", sinkId="new"))) is OwnerState.GONE
    previous = "c1/data/flights/previous"
    assert state(Api(sink=document(), pods=0), owner=previous) is OwnerState.GONE
    assert state(Api(sink=document(), pods=1), owner=previous) is OwnerState.EXISTS


def test_an_owner_of_another_cluster_or_a_forbidden_namespace_is_unknown() -> None:
    assert state(Api(), owner="c2/data/old/data.old") is OwnerState.UNKNOWN
    assert state(Api(error=ApiError(403, "Forbidden", "no"))) is OwnerState.UNKNOWN


@pytest.mark.parametrize("name", ["x?watch=true", "..", "a%2F..", "A", "a b", "-a", "a" * 254, "a\\b", "#"])
@pytest.mark.parametrize("place", ["c1/{}/old/data.old", "c1/data/{}/data.old"])
def test_an_owner_that_cannot_be_an_object_is_not_asked_for(place: str, name: str) -> None:
    api = Api(error=ApiError(500, "InternalError", "the API server is asked"))
    assert state(api, owner=place.format(name)) is OwnerState.UNKNOWN


def test_without_an_ownership_conflict_nothing_is_read() -> None:
    checker = OwnerChecker(cast("KubeApi", None), "c1")
    assert asyncio.run(checker.owner(document(), [])) is None
