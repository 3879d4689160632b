"""What is stored at the key of an object."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.ledger.state import ClosedObject
from sink_job.maintenance.repair.inspection import MAX_READS, inspect
from sink_job.s3 import PreconditionFailed
from tests.support.memory_s3 import MemoryS3
from tests.support.repair_sink import KEYS, RepairFixture

FIRST = KEYS[0]


@pytest.fixture
def o(repaired: RepairFixture) -> ClosedObject:
    return repaired.evidence().objects[FIRST]


@pytest.fixture
def s3(repaired: RepairFixture) -> Any:
    return repaired.sink.s3


def test_the_recorded_object_has_no_damage(s3: Any, o: ClosedObject) -> None:
    state = inspect(s3, o)
    assert (state.damage, state.size, state.etag) == (None, o.bytes, s3.objects[FIRST].etag)


def test_a_missing_object_has_no_etag(s3: Any, o: ClosedObject) -> None:
    s3.delete([FIRST])
    state = inspect(s3, o)
    assert (state.etag, state.damage) == (None, "it is not in the bucket")


def test_another_size_or_checksum_is_a_damage(s3: Any, o: ClosedObject) -> None:
    s3.put(FIRST, b"short")
    assert f"5 bytes stored, {o.bytes} bytes in the ledger" in str(inspect(s3, o).damage)
    s3.put(FIRST, b"x" * o.bytes)
    assert "the same size, but CRC64NVME" in str(inspect(s3, o).damage)


def test_bytes_that_the_store_does_not_know_of_are_a_damage_if_they_are_read(
    s3: Any, o: ClosedObject, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = s3.head(FIRST)
    s3.objects[FIRST].body = b"x" * o.bytes
    monkeypatch.setattr(s3, "head", lambda key: head)
    assert inspect(s3, o, reads=False).damage is None
    assert f"its {o.bytes} bytes differ from the recorded ones" in str(inspect(s3, o).damage)


def test_an_object_that_changes_during_each_read_raises_the_answer_of_the_store(
    s3: MemoryS3, o: ClosedObject, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []

    def changed(key: str, *_: object, **__: object) -> bytes:
        reads.append(key)
        raise PreconditionFailed(key, key)

    monkeypatch.setattr(s3, "get_range", changed)
    client: Any = s3
    with pytest.raises(PreconditionFailed):
        inspect(client, o)
    assert len(reads) == MAX_READS
