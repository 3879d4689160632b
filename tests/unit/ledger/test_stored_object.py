"""Comparison of stored objects with the ledger's objects."""

import hashlib

import pytest

from sink_job.ledger.state import ClosedObject, OffsetChecksum, Part
from sink_job.ledger.stored_object import compare_stored
from sink_job.s3 import Head

MD5S = [hashlib.md5(part, usedforsecurity=False).digest() for part in (b"one", b"two")]
ETAG = hashlib.md5(b"".join(MD5S), usedforsecurity=False).hexdigest() + "-2"


def closed_object(*etags: str) -> ClosedObject:
    parts = tuple(Part(n, etag, 0, 5) for n, etag in enumerate(etags, 1))
    return ClosedObject("k", "t", 0, "p", 0, 9, 10, 77, "u", parts, (), OffsetChecksum(10, 1), 1)


OBJECT = closed_object(*(f'"{md5.hex()}"' for md5 in MD5S))
WITHOUT_MD5S = closed_object('"opaque"', '"opaque"')


def head(size: int = 10, crc64nvme: int | None = None, etag: str = f'"{ETAG}"') -> Head:
    return Head(size=size, crc64nvme=crc64nvme, etag=etag, last_modified_ms=0)


@pytest.mark.parametrize("size_suffices", [False, True])
@pytest.mark.parametrize(
    ("stored", "difference"),
    [
        (head(crc64nvme=77, etag='"x"'), None),
        (head(crc64nvme=78), "the same size, but CRC64NVME AAAAAAAAAE4= stored, AAAAAAAAAE0= in the ledger"),
        (head(size=11, crc64nvme=77), "11 bytes stored, 10 bytes in the ledger"),
        (head(), None),
        (head(etag='"another-2"'), f'the same size, but ETag "another-2" stored, {ETAG} in the ledger'),
    ],
    ids=["checksum", "another checksum", "another size", "etag of the parts", "another etag"],
)
def test_objects_are_compared_by_size_and_checksum_or_by_the_etag_of_the_parts(
    stored: Head, difference: str | None, size_suffices: bool
) -> None:
    assert compare_stored(OBJECT, stored, size_suffices=size_suffices) == difference


def test_an_object_of_the_same_size_differs_if_the_store_provides_no_checksum() -> None:
    difference = compare_stored(WITHOUT_MD5S, head(etag='"opaque-2"'))
    assert difference == "the same size, but the store provides no checksum of the content"


def test_the_size_can_suffice_if_the_store_provides_no_checksum() -> None:
    assert compare_stored(WITHOUT_MD5S, head(etag='"opaque-2"'), size_suffices=True) is None
