"""From a batch of records to rows for the rotator: where converter, null policy, paths and format meet."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from sink_job.api.enums import OnNullValue
from sink_job.api.sections.job_sections import DeadLetterSettings, ErrorsSpec
from sink_job.api.topic_partition import TopicPartition
from sink_job.codecs.required_columns import required_columns
from sink_job.partitioning.object_keys import extension
from sink_job.records.batch import REJECTED, REJECTED_PATH
from sink_job.writer.record_pipeline import PreparedBatch, RecordPipeline, RejectedRow, RejectionReason
from tests.unit.rotation.settings import object_settings

TP = TopicPartition("t", 3)


def pipeline(on_null: OnNullValue = OnNullValue.FAIL, **sections: Any) -> RecordPipeline:
    return RecordPipeline.of(object_settings(**sections), ErrorsSpec(on_null_value=on_null))


def prepare(
    found: RecordPipeline,
    values: list[bytes | None],
    *,
    timestamps: list[int] | None = None,
    first: int = 10,
    now: int = 0,
) -> PreparedBatch:
    columns = {
        "offset": pa.array(range(first, first + len(values)), pa.int64()),
        "value": pa.array(values, pa.binary()),
        "timestamp": pa.array(timestamps or [0] * len(values), pa.int64()),
    }
    return found.prepare(pa.record_batch(columns), now, TP)


def test_rows_have_offsets_paths_and_the_sizes_of_their_lines() -> None:
    prepared = prepare(pipeline(), [b'{"a":1}', b"5"])
    rows = prepared.rows
    assert rows.offsets.tolist() == [10, 11]
    assert (rows.paths, rows.codes.tolist()) == (["partition=3"], [0, 0])
    assert rows.sizes is not None
    assert rows.sizes.tolist() == [8, 2]
    assert prepared.encoded.to_pylist() == [b'{"a":1}\n', b"5\n"]
    assert (prepared.errors, prepared.ignored) == ([], 0)


def test_a_value_that_is_rejected_is_an_error_and_has_no_effect() -> None:
    prepared = prepare(pipeline(), [b"1", b"nope", b"2"])
    assert prepared.rows.codes.tolist() == [0, REJECTED, 0]
    assert prepared.errors == [RejectedRow(1, 11, "the value is not JSON: invalid character (byte 1)")]


@pytest.mark.parametrize("null", [None, b"null"])
def test_a_null_is_an_error_or_ignored_as_the_policy_says(null: bytes | None) -> None:
    failed = prepare(pipeline(), [b"1", null])
    assert failed.errors == [
        RejectedRow(1, 11, "the value is null, and errors.onNullValue is Fail", RejectionReason.NULL_VALUE)
    ]
    assert (failed.rows.codes.tolist(), failed.ignored) == ([0, REJECTED], 0)
    ignored = prepare(pipeline(OnNullValue.IGNORE), [b"1", null, b"x"])
    assert (ignored.rows.codes.tolist(), ignored.ignored) == ([0, REJECTED, REJECTED], 1)
    assert [error.row for error in ignored.errors] == [2]


@pytest.mark.parametrize("null", [None, b"null"])
def test_an_ignored_null_is_a_dead_letter_with_null_values(null: bytes | None) -> None:
    kept = DeadLetterSettings(prefix="rejected", on_null_value=OnNullValue.IGNORE, null_values=True)
    settings = object_settings().model_copy(update={"dead_letters": kept})
    prepared = prepare(RecordPipeline.of(settings, ErrorsSpec(on_null_value=OnNullValue.IGNORE)), [b"1", null])
    assert prepared.errors == [RejectedRow(1, 11, "the value is null", RejectionReason.NULL_VALUE)]
    assert (prepared.rows.codes.tolist(), prepared.ignored) == ([0, REJECTED], 0)


def test_a_path_that_is_rejected_is_an_error_of_its_own_kind() -> None:
    found = pipeline(partitioner={"type": "Field", "fields": ["a.b"]})
    prepared = prepare(found, [b'{"a":{"b":"x"}}', b"{}", b"nope"])
    assert prepared.rows.codes.tolist() == [0, REJECTED_PATH, REJECTED]
    assert [(error.offset, error.message) for error in prepared.errors] == [
        (11, 'field "a.b" is missing'),
        (12, "the value is not JSON: invalid character (byte 1)"),
    ]


def test_kafka_timestamps_are_asked_for_only_when_they_are_used() -> None:
    time = {"type": "Hourly", "timezone": "UTC", "timestampExtractor": "Record"}
    assert required_columns(object_settings(partitioner=time)).timestamp
    assert not required_columns(object_settings()).timestamp
    prepared = prepare(pipeline(partitioner=time), [b"1", b"2"], timestamps=[0, -1])
    assert prepared.rows.paths == ["year=1970/month=01/day=01/hour=00"]
    assert [error.message for error in prepared.errors] == ["the record has no Kafka timestamp"]


def test_paths_by_wallclock_need_the_rounds_clock() -> None:
    found = pipeline(partitioner={"type": "Daily", "timezone": "UTC"})
    assert found.needs_clock
    assert not pipeline().needs_clock
    assert prepare(found, [b"1"], now=86_400_000).rows.paths == ["year=1970/month=01/day=02"]


def test_a_key_that_s3_would_not_take_is_a_data_error() -> None:
    found = pipeline(partitioner={"type": "Field", "fields": ["f"]})
    overhead = len(found.key(TP, "f=", 0).encode())
    fits, too_long = ("x" * (1024 - overhead), "x" * (1025 - overhead))
    umlauts = "ä" * ((1025 - overhead + 1) // 2)
    prepared = prepare(found, [f'{{"f":"{value}"}}'.encode() for value in (fits, too_long, umlauts)])
    assert prepared.rows.codes.tolist() == [0, REJECTED_PATH, REJECTED_PATH]
    assert {error.message for error in prepared.errors} == {"its object's key would be longer than 1024 bytes"}


@pytest.mark.parametrize("last", [9, 99])
def test_a_key_may_grow_too_long_with_its_offset(last: int) -> None:
    found = pipeline(partitioner={"type": "Field", "fields": ["f"]}, s3={"offsetPadWidth": 0})
    value = "x" * (1024 - len(found.key(TP, "f=", last).encode()))
    prepared = prepare(found, [f'{{"f":"{value}"}}'.encode()] * 3, first=last - 1)
    assert prepared.rows.codes.tolist() == [0, 0, REJECTED_PATH]


def test_a_batch_may_be_rejected_as_a_whole() -> None:
    found = pipeline(partitioner={"type": "Field", "fields": ["f"]})
    prepared = prepare(found, [None, b"x"])
    assert prepared.rows.codes.tolist() == [REJECTED, REJECTED]
    assert len(prepared.encoded) == 2


@pytest.mark.parametrize("converter", ["Json", "Text", "Bytes"])
def test_a_slice_of_a_batch_is_prepared_like_one_of_its_own(converter: str) -> None:
    found = pipeline(format={"converter": converter})
    batch = pa.record_batch(
        {"offset": pa.array(range(6), pa.int64()), "value": pa.array([b"1", b"x", None, b"3", b"4", b"5"], pa.binary())}
    )
    part = found.prepare(batch.slice(1, 3), 0, TP)
    whole = found.prepare(batch, 0, TP)
    assert part.rows.offsets.tolist() == [1, 2, 3]
    assert part.rows.codes.tolist() == whole.rows.codes.tolist()[1:4]
    assert part.encoded[2].as_py() == whole.encoded[3].as_py()


@pytest.mark.parametrize(("compression", "suffix"), [("None", ""), ("Gzip", ".gz"), ("Zstd", ".zst")])
def test_keys_and_extensions_are_those_of_the_settings(compression: str, suffix: str) -> None:
    found = pipeline(format={"compression": {"codec": compression}})
    assert extension(found.object_settings) == f".json{suffix}"
    assert found.key(TP, "p", 5) == f"topics/t/p/t+3+0000000005.json{suffix}"
    assert found.compression.extension == suffix


def test_an_unsupported_setting_is_rejected() -> None:
    with pytest.raises(ValueError, match="compression Snappy"):
        pipeline(format={"compression": {"codec": "Snappy"}})


def test_a_reason_is_limited_in_length() -> None:
    found = pipeline(format={"converter": "ConnectJson"})
    (error,) = prepare(found, [b'{"schema":{"type":"%b"},"payload":1}' % (b"x" * 5000)]).errors
    assert len(error.message) == 1000
    assert "xxx" in error.message
