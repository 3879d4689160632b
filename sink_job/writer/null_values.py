"""What happens to records without a value."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sink_job.api.enums import OnNullValue
from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.api.spec import ObjectSettings
from sink_job.converters.base import Converted
from sink_job.records.fields import Rejections


class NullPolicy(NamedTuple):
    """`errors.onNullValue`, and whether null values that would be ignored are dead letters."""

    on_null: OnNullValue
    kept: bool

    @classmethod
    def of(cls, object_settings: ObjectSettings, errors: ErrorsSpec) -> NullPolicy:
        """With dead letters the policy is that of their object, else that of the manifest. Raises ValueError."""
        dead_letters = object_settings.dead_letters
        on_null = errors.on_null_value if dead_letters is None else dead_letters.on_null_value
        if on_null is OnNullValue.WRITE:
            raise ValueError("onNullValue Write is not supported yet")
        return cls(on_null, dead_letters is not None and dead_letters.null_values)

    def apply(self, converted: Converted) -> tuple[Rejections, int]:
        """The rejections of these records, and the number of null values that are dropped."""
        if converted.nulls is None:
            return converted.rejected, 0
        rows = np.flatnonzero(converted.nulls).tolist()
        if self.on_null is OnNullValue.IGNORE and not self.kept:
            return converted.rejected, len(rows)
        reason = "the value is null" if self.kept else "the value is null, and errors.onNullValue is Fail"
        return [*converted.rejected, *((row, reason) for row in rows)], 0
