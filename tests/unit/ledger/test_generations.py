"""Generations: discarded open objects, and the effect of a reset on the state."""

from __future__ import annotations

import msgspec
import pytest

from sink_job.api.enums import OnNullValue
from sink_job.api.sections.job_sections import DeadLetterSettings, KeySettings
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.generations import (
    commit_metadata,
    end_of_generation,
    generation_metadata,
    generation_of,
    ledger_of,
    new_topics_dir,
    open_object_ranges,
    settings_below,
    settings_of_generation,
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
)
from sink_job.ledger.transitions import apply, diff
from sink_job.rotation.types import OpenObjectState, RotationState

TP = TopicPartition("log", 0)


def opened(path: str, first: int, last: int) -> OpenObject:
    """An object of all offsets from `first` to `last`, with an uploaded part and a staged remainder."""
    part, staged = Part(1, "e", 1, 10), Extent("staging/x", 0, 5, 1)
    offsets = checksum_range(first, last + 1)
    return OpenObject(
        OpenObjectState(path=path, first=first, last=last, count=offsets.count, size=15, opened_at=0),
        settings=1,
        offsets=offsets,
        upload="u",
        parts=(part,),
        blocks=(staged,),
        partial_block=(staged,),
        index=(staged,),
    )


def closed(key: str, first: int, last: int, record: int) -> ClosedObject:
    return ClosedObject(
        key=key, topic="log", partition=0, path="p", first=first, last=last, bytes=1, crc=1, upload="u", parts=(),
        sources=(), offsets=checksum_range(first, last + 1), settings=1, record=record,
    )  # fmt: skip


def reading(*objects: OpenObject, closed_offsets: int = 0) -> PartitionState:
    """A topic-partition with the next offset 30. Since its last rotation range, which ended at 10, closed objects took
    `closed_offsets` offsets."""
    accepted = sum((o.offsets for o in objects), checksum_range(10, 10 + closed_offsets))
    return PartitionState(
        RotationState(next=30, committable=min(o.first for o in objects), last_time=5, open_records=20),
        rotation_start=10,
        accepted=accepted,
        accepted_end=30,
        open=objects,
    )


# -- discarding open objects -------------------------------------------------------------------------------------------


def test_without_closed_objects_since_the_last_rotation_discarding_rewinds_to_committable() -> None:
    after = without_open_bytes(reading(opened("a", 12, 19), opened("b", 20, 29)))
    assert after == PartitionState(RotationState.start(12), rotation_start=10, accepted_end=10)


def test_discarding_keeps_what_was_skipped() -> None:
    before = msgspec.structs.replace(reading(opened("a", 12, 19)), skipped=(4, 15))
    assert without_open_bytes(before).skipped == (4, 15)


def test_with_later_closed_objects_discarded_objects_keep_their_records_without_bytes() -> None:
    before = reading(opened("a", 20, 29), closed_offsets=5)
    after = without_open_bytes(before)
    assert (after.next, after.accepted) == (before.next, before.accepted)
    [kept] = after.open
    assert (kept.offsets, kept.upload, kept.parts, kept.staged) == (before.open[0].offsets, None, (), ())


def test_discarding_twice_has_the_effect_of_discarding_once() -> None:
    once = without_open_bytes(reading(opened("a", 20, 29), closed_offsets=5))
    assert without_open_bytes(once) == once


def test_a_generation_ends_without_open_objects() -> None:
    assert end_of_generation(reading(opened("a", 12, 29))).open == ()
    left = end_of_generation(reading(opened("a", 20, 29), closed_offsets=5))
    assert (left.open, left.accepted) == ((), checksum_range(10, 15))


def test_the_intent_covers_the_first_offsets_of_open_objects() -> None:
    state = LedgerState(
        partitions={
            "log-0": reading(opened("a", 12, 19), opened("b", 20, 29)),
            "log-1": PartitionState(RotationState.start(0), rotation_start=0),
        }
    )
    assert open_object_ranges(state) == {"log-0": (12, 21)}


# -- names -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("topics_dir", "expected"), [("lake", "lake/generation=2"), ("", "generation=2")])
def test_a_new_prefix_is_below_the_topics_dir_of_the_sink(topics_dir: str, expected: str) -> None:
    object_settings = ObjectSettings(s3=KeySettings(topics_dir=topics_dir))
    assert new_topics_dir(object_settings, 2) == expected
    assert (
        ObjectSettings.model_validate_json(settings_below(object_settings, expected).model_dump_json()).s3.topics_dir
        == expected
    )


def test_without_a_reset_settings_and_metadata_are_unchanged() -> None:
    object_settings = ObjectSettings()
    assert settings_below(object_settings, None) is object_settings
    assert generation_metadata(1) == ""


def test_commit_metadata_contains_the_generation_and_the_ledger() -> None:
    ledger = "s3://lake/räume, and more/_s3sink/default.log/"
    text = commit_metadata(12, ledger)
    assert text == f"generation 12, ledger {ledger}"
    assert ledger_of(text) == ledger
    assert f"{text},".startswith(f"{generation_metadata(12)},")
    assert not f"{text},".startswith(f"{generation_metadata(1) or 'generation 1'},")


@pytest.mark.parametrize(
    "text", ["", "generation 2", "of another consumer", "ledger s3://b/", "generation x, ledger s3://b/"]
)
def test_the_metadata_of_other_consumers_contains_no_ledger(text: str) -> None:
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
        partitions={"log-0": diff(None, PartitionState(RotationState.start(start), rotation_start=start))},
        reset=OffsetResetRecord(generation=2, topics_dir="topics/generation=2", ended={"log-0": before}, nonce="n"),
    )


def test_a_reset_is_a_claim_and_keeps_only_its_own_partitions() -> None:
    state = LedgerState(
        number=4,
        settings={1: "old"},
        claims=(1,),
        partitions={
            "log-0": reading(opened("a", 12, 29)),
            "gone-0": PartitionState(RotationState.start(0), rotation_start=0),
        },
    )
    after = apply(state, reset_claim(5, start=0, before=PartitionState(RotationState.start(12), rotation_start=10)))
    assert set(after.partitions) == {"log-0"}
    assert (after.partitions["log-0"].next, after.partitions["log-0"].open) == (0, ())
    assert (after.claims, after.epoch, after.settings) == ((1, 5), 5, {5: "{}"})
    assert (after.generation, after.topics_dir, after.nonce, after.format) == (2, "topics/generation=2", "n", FORMAT)


def test_a_reset_without_a_request_digest_is_read() -> None:
    assert (
        msgspec.json.decode(
            b'{"generation":2,"topics_dir":"topics","ended":{},"nonce":"n"}', type=OffsetResetRecord
        ).request
        == ""
    )


@pytest.mark.parametrize("topics_dir", [None, "topics/generation=3"])
def test_dead_letter_objects_in_the_folder_of_the_ledger_have_a_directory_for_each_generation(
    topics_dir: str | None,
) -> None:
    prefix = "topics/_s3sink/s/dead-letters"
    chosen = DeadLetterSettings(prefix=prefix, on_null_value=OnNullValue.FAIL, topic="t", staged=True)
    settings = ObjectSettings(dead_letters=chosen)
    found = settings_of_generation(settings, topics_dir, 3).dead_letters
    assert found is not None
    assert found.prefix == f"{prefix}/3"
    visible = settings.model_copy(update={"dead_letters": chosen.model_copy(update={"prefix": "bad", "staged": False})})
    assert settings_of_generation(visible, None, 3) == visible
