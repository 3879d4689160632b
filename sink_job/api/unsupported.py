"""What this version can do of what a manifest can ask. The rest is refused by name, never ignored."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from sink_job.api.enums import (
    CompressionCodec,
    ConverterType,
    OnExisting,
    OnNullValue,
    OutputFormat,
    SchemaCompatibility,
    SchemaNamePosition,
)
from sink_job.api.field_errors import FieldError, Path

if TYPE_CHECKING:
    from sink_job.api.spec import Spec

CHOICES: Final[Mapping[Path, Collection[StrEnum]]] = {
    ("spec", "format", "converter"): (ConverterType.JSON, ConverterType.TEXT, ConverterType.BYTES),
    ("spec", "format", "output"): (OutputFormat.JSON, OutputFormat.BYTES),
    ("spec", "format", "compression"): (CompressionCodec.NONE, CompressionCodec.GZIP),
    ("spec", "partitioner", "schemaName"): (SchemaNamePosition.NONE,),
    ("spec", "schemaCompatibility"): (SchemaCompatibility.NONE,),
    ("spec", "errors", "onNullValue"): (OnNullValue.FAIL, OnNullValue.IGNORE),
    ("spec", "offsets", "reset", "onExisting"): (OnExisting.FAIL, OnExisting.NEW_PREFIX),
}
"""The values that work, of those fields of which not all do."""

ABSENT: Final[Mapping[Path, str]] = {
    ("spec", "format", "keyConverter"): "leave it out, keys are not read yet",
    ("spec", "format", "envelope"): "leave it out",
    ("spec", "errors", "deadLetterTopic"): "leave it out, tolerance: All drops such records with a count",
}
"""The fields that do not work at all, and what to do instead."""


def unsupported_features(spec: Spec) -> Iterator[FieldError]:
    """A mistake for every setting of `spec` that this version cannot do yet."""
    for path, built in CHOICES.items():
        value = _value(spec, path)
        if value is not None and value not in built:
            these = "only one is" if len(built) == 1 else "these are"
            yield FieldError(path, f"{value} is not built yet; {these}: {', '.join(built)}", (path,))
    for path, instead in ABSENT.items():
        value = _value(spec, path)
        if value:
            shown = "true" if value is True else value
            yield FieldError(path, f"{shown} is not built yet; {instead}", (path,))


def _value(spec: Spec, path: Path) -> object:
    """The value at `path`; None where a section on the way to it is left out."""
    value: object = spec
    for step in path[1:]:
        name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in str(step))
        value = getattr(value, name) if value is not None else None
    return value
