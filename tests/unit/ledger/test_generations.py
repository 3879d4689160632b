"""Generations: what giving up leaves of a topic-partition, what a reset makes of a state, and what belongs to which."""

from __future__ import annotations

import msgspec
import pytest

from sink_job.api.spec import KeySettings, ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.generations import (
    commit_metadata,
    end_of_generation,
    generation_metadata,
    generation_of,
    ledger_of,
    new_topics_dir,
    open_object_ranges,
    shaping_below,
    without_open_bytes,
)
from sink_job.ledger.offset_checksum import checksum_range
from sink_job.ledger.state import (
    FORMAT,
    ClosedObject,
    Extent,
    LedgerState,
    OffsetResetRecord,
    OpenObject,
    Part,
    PartitionState,
    Record,
    RotationRange,
    apply,
    diff,
)
from sink_job.verify.audit import BucketState, GenerationAudit, UntrackedObject
from sink_job.verify.per_generation import buckets, per_generation

TP = TopicPartition("log", 0)


def opened(path: str, first: int, last: int) -> OpenObject:
    """An object of all offsets from `first` to `last`, with a part on the server and leftovers."""
    part, left = Part(1, "e", 1, 10), Extent("staging/x", 0, 5, 1)
    offsets = checksum_range(first, last + 1)
    return OpenObject(
        path=path, first=first, last=last, size=15, opened_at=0, settings=1, offsets=offsets, upload="u", parts=(part,),
        blocks=(left,), partial_block=(left,),
    )  # fmt: skip


def named(key: str, first: int, last: int, record: int) -> ClosedObject:
    return ClosedObject(
        key=key, topic="log", partition=0, path="p", first=first, last=last, bytes=1, crc=1, upload="u", parts=(),
        sources=(), offsets=checksum_range(first, last + 1), settings=1, record=record,
    )  # fmt: skip


def reading(*objects: OpenObject, closed: int = 0) -> PartitionState:
    """A topic-partition that has been read up to 30; since its last rotation, at 10, `closed` offsets were closed."""
    written = sum((o.offsets for o in objects), checksum_range(10, 10 + closed))
    return PartitionState(
        next=30, committable=min(o.first for o in objects), rotation_start=10, accepted=written, accepted_end=30,
        open_records=20, last_time=5, open=objects,
    )  # fmt: skip


# -- giving up ---------------------------------------------------------------------------------------------------------


def test_where_nothing_was_closed_since_the_last_rotation_it_is_read_again_from_the_first_that_is_in_no_object() -> (
    None
):
    after = without_open_bytes(reading(opened("a", 12, 19), opened("b", 20, 29)))
    assert after == PartitionState(next=12, committable=12, rotation_start=10, accepted_end=10)


def test_where_others_were_closed_behind_it_the_open_ones_stay_as_they_were_cut_without_bytes() -> None:
    before = reading(opened("a", 20, 29), closed=5)
    after = without_open_bytes(before)
    assert (after.next, after.accepted) == (before.next, before.accepted)
    [kept] = after.open
    assert (kept.offsets, kept.upload, kept.parts, kept.staged) == (before.open[0].offsets, None, (), ())


def test_giving_up_twice_is_giving_up_once() -> None:
    once = without_open_bytes(reading(opened("a", 20, 29), closed=5))
    assert without_open_bytes(once) == once


def test_a_generation_ends_with_nothing_open() -> None:
    assert end_of_generation(reading(opened("a", 12, 29))).open == ()
    left = end_of_generation(reading(opened("a", 20, 29), closed=5))
    assert (left.open, left.accepted) == ((), checksum_range(10, 15))


def test_the_intent_covers_where_open_objects_begin() -> None:
    state = LedgerState(
        partitions={"log-0": reading(opened("a", 12, 19), opened("b", 20, 29)), "log-1": PartitionState(0, 0, 0)}
    )
    assert open_object_ranges(state) == {"log-0": (12, 21)}


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("topics_dir", "told"), [("lake", "lake/generation=2"), ("", "generation=2")])
def test_a_new_prefix_is_below_the_sinks_own_directory(topics_dir: str, told: str) -> None:
    shaping = ObjectSettings(s3=KeySettings(topics_dir=topics_dir))
    assert new_topics_dir(shaping, 2) == told
    assert ObjectSettings.model_validate_json(shaping_below(shaping, told).model_dump_json()).s3.topics_dir == told


def test_without_a_reset_nothing_is_different() -> None:
    shaping = ObjectSettings()
    assert shaping_below(shaping, None) is shaping
    assert generation_metadata(1) == ""


def test_a_commit_names_its_generation_and_its_ledger() -> None:
    ledger = "s3://lake/räume, and more/_s3sink/default.log/"
    text = commit_metadata(12, ledger)
    assert text == f"generation 12, ledger {ledger}"
    assert ledger_of(text) == ledger
    assert f"{text},".startswith(f"{generation_metadata(12)},")
    assert not f"{text},".startswith(f"{generation_metadata(1) or 'generation 1'},")


