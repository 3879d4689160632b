"""The policy of records without a value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sink_job.api.enums import OnNullValue, SchemaCompatibility
from sink_job.api.sections.job_sections import DeadLetterSettings, ErrorsSpec
from sink_job.converters.base import Converted
from sink_job.writer.null_values import NullPolicy, written_nulls
from tests.unit.rotation.settings import object_settings

NULL_IN_ROW_1 = Converted(
    pa.array([b"1", b"", b"x"], pa.binary()), nulls=np.array([False, True, False]), rejected=[(2, "x")]
)


def test_a_null_is_rejected_by_fail() -> None:
    rejections, ignored = NullPolicy(OnNullValue.FAIL, kept=False).apply(NULL_IN_ROW_1)
    assert (rejections, ignored) == ([(2, "x"), (1, "the value is null, and errors.onNullValue is Fail")], 0)


def test_a_null_is_counted_by_ignore() -> None:
    assert NullPolicy(OnNullValue.IGNORE, kept=False).apply(NULL_IN_ROW_1) == ([(2, "x")], 1)


def test_a_null_that_is_kept_is_rejected_by_ignore() -> None:
    rejections, ignored = NullPolicy(OnNullValue.IGNORE, kept=True).apply(NULL_IN_ROW_1)
    assert (rejections, ignored) == ([(2, "x"), (1, "the value is null")], 0)


def test_the_policy_of_dead_letters_is_that_of_their_object() -> None:
    dead_letters = DeadLetterSettings(prefix="rejected", on_null_value=OnNullValue.IGNORE, null_values=True)
    settings = object_settings().model_copy(update={"dead_letters": dead_letters})
    manifest = ErrorsSpec(on_null_value=OnNullValue.FAIL)
    assert NullPolicy.of(settings, manifest) == (OnNullValue.IGNORE, True, None)
    assert NullPolicy.of(object_settings(), manifest) == (OnNullValue.FAIL, False, None)


def test_nulls_are_written_by_the_settings_of_the_object_alone() -> None:
    manifest = ErrorsSpec(on_null_value=OnNullValue.WRITE)
    assert NullPolicy.of(object_settings(null_values={}), ErrorsSpec()) == (OnNullValue.WRITE, False, None)
    assert NullPolicy.of(object_settings(), manifest).apply(NULL_IN_ROW_1) == ([(2, "x")], 1)


BY_FIELD = {"type": "Field", "fields": ["a"]}
BY_KEY = {"type": "Field", "fields": ["$key", "$header.h"]}
BY_TIME = {"type": "Daily", "timezone": "UTC"}
BY_TIME_OF_VALUE = BY_TIME | {"timestampExtractor": "RecordField", "timestampField": "at"}


@pytest.mark.parametrize(
    ("partitioner", "path"),
    [
        ({}, None),
        (BY_KEY, None),
        (BY_TIME, None),
        (BY_TIME | {"timestampExtractor": "Record"}, None),
        (BY_TIME | {"timestampExtractor": "RecordField", "timestampField": "$header.at"}, None),
        (BY_FIELD, "tombstone"),
        (BY_TIME_OF_VALUE, "tombstone"),
        ({"schemaName": "Prefix"}, "tombstone"),
    ],
)
def test_a_null_has_a_path_of_its_own_if_others_need_the_value(
    partitioner: dict[str, object], path: str | None
) -> None:
    settings = object_settings(partitioner=partitioner, null_values={})
    assert NullPolicy.of(settings, ErrorsSpec()).path == path
    chosen = object_settings(partitioner=partitioner, null_values={"tombstonePath": "gone"})
    assert NullPolicy.of(chosen, ErrorsSpec()).path == "gone"


def test_a_written_null_is_neither_rejected_nor_skipped() -> None:
    policy = NullPolicy(OnNullValue.WRITE, kept=False, path="gone")
    assert policy.apply(NULL_IN_ROW_1) == ([(2, "x")], 0)
    skip = policy.skipped(NULL_IN_ROW_1, [(2, "x")])
    apart = policy.apart(NULL_IN_ROW_1, skip)
    assert (skip.tolist(), apart is not None and apart.tolist()) == ([False, False, True], [False, True, False])
    assert policy.apart(NULL_IN_ROW_1, np.ones(3, np.bool_)) is None


def test_a_null_that_is_not_written_is_skipped() -> None:
    assert NullPolicy(OnNullValue.FAIL, kept=False).skipped(NULL_IN_ROW_1, []).tolist() == [False, True, False]


def test_nulls_follow_the_schemas_of_others_on_their_path_unless_these_are_separate() -> None:
    apart = object_settings(null_values={"tombstonePath": "gone"})
    separate = object_settings(null_values={}).model_copy(update={"schema_compatibility": SchemaCompatibility.SEPARATE})
    found = [written_nulls(each) for each in (object_settings(null_values={}), apart, separate)]
    assert [each is not None and each.follow for each in found] == [True, False, False]
    assert written_nulls(object_settings()) is None
