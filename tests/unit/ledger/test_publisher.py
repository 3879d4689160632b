"""Confirmation of completions by the stored object."""

from typing import Any

import pytest

from sink_job.api.errors import ObjectConflict
from sink_job.ledger.publisher import PublishOutcome, publish
from sink_job.ledger.state import ClosedObject, OffsetChecksum, Part
from sink_job.s3 import Head, PreconditionFailed, S3Settings

OBJECT = ClosedObject("k", "t", 0, "p", 0, 9, 10, 77, "u", (Part(1, '"x"', 77, 10),), (), OffsetChecksum(10, 1), 1)


class ForgetfulStore:
    """A store that reports success for a completion and stores nothing."""

    bucket = "archive"
    settings = S3Settings(bucket="archive")
    url_of = staticmethod(settings.url_of)

    def complete(self, *_: object) -> str:
        return "etag"

    def tag_offsets(self, *_: object) -> None:
        """Does nothing."""

    def head(self, key: str) -> None:
        return None


class OccupiedStore:
    """A store with another object at the key."""

    bucket = "archive"
    settings = S3Settings(bucket="archive")
    url_of = staticmethod(settings.url_of)

    def complete(self, *_: object) -> str:
        raise PreconditionFailed("exists", "k")

    def head(self, key: str) -> Head:
        return Head(size=10, crc64nvme=78, etag='"x"', last_modified_ms=0)


@pytest.mark.parametrize(("was_tried", "outcome"), [(False, PublishOutcome.VISIBLE), (True, PublishOutcome.LOST)])
def test_a_completion_that_another_driver_may_have_tried_is_confirmed_by_what_is_stored(
    was_tried: bool, outcome: PublishOutcome
) -> None:
    store: Any = ForgetfulStore()
    assert publish(store, OBJECT, was_tried) is outcome


def test_a_conflict_has_the_key_the_offsets_and_the_difference() -> None:
    store: Any = OccupiedStore()
    with pytest.raises(ObjectConflict) as conflict:
        publish(store, OBJECT)
    assert str(conflict.value).startswith(
        "s3://archive/k holds other content than records 0 to 9 of t-0 (the same size, but CRC64NVME AAAAAAAAAE4= "
        "stored, AAAAAAAAAE0= in the ledger)."
    )
