"""What a clean-up removes, and what it leaves to the running rounds and to other programs."""

from __future__ import annotations

from typing import Any, cast

import msgspec
import pytest

from sink_job.api.spec import ObjectSettings
from sink_job.ledger.orphan_cleanup import INTENT_RETENTION_MS, OrphanCleaner
from sink_job.ledger.state import (
    ClosedObject,
    Extent,
    LedgerState,
    OffsetChecksum,
    OpenObject,
    PartitionState,
    Record,
)
from sink_job.ledger.store import Intent, Ledger
from sink_job.ledger.transitions import apply
from sink_job.rotation.types import OpenObjectState, RotationState
from sink_job.s3 import S3Client
from tests.support.memory_s3 import MemoryS3

ROOT = "topics/_s3sink/sink/"
SETTINGS = ObjectSettings().model_dump_json()
EPOCH = 3


class Orphans:
    """A ledger whose record 3 claims epoch 3. Intents of `ranges`; uploads and staging objects of tests."""

    def __init__(self) -> None:
        self.memory = MemoryS3()
        self.s3 = cast("S3Client", self.memory)
        self.ledger = Ledger(self.s3, ROOT, "attempt")
        self.state = LedgerState()

    def intend(self, *, epoch: int = 2, sequence: int = 1, start: int = 100, end: int = 200) -> str:
        intent = Intent(epoch, sequence, 1, 0, {"flights-0": (start, end)}, (SETTINGS,))
        before = set(self.memory.objects)
        self.ledger.write_intent(intent)
        (key,) = set(self.memory.objects) - before
        return key

    def claim(self) -> None:
        """Appends records up to the claim of `EPOCH`."""
        for number in range(1, EPOCH + 1):
            record = Record(number, number, "attempt", "claim", clock=0, settings=SETTINGS)
            self.ledger.append(record)
            self.state = apply(self.state, record)

    def clean_up(self) -> int:
        return OrphanCleaner(self.s3, self.ledger, EPOCH).run(self.state, EPOCH)

    def uploads(self) -> list[str]:
        return [upload.key for upload in self.memory.uploads.values()]


@pytest.fixture
def orphans() -> Orphans:
    return Orphans()


def key(first: int, *, topic: str = "flights", partition: int = 0) -> str:
    return f"topics/{topic}/partition=0/{topic}+{partition}+{first:010d}.json"


@pytest.mark.parametrize(
    ("upload", "removed"),
    [
        (key(99), False),
        (key(100), True),
        (key(199), True),
        (key(200), False),
        (key(150, partition=1), False),
        (key(150, topic="other"), False),
        ("topics/flights/readme.txt", False),
        (f"{key(150)}.gz", False),
    ],
)
def test_an_upload_is_an_orphan_if_a_round_with_an_intent_could_have_started_it(
    orphans: Orphans, upload: str, removed: bool
) -> None:
    orphans.intend()
    orphans.memory.create_upload(upload)
    orphans.claim()
    assert orphans.clean_up() == int(removed)
    assert orphans.uploads() == ([] if removed else [upload])


def test_an_upload_that_started_after_the_claim_is_not_an_orphan(orphans: Orphans) -> None:
    orphans.intend()
    orphans.claim()
    orphans.memory.create_upload(key(150))
    assert orphans.clean_up() == 0
    assert orphans.uploads() == [key(150)]


def open_object(upload: str, staged: str) -> OpenObject:
    state = OpenObjectState(path="p", first=1, last=1, count=1, size=1, opened_at=0)
    return OpenObject(state, settings=3, offsets=OffsetChecksum(1, 1), upload=upload, blocks=(Extent(staged, 0, 1, 0),))


def test_uploads_of_open_and_closed_objects_are_not_orphans(orphans: Orphans) -> None:
    orphans.intend()
    uploads = [orphans.memory.create_upload(key(first)) for first in (150, 160, 170)]
    orphans.claim()
    rotation = RotationState(next=200, committable=100, open_records=1)
    p = PartitionState(rotation, rotation_start=0, open=(open_object(uploads[0], "s"),))
    closed: Any = ClosedObject(
        key(160), "flights", 0, "p", 160, 160, 1, 1, uploads[1], (), (), OffsetChecksum(1, 1), settings=3
    )
    orphans.state = msgspec.structs.replace(orphans.state, partitions={"flights-0": p}, pending={closed.key: closed})
    assert orphans.clean_up() == 1
    assert orphans.uploads() == [key(150), key(160)]


@pytest.mark.parametrize(
    ("name", "removed"),
    [("2-9-a", True), ("3-3-a", True), ("3-4-a", False), ("4-1-a", False), ("note.txt", False)],
    ids=[
        "of an earlier epoch",
        "of a recorded round",
        "of the running round",
        "of a later epoch",
        "of another program",
    ],
)
def test_a_staging_object_is_an_orphan_once_its_round_cannot_be_recorded(
    orphans: Orphans, name: str, removed: bool
) -> None:
    orphans.claim()
    orphans.memory.put(f"{ROOT}staging/{name}", b"")
    assert orphans.clean_up() == int(removed)
    assert (f"{ROOT}staging/{name}" in orphans.memory.objects) != removed


def test_a_staging_object_of_an_open_object_is_not_an_orphan(orphans: Orphans) -> None:
    orphans.claim()
    name = f"{ROOT}staging/2-9-a"
    orphans.memory.put(name, b"")
    rotation = RotationState(next=2, committable=1, open_records=1)
    p = PartitionState(rotation, rotation_start=0, open=(open_object("u", name),))
    orphans.state = msgspec.structs.replace(orphans.state, partitions={"flights-0": p})
    assert orphans.clean_up() == 0
    assert name in orphans.memory.objects


def test_probes_of_an_earlier_driver_are_removed_and_later_ones_stay(orphans: Orphans) -> None:
    orphans.memory.put(f"{ROOT}probe/old", b"")
    orphans.memory.create_upload(f"{ROOT}probe/old")
    orphans.claim()
    orphans.memory.put(f"{ROOT}probe/new", b"")
    orphans.memory.create_upload(f"{ROOT}probe/new")
    orphans.clean_up()
    assert [name for name in orphans.memory.objects if "/probe/" in name] == [f"{ROOT}probe/new"]
    assert orphans.uploads() == [f"{ROOT}probe/new"]


def test_an_intent_that_a_later_one_covers_is_removed_at_once(orphans: Orphans) -> None:
    first = orphans.intend(sequence=1)
    second = orphans.intend(sequence=2)
    orphans.claim()
    orphans.clean_up()
    assert first not in orphans.memory.objects
    assert second in orphans.memory.objects


@pytest.mark.parametrize(
    ("epoch", "age", "removed"),
    [
        (2, INTENT_RETENTION_MS, False),
        (2, INTENT_RETENTION_MS + 1, True),
        (EPOCH, INTENT_RETENTION_MS + 1, False),
    ],
)
def test_the_intent_of_an_earlier_epoch_is_kept_for_a_day(
    orphans: Orphans, epoch: int, age: int, removed: bool
) -> None:
    intent = orphans.intend(epoch=epoch)
    orphans.claim()
    orphans.memory.objects[intent].at = orphans.ledger.record_time(EPOCH) - age
    orphans.clean_up()
    assert (intent not in orphans.memory.objects) == removed