@pytest.mark.parametrize(
    "text", ["", "generation 2", "somebody else's", "ledger s3://b/", "generation x, ledger s3://b/"]
)
def test_the_metadata_of_other_consumers_names_no_ledger(text: str) -> None:
    assert ledger_of(text) is None


@pytest.mark.parametrize(("record", "generation"), [(0, 1), (4, 1), (5, 2), (8, 2), (9, 3), (100, 3)])
def test_a_record_belongs_to_the_generation_of_the_last_reset_before_it(record: int, generation: int) -> None:
    assert generation_of(record, [5, 9]) == generation


# -- the record --------------------------------------------------------------------------------------------------------


def reset_claim(number: int, *, start: int, before: PartitionState) -> Record:
    return Record(
        number=number,
        epoch=number,
        attempt="r",
        kind="claim",
        clock=0,
        settings="{}",
        partitions={"log-0": diff(None, PartitionState(next=start, committable=start, rotation_start=start))},
        reset=OffsetResetRecord(generation=2, topics_dir="topics/generation=2", ended={"log-0": before}, nonce="n"),
    )


def test_a_reset_leaves_only_the_partitions_that_it_names_and_is_a_claim() -> None:
    state = LedgerState(
        number=4,
        settings={1: "old"},
        claims=(1,),
        partitions={"log-0": reading(opened("a", 12, 29)), "gone-0": PartitionState(0, 0, 0)},
    )
    after = apply(state, reset_claim(5, start=0, before=PartitionState(12, 12, 10)))
    assert set(after.partitions) == {"log-0"}
    assert (after.partitions["log-0"].next, after.partitions["log-0"].open) == (0, ())
    assert (after.claims, after.epoch, after.settings) == ((1, 5), 5, {5: "{}"})
    assert (after.generation, after.topics_dir, after.nonce, after.format) == (2, "topics/generation=2", "n", FORMAT)


def test_a_reset_that_was_recorded_without_the_digest_of_its_request_is_read() -> None:
    assert (
        msgspec.json.decode(
            b'{"generation":2,"topics_dir":"topics","ended":{},"nonce":"n"}', type=OffsetResetRecord
        ).request
        == ""
    )


# -- whose it is -------------------------------------------------------------------------------------------------------


def two_generations(*, start: int) -> list[GenerationAudit]:
    """0 to 19 in two objects of the first generation; the second starts at `start` and has one object from there on."""
    before = PartitionState(next=20, committable=20, rotation_start=20)
    first = Record(
        number=1, epoch=1, attempt="a", kind="claim", clock=0, settings="{}",
        partitions={"log-0": diff(None, PartitionState(0, 0, 0))},
    )  # fmt: skip
    claims = [first, reset_claim(5, start=start, before=before)]
    objects = [named("topics/log/a", 0, 9, 2), named("topics/log/b", 10, 19, 3), named("new", start, start + 9, 6)]
    rotations = [
        RotationRange("log", 0, 0, 20, checksum_range(0, 0), record=3),
        RotationRange("log", 0, start, start + 10, checksum_range(0, 0), record=6),
    ]
    end = start + 10
    state = LedgerState(
        number=6, generation=2, topics_dir="topics/generation=2", partitions={"log-0": PartitionState(end, end, end)}
    )
    return per_generation(state, objects, rotations, claims)


def test_objects_and_rotations_belong_to_the_generation_whose_record_told_of_them() -> None:
    first, second = two_generations(start=0)
    assert ([o.key for o in first.published], [o.key for o in second.published]) == (
        ["topics/log/a", "topics/log/b"],
        ["new"],
    )
    assert [(r.start, r.end) for r in first.rotations] == [(0, 20)]
    assert (first.starts, second.starts) == ({TP: 0}, {TP: 0})
    assert (first.ended, second.ended) == (True, False)


def test_what_a_later_generation_copies_again_need_not_be_there() -> None:
    both = BucketState(missing=frozenset({"topics/log/a", "topics/log/b"}))
    first, _ = buckets(two_generations(start=10), both, [KeySettings()])
    assert first.missing == frozenset({"topics/log/a"})
    assert first.replaced == frozenset({"topics/log/b"})


def test_an_unknown_object_is_told_of_the_generation_whose_records_it_doubles() -> None:
    old, new = UntrackedObject("topics/log/x", 5, 1), UntrackedObject("topics/generation=2/log/x", 5, 1)
    behind = UntrackedObject("topics/log/y", 50, 1)
    first, second = buckets(two_generations(start=0), BucketState(unknown={TP: [old, new, behind]}), [KeySettings()])
    assert (first.unknown, second.unknown) == ({TP: [old]}, {TP: [new]})
