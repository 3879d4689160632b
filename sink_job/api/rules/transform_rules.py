"""Rules for `spec.transforms`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sink_job.api.enums import ConverterType, InsertSource, OutputFormat, TimestampType, TransformType
from sink_job.api.field_errors import FieldError, Path, shown
from sink_job.api.field_types import check_field_name

if TYPE_CHECKING:
    from sink_job.api.sections.transforms_section import Predicate, TransformSpec
    from sink_job.api.spec import Spec

_HERE: Final[Path] = ("spec", "transforms")
_FORMAT: Final[Path] = ("spec", "format")

FIELDS_OF: Final[dict[TransformType, tuple[tuple[str, ...], tuple[str, ...]]]] = {
    TransformType.INSERT: (("field", "source"), ("text", "required")),
    TransformType.KEEP: (("fields",), ()),
    TransformType.DROP: (("fields",), ()),
    TransformType.RENAME: (("renames",), ()),
    TransformType.MASK: (("fields",), ("replacement",)),
    TransformType.CAST: ((), ("casts", "castTo")),
    TransformType.FLATTEN: ((), ("delimiter",)),
    TransformType.EXTRACT: (("field",), ()),
    TransformType.HOIST: (("field",), ()),
    TransformType.TIMESTAMP: (("timestampType",), ("field", "timestampFormat", "unit")),
    TransformType.FILTER: (("when",), ()),
    TransformType.UNWRAP: ((), ("deletes", "addFields")),
}
"""The fields that a transform needs, and those that it may have beside `when`."""

OWN_FIELDS: Final = tuple(dict.fromkeys(name for pair in FIELDS_OF.values() for names in pair for name in names))


def check_transforms(spec: Spec) -> Iterator[FieldError]:
    """The errors of transforms, and of what cannot be combined with them."""
    if not spec.transforms:
        return
    if any(each.reads_value for each in spec.transforms):
        yield from _format(spec)
    yield from _typed(spec)
    for number, each in enumerate(spec.transforms):
        here: Path = (*_HERE, number)
        yield from _fields(here, each)
        yield from _names(here, each)
        yield from _choices(here, each)
        yield from _timestamp(here, each)
        if each.when is not None:
            yield from _predicate((*here, "when"), each.when)


def _format(spec: Spec) -> Iterator[FieldError]:
    converter, output = spec.format.converter, spec.format.output
    if converter is not ConverterType.JSON and not converter.has_schemas:
        message = (
            f"cannot be used with spec.format.converter {converter}: transforms but Filter without field read JSON or "
            "values with a schema; use the converter Json, ConnectJson, Avro, Protobuf or JsonSchema"
        )
        yield FieldError(_HERE, message, ((*_FORMAT, "converter"),))
    if output is OutputFormat.BYTES:
        message = "cannot be used with spec.format.output Bytes, which writes values as they came; use another output"
        yield FieldError(_HERE, message, ((*_FORMAT, "output"),))


def _fields(here: Path, transform: TransformSpec) -> Iterator[FieldError]:
    required, allowed = FIELDS_OF[transform.type]
    fields = type(transform).model_fields
    given = {str(fields[name].alias): getattr(transform, name) for name in transform.model_fields_set}
    given = {name: value for name, value in given.items() if value is not None}
    for name in required:
        if name not in given:
            yield FieldError((*here, name), f"is missing: {transform.type} needs it", ((*here, "type"),))
    for name in OWN_FIELDS:
        if name in given and name not in (*required, *allowed, "when"):
            at: Path = (*here, name)
            message = f"{shown(at, given[name])} has no effect on {transform.type}: remove it"
            yield FieldError(at, message, ((*here, "type"),))


def _names(here: Path, transform: TransformSpec) -> Iterator[FieldError]:
    """The names in mappings."""
    for field, names in (("renames", transform.renames), ("casts", transform.casts)):
        for name in names or ():
            try:
                check_field_name(name)
            except ValueError as error:
                yield FieldError((*here, field), f"has a name that {error}")


def _choices(here: Path, transform: TransformSpec) -> Iterator[FieldError]:
    """What types need or exclude beyond single fields."""
    if transform.type is TransformType.INSERT and transform.source is not None:
        at, depends = (*here, "text"), ((*here, "source"),)
        needs_text = transform.source is InsertSource.TEXT
        if needs_text and transform.text is None:
            yield FieldError(at, "is missing: the source Text needs it", depends)
        if not needs_text and transform.text is not None:
            effect = f"has no effect with the source {transform.source}: remove it, or use the source Text"
            yield FieldError(at, f"{shown(at, transform.text)} {effect}", depends)
    if transform.type is TransformType.CAST and (not transform.casts) is (transform.cast_to is None):
        yield FieldError(here, "needs either casts, for fields, or castTo, for the whole value", ((*here, "casts"),))
    if transform.type is TransformType.RENAME and transform.renames is not None:
        names = list(transform.renames.values())
        if not names or len(set(names)) < len(names):
            yield FieldError((*here, "renames"), "needs at least one name, and must not have a new name twice")


def _typed(spec: Spec) -> Iterator[FieldError]:
    """Types of times that only values with a schema have."""
    has_schemas = spec.format.converter.has_schemas
    for number, each in enumerate(spec.transforms):
        if each.type is TransformType.UNWRAP and not has_schemas:
            message = (
                "Unwrap needs change events with a schema: use Extract with the field after, or a converter with "
                "schemas"
            )
            yield FieldError((*_HERE, number, "type"), message, ((*_FORMAT, "converter"),))
        kind, at = each.timestamp_type, (*_HERE, number, "timestampType")
        is_typed = kind not in (None, TimestampType.TEXT, TimestampType.UNIX_TIME)
        if is_typed and not has_schemas:
            message = f"{kind} needs values with a schema: use Text or UnixTime, or a converter with schemas"
            yield FieldError(at, message, ((*_FORMAT, "converter"),))


def _timestamp(here: Path, transform: TransformSpec) -> Iterator[FieldError]:
    at: Path = (*here, "timestampFormat")
    if transform.timestamp_type is TimestampType.TEXT and transform.timestamp_format is None:
        yield FieldError(at, "is missing: the type Text needs it", ((*here, "timestampType"),))


def _predicate(here: Path, predicate: Predicate) -> Iterator[FieldError]:
    conditions = (predicate.topic, predicate.header, predicate.tombstone, predicate.field)
    if all(each is None for each in conditions):
        yield FieldError(here, "has no condition: set topic, header, tombstone or field")
    if predicate.values is not None and predicate.field is None:
        yield FieldError((*here, "values"), "a list has no effect without field: set field", ((*here, "field"),))
