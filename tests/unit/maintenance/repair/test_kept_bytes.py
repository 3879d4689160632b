"""Copies of damaged bytes below the ledger."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.errors import TransientError
from sink_job.maintenance.repair import kept_bytes
from sink_job.maintenance.repair.kept_bytes import folder_of, keep, kept
from sink_job.s3 import PreconditionFailed
from tests.support.memory_s3 import MemoryS3

ROOT = "topics/_s3sink/sink/"


@pytest.fixture
def s3() -> Any:
    return MemoryS3()


def stored(s3: Any, body: bytes) -> tuple[str, int]:
    """The ETag and the size of the object `key` with these bytes."""
    return s3.put("key", body).etag, len(body)


@pytest.mark.parametrize("body", [b"", b"damaged", b"0123456789abcdef"], ids=["empty", "small", "several parts"])
def test_a_copy_has_the_bytes_of_the_object(s3: Any, monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    monkeypatch.setattr(kept_bytes, "PART_BYTES", 10)
    etag, size = stored(s3, body)
    target = keep(s3, ROOT, "key", etag, size)
    assert target == f"{ROOT}repair/damaged/key/" + etag.strip('"')
    assert s3.get(target) == body
    assert s3.uploads == {}


@pytest.mark.parametrize("body", [b"damaged", b"0123456789abcdef"], ids=["small", "several parts"])
def test_the_same_bytes_are_kept_once_and_others_with_their_etag_beside_them(
    s3: Any, monkeypatch: pytest.MonkeyPatch, body: bytes
) -> None:
    monkeypatch.setattr(kept_bytes, "PART_BYTES", 10)
    etag, size = stored(s3, body)
    first = keep(s3, ROOT, "key", etag, size)
    requests: list[tuple[str, str]] = []
    monkeypatch.setattr(s3, "fault", lambda request, key, *_: requests.append((request, key)))
    assert keep(s3, ROOT, "key", etag, size) == first
    assert ("put", first) not in requests
    s3.objects["key"].body = body[::-1]
    second = keep(s3, ROOT, "key", etag, size)
    assert second == f"{first}-2"
    assert [s3.get(key) for key, _ in kept(s3, ROOT)] == [body, body[::-1]]
    assert s3.uploads == {}


@pytest.mark.parametrize("part", [4, 100])
def test_an_object_that_was_replaced_meanwhile_is_not_kept(s3: Any, monkeypatch: pytest.MonkeyPatch, part: int) -> None:
    monkeypatch.setattr(kept_bytes, "PART_BYTES", part)
    etag, size = stored(s3, b"damaged")
    stored(s3, b"another")
    with pytest.raises(PreconditionFailed):
        keep(s3, ROOT, "key", etag, size)
    assert (list(kept(s3, ROOT)), s3.uploads) == ([], {})


def test_copies_that_other_commands_discard_again_and_again_are_a_transient_error(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_bytes, "_copy", lambda *_: 1)
    with pytest.raises(TransientError, match="discard-damaged"):
        keep(s3, ROOT, "key", '"etag"', 7)


def test_the_copies_of_one_object_are_listed_alone(s3: Any) -> None:
    etag, size = stored(s3, b"damaged")
    s3.put("key/longer", b"damaged")
    target = keep(s3, ROOT, "key", etag, size)
    keep(s3, ROOT, "key/longer", etag, size)
    assert len(list(kept(s3, ROOT))) == 2
    assert (target, size) in set(kept(s3, ROOT, ["key"]))


def test_a_key_that_would_be_too_long_is_replaced_by_its_digest() -> None:
    key = "k" * 1000
    assert folder_of(ROOT, key).startswith(f"{ROOT}repair/damaged/sha256=")
    assert folder_of(ROOT, key) != folder_of(ROOT, f"{key}k")
    assert len(folder_of(ROOT, "k" * 1024)) < 900
