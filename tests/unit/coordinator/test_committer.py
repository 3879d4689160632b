"""The effects of a round in their order: a record, visible objects, their acknowledgement, the group's offset."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from sink_job.api.errors import DataLoss, LedgerFenced, ObjectConflict, TransientError
from sink_job.coordinator.committer import MAX_REBUILD_ATTEMPTS, Committer
from sink_job.ledger.data_loss import RebuildOutcome
from sink_job.ledger.state import (
    ClosedObject,
    Extent,
    LostObject,
    OffsetChecksum,
    Part,
    PartitionState,
    Record,
    RotationRange,
)
from sink_job.s3.checksums import crc64nvme
from tests.support.memory_s3 import MemoryS3
from tests.support.memory_sink import MemorySinkFixture, error_of
from tests.support.store_faults import FIRST, LOG, OBJECTS, pending
from tests.support.synthetic_log import CLOCK_MS, SyntheticLog
from tests.unit.coordinator.claimed_sink import TP, ClaimedSink, closed_object, open_object, read_up_to


class Commits:
    """A claimed ledger and its committer. `rebuilt`: the objects that were rebuilt."""

    def __init__(self, folder: Path, snapshot_every: int = 100) -> None:
        self.sink = ClaimedSink(folder, SyntheticLog(records=20))
        self.rebuilt: list[str] = []
        self.rebuilds_are_lost = False
        self.committer = Committer(
            ledger=self.sink.ledger,
            s3=self.sink.s3,
            offsets=self.sink.kafka,
            group="group",
            state=self.sink.claim(TP),
            rebuild=self.rebuild,
            clock=lambda: CLOCK_MS,
            snapshot_every=snapshot_every,
        )

    def uploaded(self, first: int, last: int) -> ClosedObject:
        """A closed object whose parts are uploaded."""
        o, body = closed_object(TP, first, last), f"{first}-{last}".encode()
        upload = self.sink.memory.create_upload(o.key)
        part = self.sink.memory.upload_part(o.key, upload, 1, body)
        parts = (Part(1, part.etag, crc64nvme(body), len(body)),)
        return msgspec.structs.replace(o, upload=upload, parts=parts, bytes=len(body), crc=crc64nvme(body))

    def rebuild(self, objects: Sequence[ClosedObject]) -> RebuildOutcome:
        made = [self.uploaded(o.first, o.last) for o in objects]
        self.rebuilt += [o.key for o in objects]
        if self.rebuilds_are_lost:
            self.sink.memory.uploads.clear()
        return RebuildOutcome(
            [msgspec.structs.replace(o, record=old.record) for o, old in zip(made, objects, strict=True)]
        )

    def record(self, *closed: ClosedObject, after: PartitionState | None = None) -> None:
        end = max((o.last for o in closed), default=-1) + 1
        self.committer.record(
            clock=CLOCK_MS,
            partitions={TP: after or read_up_to(end)},
            closed=closed,
            started_uploads=[(o.key, o.upload) for o in closed],
        )

    def stored(self) -> Record:
        """The last record of the ledger."""
        return self.sink.ledger.record(self.sink.ledger.load().number)

    def visible(self) -> list[str]:
        return sorted(key for key in self.sink.memory.objects if "/_s3sink/" not in key)

    def offset(self) -> int | None:
        return self.sink.kafka.group_offsets("group", [TP]).get(TP)


@pytest.fixture
def commits(tmp_path: Path) -> Commits:
    return Commits(tmp_path)


def test_each_effect_waits_until_the_one_before_it_is_durable(
    commits: Commits, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = commits.uploaded(0, 4)
    steps: list[str] = []

    def fault(call: str, key: str) -> None:
        if call == "complete":
            assert commits.stored().closed[0].key == one.key
            steps.append("visible")
        elif call == "put" and "/ledger/" in key:
            steps.append("acknowledged" if commits.visible() else "recorded")

    def commit(*args: object, **given: object) -> None:
        assert commits.stored().acknowledged == (one.key,)
        steps.append("committed")

    commits.sink.memory.fault = fault
    monkeypatch.setattr(commits.sink.kafka, "alter_group_offsets", commit)
    commits.record(one)
    commits.committer.publish(CLOCK_MS)
    assert steps == ["recorded", "visible", "acknowledged", "committed"]


def test_a_record_numbers_what_it_lists_and_keeps_the_number_of_a_rebuilt_object(commits: Commits) -> None:
    one, again = commits.uploaded(0, 4), msgspec.structs.replace(commits.uploaded(5, 9), record=1)
    lost = LostObject(TP.topic, TP.partition, "key", "p", 10, 11, OffsetChecksum(2, 0))
    rotation = RotationRange(TP.topic, TP.partition, 0, 10, OffsetChecksum(10, 0))
    commits.committer.record(
        clock=CLOCK_MS, partitions={TP: read_up_to(12)}, closed=[one, again], lost=[lost], rotations=[rotation]
    )
    stored = commits.stored()
    assert [o.record for o in stored.closed] == [stored.number, 1]
    assert (stored.lost[0].record, stored.rotations[0].record) == (stored.number, stored.number)


def test_the_offset_of_the_group_stays_below_an_open_object(commits: Commits) -> None:
    commits.record(commits.uploaded(0, 4), after=read_up_to(9, open_object(5, 8)))
    commits.committer.publish(CLOCK_MS)
    assert commits.offset() == 5
    assert commits.committer.committed == {TP: 5}
    assert commits.committer.published == 1


def test_without_a_closed_object_nothing_is_recorded_and_the_offsets_are_committed(commits: Commits) -> None:
    commits.record(after=read_up_to(7))
    number = commits.committer.state.number
    commits.committer.publish(CLOCK_MS)
    assert commits.committer.state.number == number
    assert commits.offset() == 7


def test_an_object_whose_upload_is_gone_is_rebuilt_recorded_and_published(commits: Commits) -> None:
    one, other = commits.uploaded(0, 4), commits.uploaded(5, 9)
    commits.record(one, other)
    commits.sink.memory.abort(one.key, one.upload)
    commits.committer.publish(CLOCK_MS)
    assert commits.rebuilt == [one.key]
    assert commits.visible() == sorted([one.key, other.key])
    assert commits.offset() == 10
    assert (commits.committer.published, commits.committer.state.pending) == (2, {})


def test_an_object_that_is_visible_is_acknowledged_before_the_rebuild_of_another_one_can_fail(commits: Commits) -> None:
    one, other = commits.uploaded(0, 4), commits.uploaded(5, 9)
    commits.record(one, other)
    commits.sink.memory.abort(other.key, other.upload)
    commits.rebuilds_are_lost = True
    with pytest.raises(TransientError):
        commits.committer.publish(CLOCK_MS)
    assert commits.committer.state.pending.keys() == {other.key}
    assert commits.visible() == [one.key]
    assert commits.offset() is None


def test_uploads_that_disappear_again_and_again_end_the_driver(commits: Commits) -> None:
    one = commits.uploaded(0, 4)
    commits.record(one)
    commits.sink.memory.uploads.clear()
    commits.rebuilds_are_lost = True
    with pytest.raises(TransientError, match=r"uploads to s3://archive disappear .* \(5 times in a row\)"):
        commits.committer.publish(CLOCK_MS)
    assert commits.rebuilt == [one.key] * MAX_REBUILD_ATTEMPTS
    commits.rebuilds_are_lost = False
    commits.committer.publish(CLOCK_MS)
    assert commits.visible() == [one.key]


def test_another_object_at_the_key_is_not_overwritten_and_no_offset_passes_it(commits: Commits) -> None:
    one, other = commits.uploaded(0, 4), commits.uploaded(5, 9)
    commits.record(one, other)
    commits.sink.memory.put(one.key, b"of another program")
    with pytest.raises(ObjectConflict, match=one.key):
        commits.committer.publish(CLOCK_MS)
    assert commits.sink.memory.get(one.key) == b"of another program"
    assert commits.offset() is None


def test_a_fenced_driver_aborts_the_uploads_that_no_record_lists(commits: Commits) -> None:
    one = commits.uploaded(0, 4)
    commits.sink.claim(by="other")
    state = commits.committer.state
    with pytest.raises(LedgerFenced, match="other"):
        commits.record(one)
    assert commits.sink.memory.uploads == {}
    assert commits.committer.state == state


@pytest.mark.parametrize("error", [TransientError("no answer"), DataLoss("gone")])
def test_after_another_error_the_record_may_exist_so_no_upload_is_aborted(commits: Commits, error: Exception) -> None:
    one = commits.uploaded(0, 4)

    def fault(call: str, key: str) -> None:
        if call == "put":
            raise error

    commits.sink.memory.fault = fault
    with pytest.raises(type(error)):
        commits.record(one)
    assert one.upload in commits.sink.memory.uploads


def test_staged_remainders_are_deleted_after_the_record_that_replaces_them(commits: Commits) -> None:
    memory, key = commits.sink.memory, f"{commits.sink.root}staging/1"
    memory.put(key, b"rest")
    o = msgspec.structs.replace(open_object(0, 3), blocks=(Extent(key, 0, 4, 0),))
    commits.record(after=read_up_to(4, o))
    assert key in memory.objects
    commits.record(after=read_up_to(4))
    assert key not in memory.objects


def test_a_snapshot_is_taken_at_its_interval(tmp_path: Path) -> None:
    commits = Commits(tmp_path, snapshot_every=3)
    taken = []
    for offset in range(1, 9):
        commits.record(after=read_up_to(offset))
        taken.append(commits.committer.maybe_snapshot())
    assert taken == [False, True, False, False, True, False, False, True]
    assert commits.committer.state == commits.sink.ledger.load()


@pytest.fixture
def sink_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    return MemorySinkFixture(tmp_path, monkeypatch)


class Vanishing:
    """A fault: the upload of each of the first `times` parts is gone when the part arrives."""

    def __init__(self, s3: MemoryS3, times: int) -> None:
        self._s3 = s3
        self.left = times

    def __call__(self, call: str, key: str) -> None:
        if call == "upload_part" and key == FIRST and self.left:
            self.left -= 1
            self._s3.uploads.clear()


def test_an_upload_that_disappears_during_a_rebuild_gets_another_attempt(sink_fixture: MemorySinkFixture) -> None:
    pending(sink_fixture)
    sink_fixture.s3.uploads.clear()
    with sink_fixture.faults(vanishing := Vanishing(sink_fixture.s3, 3)):
        sink_fixture.run(LOG)
    assert vanishing.left == 0
    assert sink_fixture.offsets() == OBJECTS
    assert sink_fixture.orphans() == []


def test_uploads_that_keep_vanishing_are_worth_trying_again_later_and_nothing_is_left(
    sink_fixture: MemorySinkFixture,
) -> None:
    pending(sink_fixture)
    sink_fixture.s3.uploads.clear()
    with sink_fixture.faults(Vanishing(sink_fixture.s3, 1_000)):
        error = error_of(lambda: sink_fixture.run(LOG))
    assert type(error) is TransientError
    assert "disappear during rebuilds" in str(error)
    assert sink_fixture.s3.uploads == {}
    sink_fixture.run(LOG)
    assert sink_fixture.offsets() == OBJECTS


def test_uploads_of_an_attempt_are_aborted_if_kafka_no_longer_holds_all_records(
    sink_fixture: MemorySinkFixture,
) -> None:
    pending(sink_fixture)
    sink_fixture.s3.uploads.clear()
    holed = replace(LOG, gaps=frozenset({3}))
    assert isinstance(error_of(lambda: sink_fixture.run(holed)), DataLoss)
    assert sink_fixture.s3.uploads == {}
