"""The rotator against its oracle, and promise P3: how records are spread over batches and rounds changes no cut."""

from __future__ import annotations

from dataclasses import replace
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from sink_job.rotation import per_object, row_index
from sink_job.rotation.policy import RotationPolicy
from sink_job.rotation.rotator import Rotator
from sink_job.rotation.types import RotationState
from tests.unit.rotation import strategies
from tests.unit.rotation.oracle import OneRecord
from tests.unit.rotation.replay import Replay, Round, naive, naive_cut


@given(strategies.settings, strategies.rounds())
def test_the_rotator_does_what_the_rules_say_record_by_record(settings: RotationPolicy, rounds: list[Round]) -> None:
    expected = naive(settings, rounds)
    replay = Replay(settings)
    for this in rounds:
        replay.round(this)
    assert replay.closed == [[naive_cut(o) for o in group] for group in expected.closed]
    assert replay.open == [naive_cut(o) for o in expected.open]
    state = replay.state
    assert (state.open_records, state.interval_start, state.last_time) == (
        expected.n,
        expected.base,
        expected.last_time,
    )
    assert (state.next, state.current_path) == (expected.next, expected.current_path)
    assert (state.next_schedule, state.committable) == (expected.next_schedule, expected.committable)


@given(strategies.settings, strategies.rounds())
def test_the_windows_in_which_it_searches_do_not_matter(settings: RotationPolicy, rounds: list[Round]) -> None:
    expected = naive(settings, rounds)
    replay = Replay(settings)
    with patch.object(row_index, "_WINDOW", 1), patch.object(per_object, "_MIN_WINDOW", 2):
        for this in rounds:
            replay.round(this)
    assert replay.closed == [[naive_cut(o) for o in group] for group in expected.closed]
    assert replay.open == [naive_cut(o) for o in expected.open]


@given(strategies.settings, strategies.rounds(), st.data())
def test_batches_do_not_matter(settings: RotationPolicy, rounds: list[Round], data: st.DataObject) -> None:
    whole, split = Replay(settings), Replay(settings)
    for this in rounds:
        records = [record for batch in this.batches for record in batch]
        whole.round(Round(this.now, [records] if records else [], this.end))
        split.round(Round(this.now, sublists(records, data), this.end))
    assert (split.closed, split.open, split.state) == (whole.closed, whole.open, whole.state)


@given(strategies.settings, strategies.rounds(), st.data())
def test_rounds_under_one_clock_cut_like_one_round(
    settings: RotationPolicy, rounds: list[Round], data: st.DataObject
) -> None:
    """Without changes between records with and without a schema: while the schedule is due, rule 1 closes an object and
    leaves the schedule due, as in the connector. Then the end of a round closes the next one, too."""
    whole, split = Replay(settings), Replay(settings)
    for this in all_with_schema(rounds):
        records = [record for batch in this.batches for record in batch if not record.path_rejected]
        whole.round(Round(this.now, [records] if records else [], this.end))
        parts = sublists(records, data) or [[]]
        for part in parts[:-1]:
            split.round(Round(this.now, [part], part[-1].offset + 1))
        split.round(Round(this.now, [parts[-1]] if parts[-1] else [], this.end))
    assert [cut for group in split.closed for cut in group] == [cut for group in whole.closed for cut in group]
    assert split.open == whole.open
    assert split.state.next_schedule == whole.state.next_schedule


def all_with_schema(rounds: list[Round]) -> list[Round]:
    """The rounds with a schema for each record, if any of them has one."""
    if not any(record.schema for this in rounds for batch in this.batches for record in batch):
        return rounds
    return [
        Round(this.now, [[with_schema(record) for record in batch] for batch in this.batches], this.end)
        for this in rounds
    ]


def with_schema(record: OneRecord) -> OneRecord:
    return record if record.schema else replace(record, schema="s1")


@given(strategies.settings, strategies.rounds())
def test_the_committable_offset_never_goes_back_and_never_passes_an_open_record(
    settings: RotationPolicy, rounds: list[Round]
) -> None:
    replay, before = Replay(settings), 0
    for this in rounds:
        replay.round(this)
        committable = replay.state.committable
        assert before <= committable <= replay.state.next
        assert all(committable <= offsets[0] for _, offsets, *_ in replay.open)
        assert (
            all(offsets[-1] < committable for group in replay.closed for _, offsets, *_ in group) or settings.per_object
        )
        before = committable


@given(strategies.settings, strategies.rounds())
def test_each_written_record_is_in_exactly_one_object(settings: RotationPolicy, rounds: list[Round]) -> None:
    replay = Replay(settings)
    for this in rounds:
        replay.round(this)
    cuts = [cut for group in replay.closed for cut in group] + replay.open
    row_index = [r.offset for this in rounds for batch in this.batches for r in batch if r.path is not None]
    assert sorted(offset for _, offsets, *_ in cuts for offset in offsets) == row_index


@given(strategies.settings, strategies.rounds())
def test_a_close_ends_a_rotation_if_nothing_is_open_and_all_later_offsets_are_higher(
    settings: RotationPolicy, rounds: list[Round]
) -> None:
    replay = Replay(settings)
    for this in rounds:
        replay.round(this)
    offsets = replay.appended
    expected = [n for n in replay.possible_rotation_ends if max(offsets[:n]) < min(offsets[n:], default=1 << 62)]
    assert replay.rotation_ends == expected


@given(strategies.settings, strategies.rounds(most=2))
def test_a_rotator_leaves_the_state_it_was_given_alone(settings: RotationPolicy, rounds: list[Round]) -> None:
    replay = Replay(settings)
    replay.round(rounds[0])
    before = repr(replay.state)
    rotator = Rotator(settings, replay.state, replay.objects, rounds[-1].now)
    rotator.open_round()
    rotator.close_all()
    assert repr(replay.state) == before


def test_a_long_batch_is_cut_where_its_records_say() -> None:
    settings = RotationPolicy(
        flush_size=100, interval=10**9, on_path_change=False, max_open_objects=500, max_bytes=10**9
    )
    records = [OneRecord(offset, "a" if offset % 3 else "b", offset, 1) for offset in range(20_000)]
    replay = Replay(settings, RotationState.start(0))
    replay.round(Round(0, [records], 20_000))
    assert [sorted(path for path, *_ in group) for group in replay.closed] == [["a", "b"]] * 200


def sublists(records: list[OneRecord], data: st.DataObject) -> list[list[OneRecord]]:
    """`records` in sublists of random lengths, none of them empty."""
    found = []
    while records:
        length = data.draw(st.integers(1, len(records)))
        found.append(records[:length])
        records = records[length:]
    return found
