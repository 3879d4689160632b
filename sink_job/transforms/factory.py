"""The transform of a section of `spec.transforms`."""

from __future__ import annotations

from sink_job.api.enums import DeletedRows, TransformType, UnixTimeUnit
from sink_job.api.sections.transforms_section import TransformSpec
from sink_job.transforms.base import Transform
from sink_job.transforms.cast import CastFields, CastValue
from sink_job.transforms.fields import Insert, Rename, Select
from sink_job.transforms.mask import Mask
from sink_job.transforms.nesting import Extract, Flatten, Hoist
from sink_job.transforms.timestamp import ConvertTimestamp
from sink_job.transforms.unwrap import Unwrap


def transform_of(spec: TransformSpec) -> Transform | None:
    """The transform; None for a Filter. Raises ValueError for one that the spec should have rejected."""
    match spec.type:
        case TransformType.FILTER:
            return None
        case TransformType.INSERT if spec.field is not None and spec.source is not None:
            return Insert(spec.field, spec.source, spec.text, required=spec.required is True)
        case TransformType.KEEP | TransformType.DROP:
            return Select(spec.fields or (), kept=spec.type is TransformType.KEEP)
        case TransformType.RENAME:
            return Rename(spec.renames or {})
        case TransformType.MASK:
            return Mask(spec.fields or (), spec.replacement)
        case TransformType.CAST:
            return CastFields(spec.casts or {}) if spec.cast_to is None else CastValue(spec.cast_to)
        case TransformType.FLATTEN:
            return Flatten(spec.delimiter or ".")
        case TransformType.EXTRACT if spec.field is not None:
            return Extract(spec.field)
        case TransformType.HOIST if spec.field is not None:
            return Hoist(spec.field)
        case TransformType.TIMESTAMP if spec.timestamp_type is not None:
            unit = spec.unit or UnixTimeUnit.MILLISECONDS
            return ConvertTimestamp(spec.field, spec.timestamp_type, spec.timestamp_format, unit)
        case TransformType.UNWRAP:
            return Unwrap(spec.deletes or DeletedRows.TOMBSTONE, spec.add_fields or ())
    raise ValueError(f"the transform {spec.type} is incomplete")
