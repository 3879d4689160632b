"""The conditional completion of recorded bytes."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.errors import AccessDenied, UnsupportedStore
from sink_job.ledger.state import ClosedObject
from sink_job.maintenance.repair.inspection import StoredState, inspect
from sink_job.maintenance.repair.replacement import RecordedBytes, complete
from sink_job.s3 import PreconditionFailed
from tests.support.repair_sink import KEYS, RepairFixture

FIRST = KEYS[0]


@pytest.fixture
def o(repaired: RepairFixture) -> ClosedObject:
    return repaired.evidence().objects[FIRST]


def recorded(repaired: RepairFixture) -> RecordedBytes:
    s3: Any = repaired.sink.s3
    upload = s3.create_upload(FIRST)
    return RecordedBytes(upload, [s3.upload_part(FIRST, upload, 1, repaired.right[FIRST])])


def test_a_missing_object_is_completed(repaired: RepairFixture, o: ClosedObject) -> None:
    s3: Any = repaired.sink.s3
    s3.delete([FIRST])
    done = complete(s3, repaired.sink.root, o, inspect(s3, o), recorded(repaired))
    assert (done.is_right, done.kept) == (True, None)
    assert repaired.objects() == repaired.right


def test_a_damaged_object_is_replaced_after_its_bytes_were_kept(repaired: RepairFixture, o: ClosedObject) -> None:
    s3: Any = repaired.sink.s3
    s3.put(FIRST, b"damaged")
    done = complete(s3, repaired.sink.root, o, inspect(s3, o), recorded(repaired))
    assert done.is_right
    assert s3.get(done.kept) == b"damaged"
    assert repaired.objects() == repaired.right


@pytest.mark.parametrize("state", [StoredState(None, 0, "missing"), StoredState('"other"', 7, "damaged")])
def test_a_key_that_holds_something_else_meanwhile_is_left_as_it_is(
    repaired: RepairFixture, o: ClosedObject, state: StoredState
) -> None:
    s3: Any = repaired.sink.s3
    s3.put(FIRST, b"damaged")
    assert not complete(s3, repaired.sink.root, o, state, recorded(repaired)).is_right
    assert s3.get(FIRST) == b"damaged"
    assert s3.uploads == {}


def test_an_object_that_was_deleted_meanwhile_is_tried_again(repaired: RepairFixture, o: ClosedObject) -> None:
    s3: Any = repaired.sink.s3
    s3.put(FIRST, b"damaged")
    state = inspect(s3, o)
    s3.delete([FIRST])
    assert not complete(s3, repaired.sink.root, o, state, recorded(repaired)).is_right
    assert s3.uploads == {}


@pytest.mark.parametrize("error", [None, AccessDenied("no s3:ListBucketVersions"), UnsupportedStore("no versions")])
def test_a_delete_marker_that_the_store_takes_for_an_object_is_replaced_by_its_etag(
    versioned: RepairFixture, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    s3: Any = versioned.sink.s3
    o = versioned.evidence().objects[FIRST]
    marker = s3.objects[FIRST].etag
    s3.delete([FIRST])
    original = s3.complete

    def as_versity(key: str, upload: str, parts: Any, crc: Any, *, if_match: str | None = None) -> str:
        if if_match != marker:
            raise PreconditionFailed(key, key)
        done: str = original(key, upload, parts, crc)
        return done

    def denied(key: str) -> None:
        raise error or AssertionError

    monkeypatch.setattr(s3, "complete", as_versity)
    if error is not None:
        monkeypatch.setattr(s3, "versions", denied)
    done = complete(s3, versioned.sink.root, o, inspect(s3, o), recorded(versioned))
    assert done.is_right == (error is None)
    assert (FIRST in versioned.objects()) == (error is None)
    assert s3.uploads == {}
