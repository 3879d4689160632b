"""What happens to records without a value."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from sink_job.api.enums import OnNullValue, SchemaCompatibility
from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.api.spec import ObjectSettings
from sink_job.arrow.arrays import Mask
from sink_job.converters.base import Converted
from sink_job.envelope.null_records import WrittenNulls
from sink_job.records.fields import Rejections


class NullPolicy(NamedTuple):
    """`errors.onNullValue`, and whether null values that would be ignored are dead letters. `path`: the path of all
    records without a value, if they are written there; None: that of other records."""

    on_null: OnNullValue
    kept: bool
    path: str | None = None

    @classmethod
    def of(cls, object_settings: ObjectSettings, errors: ErrorsSpec) -> NullPolicy:
        """Whether they are written is a setting of the object. With dead letters the policy is that of their object,
        else that of the manifest: what it says of records that are not in the object does not change its bytes."""
        dead_letters = object_settings.dead_letters
        if object_settings.null_values is not None:
            return cls(OnNullValue.WRITE, kept=False, path=object_settings.tombstone_path)
        on_null = errors.on_null_value if dead_letters is None else dead_letters.on_null_value
        on_null = OnNullValue.IGNORE if on_null is OnNullValue.WRITE else on_null
        return cls(on_null, dead_letters is not None and dead_letters.null_values)

    @property
    def writes(self) -> bool:
        """Whether records without a value are written."""
        return self.on_null is OnNullValue.WRITE

    def apply(self, converted: Converted) -> tuple[Rejections, int]:
        """The rejections of these records, and the number of null values that are dropped."""
        if converted.nulls is None or self.writes:
            return converted.rejected, 0
        rows = np.flatnonzero(converted.nulls).tolist()
        if self.on_null is OnNullValue.IGNORE and not self.kept:
            return converted.rejected, len(rows)
        reason = "the value is null" if self.kept else "the value is null, and errors.onNullValue is Fail"
        return [*converted.rejected, *((row, reason) for row in rows)], 0

    def skipped(self, converted: Converted, rejected: Rejections) -> Mask:
        """A mask of the rows that are in no object: those that transforms leave out, the rejected ones and, unless they
        are written, the null ones."""
        nulls = None if self.writes else converted.nulls
        mask = np.zeros(len(converted.values), np.bool_) if nulls is None else nulls.copy()
        if converted.filtered is not None:
            mask |= converted.filtered
        mask[[row for row, _ in rejected]] = True
        return mask

    def without_written(self, converted: Converted) -> Converted:
        """`converted`, whose null values count only if they are not written."""
        return replace(converted, nulls=None) if self.writes else converted

    def apart(self, converted: Converted, skip: Mask) -> Mask | None:
        """A mask of the rows on `path`, without those of the mask `skip`; None if there are none."""
        if self.path is None or converted.nulls is None:
            return None
        rows = converted.nulls & ~skip
        return rows if rows.any() else None


def written_nulls(object_settings: ObjectSettings) -> WrittenNulls | None:
    """How records without a value are written; None if they are not."""
    if object_settings.null_values is None:
        return None
    is_separate = object_settings.schema_compatibility is SchemaCompatibility.SEPARATE
    return WrittenNulls(apart=object_settings.tombstone_path is not None, separate=is_separate)
