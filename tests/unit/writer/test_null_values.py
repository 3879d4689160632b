"""The policy of records without a value."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from sink_job.api.enums import OnNullValue
from sink_job.api.sections.job_sections import DeadLetterSettings, ErrorsSpec
from sink_job.converters.base import Converted
from sink_job.writer.null_values import NullPolicy
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
    assert NullPolicy.of(settings, manifest) == (OnNullValue.IGNORE, True)
    assert NullPolicy.of(object_settings(), manifest) == (OnNullValue.FAIL, False)


def test_a_policy_that_is_not_supported_is_an_error() -> None:
    with pytest.raises(ValueError, match="Write"):
        NullPolicy.of(object_settings(), ErrorsSpec(on_null_value=OnNullValue.WRITE))
