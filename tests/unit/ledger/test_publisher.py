"""When a stored object is the one that was named, and when a completion is believed."""

import hashlib
from typing import Any

import pytest

from sink_job.ledger.publisher import PublishOutcome, equals, publish
from sink_job.ledger.state import ClosedObject, OffsetChecksum, Part
from sink_job.s3 import Head

MD5S = [hashlib.md5(body, usedforsecurity=False).digest() for body in (b"one", b"two")]
WHOLE = hashlib.md5(b"".join(MD5S), usedforsecurity=False).hexdigest() + "-2"


def named(*etags: str) -> ClosedObject:
    parts = tuple(Part(n, etag, 0, 5) for n, etag in enumerate(etags, 1))
    return ClosedObject("k", "t", 0, "p", 0, 9, 10, 77, "u", parts, (), OffsetChecksum(10, 1), 1)


OURS = named(*(f'"{md5.hex()}"' for md5 in MD5S))


@pytest.mark.parametrize(
    ("stored", "same"),
    [
        (Head(size=10, crc64nvme=77, etag='"x"', last_modified_ms=0), True),
        (Head(size=10, crc64nvme=78, etag=f'"{WHOLE}"', last_modified_ms=0), False),
        (Head(size=11, crc64nvme=77, etag=f'"{WHOLE}"', last_modified_ms=0), False),
        (Head(size=10, crc64nvme=None, etag=f'"{WHOLE}"', last_modified_ms=0), True),
        (Head(size=10, crc64nvme=None, etag='"another-2"', last_modified_ms=0), False),
    ],
    ids=["checksum", "another checksum", "another size", "etag of the parts", "another etag"],
)
def test_an_object_is_ours_by_size_and_checksum_or_by_the_etag_of_its_parts(stored: Head, same: bool) -> None:
    assert equals(OURS, stored) is same


def test_where_nothing_can_be_compared_the_object_is_not_taken_for_ours() -> None:
    unlike_md5 = named('"opaque"', '"opaque"')
    assert not equals(unlike_md5, Head(size=10, crc64nvme=None, etag='"opaque-2"', last_modified_ms=0))


class Forgetful:
    """A store that answers a completion with success and keeps nothing."""

    bucket = "archive"

    def complete(self, *_: object) -> str:
        return "etag"

    def head(self, key: str) -> None:
        return None


@pytest.mark.parametrize(("was_tried", "outcome"), [(False, PublishOutcome.VISIBLE), (True, PublishOutcome.LOST)])
def test_a_completion_that_another_driver_may_have_tried_is_confirmed_by_what_is_stored(
    was_tried: bool, outcome: PublishOutcome
) -> None:
    store: Any = Forgetful()
    assert publish(store, OURS, was_tried) is outcome
