"""The recorded bytes from an older version of an object."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.errors import AccessDenied, TransientError, UnsupportedStore
from sink_job.ledger.state import ClosedObject
from sink_job.maintenance.repair.version_source import VersionSource
from sink_job.s3 import NoSuchUpload, NotFound
from tests.support.repair_sink import KEYS, RepairFixture

FIRST = KEYS[0]


@pytest.fixture
def s3(versioned: RepairFixture) -> Any:
    return versioned.sink.s3


@pytest.fixture
def o(versioned: RepairFixture) -> ClosedObject:
    return versioned.evidence().objects[FIRST]


def test_the_version_with_the_recorded_bytes_is_uploaded(s3: Any, o: ClosedObject, versioned: RepairFixture) -> None:
    s3.put(FIRST, versioned.right[FIRST][::-1])
    s3.put(FIRST, b"short")
    source = VersionSource(s3)
    versions = source.candidates(o)
    assert [(version.size, version.is_latest) for version in versions] == [(o.bytes, False), (o.bytes, False)]
    content = source.upload(o)
    assert content is not None
    assert source.holds(o)
    assert [(p.number, p.crc, p.size) for p in content.parts] == [(p.number, p.crc, p.size) for p in o.parts]
    assert set(s3.uploads) == {content.upload}


def test_without_such_a_version_no_upload_is_left(s3: Any, o: ClosedObject, versioned: RepairFixture) -> None:
    s3.history[FIRST] = []
    s3.put(FIRST, versioned.right[FIRST][::-1])
    s3.put(FIRST, b"short")
    source = VersionSource(s3)
    assert source.upload(o) is None
    assert not source.holds(o)
    assert s3.uploads == {}


def test_a_version_that_was_removed_meanwhile_is_passed_over(
    s3: Any, o: ClosedObject, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.put(FIRST, b"short")
    source = VersionSource(s3)

    def gone(key: str, *_: object, **__: object) -> bytes:
        raise NotFound(key, key)

    monkeypatch.setattr(s3, "get_range", gone)
    assert source.upload(o) is None


@pytest.mark.parametrize("error", [AccessDenied("no s3:ListBucketVersions"), UnsupportedStore("no versions")])
def test_versions_that_cannot_be_listed_are_a_note_and_not_asked_for_again(
    s3: Any, o: ClosedObject, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    calls: list[str] = []

    def fails(key: str) -> None:
        calls.append(key)
        raise error

    monkeypatch.setattr(s3, "versions", fails)
    source = VersionSource(s3)
    assert (source.candidates(o), source.candidates(o)) == ([], [])
    assert calls == [FIRST]
    assert source.note == f"older versions of objects were not searched: {error}"


def test_an_upload_that_another_process_aborts_is_an_outcome(
    s3: Any, o: ClosedObject, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3.put(FIRST, b"short")
    source = VersionSource(s3)

    def gone(key: str, *_: object) -> None:
        raise NoSuchUpload(key, key)

    monkeypatch.setattr(s3, "upload_part", gone)
    with pytest.raises(TransientError):
        source.upload(o)
    assert s3.uploads == {}
