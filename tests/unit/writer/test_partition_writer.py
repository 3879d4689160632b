"""The writer of a topic-partition: objects, source ranges, gaps, data errors, and unresolved schema ids.

The converter of most tests is a simple one: a value begins with the id of its schema and a space.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.enums import SchemaCompatibility
from sink_job.api.spec import ObjectSettings
from sink_job.codecs.required_columns import task_columns
from sink_job.connect.schema import Schema, SchemaType, schema_id
from sink_job.converters.base import BatchSource, Converted, SchemaColumn
from sink_job.ledger.offset_checksum import checksum
from sink_job.ledger.state import OffsetChecksum, PartitionState, SourceRange
from sink_job.rotation.types import Append, Close, ObjectId, RotationState
from sink_job.tasks.write import MAX_UNRESOLVED
from sink_job.writer.partition_writer import MAX_REJECTED, moved, rotation_state
from sink_job.writer.row_selection import group_by_id, select_rows
from tests.support.synthetic_log import SyntheticLog
from tests.unit.rotation.settings import object_settings
from tests.unit.writer import one_partition
from tests.unit.writer.one_partition import TP, OnePartition, batches
from tests.unit.writer.tasks import Tasks

FIRST, SECOND = (Schema(SchemaType.STRUCT, name="Flight", version=version) for version in (1, 2))
ONE, TWO = schema_id(FIRST), schema_id(SECOND)


class NoneResolved:
    """A table of schemas of which the driver has resolved none."""

    def find(self, topic: str, schema_id: str) -> None:
        return None


@dataclass
class PrefixConverter:
    """Knows the schemas `resolved`, and that the registry does not know the ids `unknown`. "-" is no schema."""

    resolved: dict[str, Schema] = field(default_factory=lambda: {"1": FIRST, "2": SECOND})
    unknown: set[str] = field(default_factory=set)
    scanned: int = 0
    """The number of values that were searched for unresolved ids."""

    def convert(self, values: pa.BinaryArray, source: BatchSource) -> Converted:
        ids = [value.split(b" ", 1)[0].decode() for value in values.to_pylist()]
        known = list(self.resolved)
        unknown = [row for row, each in enumerate(ids) if each in self.unknown]
        missing = [(row, each) for row, each in enumerate(ids) if self._is_unresolved(each)]
        codes = [known.index(each) if each in known else -1 for each in ids]
        return Converted(
            values,
            rejected=[(row, f"the registry does not know the schema id {ids[row]}") for row in unknown],
            schemas=SchemaColumn(np.array(codes, np.int32), list(self.resolved.values())),
            unresolved=[(row, each) for row, each in missing],
            unknown=unknown,
        )

    def unresolved(self, values: pa.BinaryArray, source: BatchSource) -> tuple[str, ...]:
        self.scanned += len(values)
        ids = dict.fromkeys(value.split(b" ", 1)[0].decode() for value in values.to_pylist())
        return tuple(each for each in ids if self._is_unresolved(each))

    def _is_unresolved(self, schema: str) -> bool:
        return schema != "-" and schema not in self.resolved and schema not in self.unknown


def settings(compatibility: str = "Separate", flush_size: int = 1000) -> ObjectSettings:
    sections = object_settings(rotation={"flushSize": flush_size}, format={"output": "Bytes", "converter": "Bytes"})
    return sections.model_copy(update={"schema_compatibility": SchemaCompatibility(compatibility)})


def partition(compatibility: str = "Separate", **fields: object) -> OnePartition:
    fields.setdefault("converter", PrefixConverter())
    return OnePartition(settings(compatibility), **fields)  # type: ignore[arg-type]


def values(ids: Iterable[str]) -> list[bytes]:
    """A value for each of the ids."""
    return [f"{each} value {n}".encode() for n, each in enumerate(ids)]


def objects(one: OnePartition) -> list[tuple[str | None, int, int, int]]:
    return [(o.schema, o.first, o.last, o.offsets.count) for o in one.objects]


def test_with_separate_two_alternating_schemas_have_one_object_each() -> None:
    one = partition()
    one.round(0, values("1212"))
    one.round(1, values("21"))
    assert objects(one) == [(ONE, 0, 5, 3), (TWO, 1, 4, 3)]


def test_with_none_another_schema_closes_the_object() -> None:
    one = partition("None")
    one.round(0, values("1122"))
    one.round(1, values("21"))
    assert objects(one) == [(ONE, 0, 1, 2), (TWO, 2, 4, 3), (ONE, 5, 5, 1)]


def test_objects_of_one_path_have_different_keys() -> None:
    one = partition()
    one.round(0, values("12"), close=True)
    assert [o.key for o in one.named] == [
        "topics/log/partition=0/log+0+0000000000.bin",
        "topics/log/partition=0/log+0+0000000001.bin",
    ]


@pytest.mark.parametrize("compatibility", ["None", "Separate"])
@given(st.lists(st.text("12-x", max_size=8), max_size=5))
def test_the_recorded_ranges_path_and_schema_select_the_written_records(compatibility: str, rounds: list[str]) -> None:
    one = partition(compatibility, converter=PrefixConverter(unknown={"x"}), tolerant=True)
    for now, ids in enumerate(rounds):
        one.round(now, values(ids))
    one.converter = PrefixConverter({"1": FIRST, "2": SECOND, "x": SECOND})  # registered later
    found: dict[int, list[int]] = {id(o): [] for o in one.objects}
    for batch in batches(0, values("".join(rounds))):
        rows = one.pipeline.prepare(batch, 0, TP).rows
        for o, indices in select_rows(group_by_id(one.objects), rows, 0):
            found[id(o)] += rows.offsets[indices].tolist()
    for o in one.objects:
        assert checksum(np.array(found[id(o)], dtype=np.int64)) == o.offsets


# -- unknown schema ids -----------------------------------------------------------------------------------------------


def test_source_ranges_leave_out_records_whose_schema_id_the_registry_does_not_know() -> None:
    one = partition(converter=PrefixConverter(unknown={"x"}), tolerant=True)
    one.round(0, values("11xx1x"))
    assert one.seen() == [(SourceRange(0, 2, 0), SourceRange(4, 5, 0))]


def test_a_source_range_is_not_extended_over_such_a_record_of_an_earlier_round() -> None:
    one = partition(converter=PrefixConverter(unknown={"x"}), tolerant=True)
    for ids in ("11x", "11", "1"):
        one.round(0, values(ids))
    assert one.seen() == [(SourceRange(0, 2, 0), SourceRange(3, 6, 0))]


# -- skipped records --------------------------------------------------------------------------------------------------


def test_source_ranges_leave_out_skipped_records() -> None:
    one = partition()
    result = one.round(0, values("111111"), skip=[2, 3])
    assert one.seen() == [(SourceRange(0, 2, 0), SourceRange(4, 6, 0))]
    assert (result.state.skipped, result.counts.skipped, result.counts.records) == ((2, 3), 2, 4)


def test_a_source_range_is_not_extended_over_a_skipped_record_of_an_earlier_round() -> None:
    one = partition()
    one.round(0, values("111"), skip=[2])
    one.round(0, values("11"))
    one.round(0, values("1"))
    assert one.seen() == [(SourceRange(0, 2, 0), SourceRange(3, 6, 0))]
    assert one.state.skipped == (2,)


def test_skipped_records_and_those_of_unknown_schemas_are_both_left_out() -> None:
    one = partition(converter=PrefixConverter(unknown={"x"}), tolerant=True)
    for ids, skip in (("1x11", [2]), ("11x", [4]), ("111", [8])):
        one.round(0, values(ids), skip=skip)
    assert one.seen() == [tuple(SourceRange(offset, offset + 1, 0) for offset in (0, 3, 5, 7, 9))]


def test_a_skipped_record_is_a_gap() -> None:
    one = partition()
    one.round(0, values("1111"), skip=[1, 3], close=True)
    (rotation,) = one.rotations
    assert (rotation.start, rotation.end) == (0, 3)
    assert rotation.gaps == checksum(np.array([1]))
    assert (one.state.next, one.state.committable) == (4, 4)


def test_a_range_of_skipped_records_alone_is_passed() -> None:
    one = partition()
    result = one.round(0, values("11"), skip=[0, 1])
    assert (result.state.next, result.state.committable, result.state.skipped) == (2, 2, (0, 1))
    assert one.objects == []


def test_an_invalid_record_that_is_skipped_does_not_stop_the_range() -> None:
    one = partition(converter=PrefixConverter(unknown={"x"}))
    assert one.round(0, values("1x1")).error is not None
    assert one.state.next == 1
    result = one.round(0, values("x1"), skip=[1])
    assert (result.error, result.state.next) == (None, 3)
    assert one.seen() == [(SourceRange(0, 1, 0), SourceRange(2, 3, 0))]


def test_a_record_behind_the_one_that_stops_the_range_is_not_recorded_as_skipped() -> None:
    one = partition(converter=PrefixConverter(unknown={"x"}))
    result = one.round(0, values("11x11"), skip=[1, 4])
    assert (result.state.next, result.state.skipped, result.counts.skipped) == (2, (1,), 1)


def test_the_schema_of_a_skipped_record_is_not_resolved() -> None:
    one = partition()
    result = one.round(0, values("1311"), skip=[1])
    assert (result.unresolved, result.state.next) == ((), 4)
    result = one.round(0, values("1345"), skip=[6])
    assert [each for _, each in result.unresolved] == ["3", "5"]
    assert (result.state.next, result.state.skipped) == (5, (1,))


def test_what_the_ledger_has_as_skipped_is_skipped_when_it_is_read_again() -> None:
    one = partition()
    one.state = PartitionState(RotationState.start(2), rotation_start=2, accepted_end=2, skipped=(1, 3))
    one.round(0, values("111"))
    assert one.seen() == [(SourceRange(2, 3, 0), SourceRange(4, 5, 0))]
    assert one.state.skipped == (1, 3)


@given(st.lists(st.sampled_from(["1", "2", "x", "s"]), min_size=1, max_size=24), st.integers(1, 9))
def test_the_recorded_ranges_select_the_written_records_beside_skipped_ones(kinds: list[str], size: int) -> None:
    """A rebuild knows nothing of skipped records, and all schema ids by then."""
    one = partition(converter=PrefixConverter(unknown={"x"}), tolerant=True)
    for start in range(0, len(kinds), size):
        ids = kinds[start : start + size]
        skip = [start + n for n, kind in enumerate(ids) if kind == "s"]
        one.round(0, values("1" if kind == "s" else kind for kind in ids), skip=skip)
    for o in one.objects:
        selected = [at for source in o.sources for at in range(source.start, source.end)]
        expected = "1" if o.schema == ONE else "2"
        found = [at for at in selected if kinds[at] == expected]
        assert [kinds[at] for at in selected if kinds[at] in "xs"] == []
        assert checksum(np.array(found, np.int64)) == o.offsets


# -- unresolved schema ids --------------------------------------------------------------------------------------------


def test_the_range_ends_before_the_first_record_whose_schema_is_not_resolved() -> None:
    one = partition()
    result = one.round(0, values("1123"))
    assert (result.state.next, result.error) == (3, None)
    assert objects(one) == [(ONE, 0, 1, 2), (TWO, 2, 2, 1)]


def test_the_unresolved_schema_ids_of_keys_beside_rows_of_plain_json_are_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = object_settings(
        partitioner={"type": "Field", "fields": ["$key.id"]},
        format={"keyConverter": "Avro"},
        wire_format={"type": "Confluent", "subjects": "TopicName", "idIn": "Either"},
    )
    assert task_columns(given).separator == b"\n"

    def rows(first: int, values: Sequence[bytes]) -> Iterator[pa.RecordBatch]:
        for number, value in enumerate(values, first):
            columns = {
                "offset": pa.array([number], pa.int64()),
                "row": pa.array([value + b"\n"], pa.binary()),
                "key": pa.array([b"\0" + number.to_bytes(4) + b"x"], pa.binary()),
                "headers": pa.array([None], pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
            }
            yield pa.RecordBatch.from_pydict(columns)

    monkeypatch.setattr(one_partition, "batches", rows)
    result = OnePartition(given, registered=NoneResolved()).round(0, [b"1", b"2", b"3"])
    assert (result.state.next, result.error) == (0, None)
    assert result.unresolved == (("log", "key-0"), ("log", "key-1"), ("log", "key-2"))


def test_the_rest_of_the_range_is_searched_for_further_unresolved_ids() -> None:
    result = partition().round(0, values("13141" + "15361"))
    assert result.unresolved == (("log", "3"), ("log", "4"), ("log", "5"), ("log", "6"))


def test_a_task_reports_the_first_of_many_unresolved_ids() -> None:
    result = partition().round(0, values(f"id{n}" for n in range(MAX_UNRESOLVED + 5)))
    assert result.unresolved == tuple(("log", f"id{n}") for n in range(MAX_UNRESOLVED))


def test_the_search_for_unresolved_ids_ends_at_their_maximum_number() -> None:
    converter = PrefixConverter()
    partition(converter=converter).round(0, values(f"id{n}" for n in range(2 * MAX_UNRESOLVED)))
    assert MAX_UNRESOLVED - 10 < converter.scanned < MAX_UNRESOLVED


def test_the_search_for_unresolved_ids_ends_where_many_bytes_have_no_further_one() -> None:
    converter = PrefixConverter()
    padding = b"x" * (1 << 20)
    given = [value + padding for value in values("1314111" + "5" + "1" * 30 + "6")]
    result = partition(converter=converter).round(0, given)
    assert result.unresolved == (("log", "3"), ("log", "4"), ("log", "5"))
    assert converter.scanned < 20


def test_the_range_continues_after_its_schemas_are_resolved() -> None:
    one = partition()
    one.round(0, values("13"))
    one.converter = PrefixConverter({"1": FIRST, "3": SECOND})
    result = one.round(1, values("31"))
    assert result.unresolved == ()
    assert objects(one) == [(ONE, 0, 2, 2), (TWO, 1, 1, 1)]


def test_a_data_error_before_the_first_unresolved_id_stops_the_sink() -> None:
    result = partition(converter=PrefixConverter(unknown={"x"})).round(0, values("1x3"))
    assert result.error is not None
    assert (result.error.offset, result.unresolved) == (1, ())


def test_a_data_error_after_the_first_unresolved_id_waits_for_the_next_round() -> None:
    result = partition(converter=PrefixConverter(unknown={"x"})).round(0, values("13x"))
    assert (result.error, result.state.next) == (None, 1)


def test_objects_stay_open_if_the_range_ends_at_an_unresolved_id() -> None:
    one = partition()
    one.round(0, values("13"), close=True)
    assert [o.schema for o in one.state.open] == [ONE]


def test_rejected_records_are_counted_once_if_the_range_ends_early() -> None:
    result = partition(converter=PrefixConverter(unknown={"x"}), tolerant=True).round(0, values("x3x"))
    assert result.counts.rejected == 1


def test_the_first_record_can_be_unresolved() -> None:
    result = partition().round(0, values("31"))
    assert (result.state.next, result.unresolved) == (0, (("log", "3"),))


def ids_of(schemas: Sequence[Schema]) -> list[str]:
    return [schema_id(each) for each in schemas]


def test_the_schema_ids_of_prepared_rows_are_those_of_connects_schemas() -> None:
    (batch,) = batches(0, values("21-"))
    rows = partition().pipeline.prepare(batch, 0, TP).rows
    assert rows.schemas is not None
    assert (rows.schemas.tolist(), rows.schema_ids) == ([1, 0, -1], ids_of([FIRST, SECOND]))


# -- a whole task ----------------------------------------------------------------------------------------------------


def tasks(monkeypatch: pytest.MonkeyPatch, log: SyntheticLog, **given: object) -> Tasks:
    return Tasks(monkeypatch, log, **given)


def test_a_task_reports_what_it_has_written(monkeypatch: pytest.MonkeyPatch) -> None:
    one = tasks(monkeypatch, SyntheticLog(records=12, value_bytes=60))
    counts = one.write(12).counts
    assert (counts.records, counts.parts, counts.rejected, counts.ignored) == (12, 2, 0, 0)
    assert counts.bytes == sum(len(one.log.value(0, n)) + 1 for n in range(12))
    assert counts.staged_bytes == sum(len(one.log.value(0, n)) + 1 for n in (10, 11))


def test_offsets_that_are_in_no_object_are_the_gaps_of_the_rotation(monkeypatch: pytest.MonkeyPatch) -> None:
    one = tasks(monkeypatch, SyntheticLog(records=12, gaps=frozenset({0, 3, 11})))
    result = one.write(12, close=True)
    assert [(r.start, r.end, r.gaps) for r in result.rotations] == [
        (0, 7, checksum(np.array([0, 3], np.int64))),
        (7, 11, OffsetChecksum()),
    ]
    assert (result.state.rotation_start, result.state.accepted) == (11, OffsetChecksum())
    assert (result.state.next, result.state.committable, result.state.open) == (12, 12, ())


def test_accepted_offsets_of_open_objects_count_for_the_next_rotation(monkeypatch: pytest.MonkeyPatch) -> None:
    one = tasks(monkeypatch, SyntheticLog(records=12))
    first = one.write(3)
    assert (first.rotations, first.state.accepted.count, first.state.committable) == ((), 3, 0)
    assert [(r.start, r.end, r.gaps.count) for r in one.write(5).rotations] == [(0, 5, 0)]


class InvalidLog(SyntheticLog):
    """Records at the offsets 3 and 4, and from 20 on, are no JSON."""

    def value(self, partition: int, offset: int) -> bytes:
        return b"{" if offset in (3, 4) or offset >= 20 else super().value(partition, offset)


def test_the_range_ends_before_the_first_data_error_and_what_was_read_before_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    result = tasks(monkeypatch, InvalidLog(records=12)).write(12)
    assert result.error is not None
    assert result.error.offset == 3
    assert (result.state.next, [o.count for o in result.state.open], result.counts.rejected) == (3, [3], 0)


def test_tolerated_records_are_dropped_counted_and_the_first_ten_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    one = tasks(monkeypatch, InvalidLog(records=40))
    result = one.write(40, tolerant=True)
    assert (result.error, result.counts.rejected, result.counts.records) == (None, 22, 18)
    assert [each.offset for each in result.rejected] == [3, 4, *range(20, 28)]
    assert len(result.rejected) == MAX_REJECTED
    assert all(each.message for each in result.rejected)


@pytest.mark.parametrize("lost", ["upload", "staging"])
def test_a_lost_upload_or_remainder_is_a_result_that_keeps_the_state(
    monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    one = tasks(monkeypatch, SyntheticLog(records=12), flush_size=100, part_size="5Mi")
    one.write(3)
    before = one.state
    if lost == "staging":
        one.memory.objects.clear()
    else:

        def vanish(call: str, key: str) -> None:
            if call == "upload_part":
                one.memory.uploads.clear()

        one.memory.fault = vanish
    result = one.write(9, close=True)
    assert result.lost
    assert (result.state, result.closed, result.counts.records) == (before, (), 0)
    assert len(result.started_uploads) == (1 if lost == "upload" else len(one.memory.uploads))


def test_other_settings_start_with_an_empty_rotation_if_nothing_is_open() -> None:
    old = RotationState(next=9, committable=9, last_time=5, interval_start=4, current_path="a", next_schedule=7)
    state = PartitionState(old, rotation_start=9, settings=1)
    assert rotation_state(state, 1) == old
    assert rotation_state(state, 2) == RotationState(next=9, committable=9)


def test_the_steps_of_a_part_of_a_batch_are_moved_to_its_rows() -> None:
    close = Close(())
    steps: list[Append | Close] = [
        Append(ObjectId("a"), slice(None, 3)),
        close,
        Append(ObjectId("b"), np.array([0, 2], np.intp)),
    ]
    first, second, third = moved(steps, 10)
    assert isinstance(first, Append)
    assert isinstance(third, Append)
    assert (first.rows, second) == (slice(10, 13), close)
    assert np.asarray(third.rows).tolist() == [10, 12]
