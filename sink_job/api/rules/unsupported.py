"""Features that a manifest can request but this version does not support. They are rejected by name, never ignored."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from sink_job.api.enums import (
    OnExisting,
    OnNullValue,
)
from sink_job.api.field_errors import FieldError, Path

if TYPE_CHECKING:
    from sink_job.api.spec import Spec

CHOICES: Final[Mapping[Path, Collection[StrEnum]]] = {
    ("spec", "errors", "onNullValue"): (OnNullValue.FAIL, OnNullValue.IGNORE),
    ("spec", "offsets", "reset", "onExisting"): (OnExisting.FAIL, OnExisting.NEW_PREFIX),
}
"""The supported values of fields with unsupported values."""

ABSENT: Final[Mapping[Path, str]] = {
    ("spec", "errors", "deadLetterTopic"): "remove it; tolerance: All drops and counts such records",
}
"""The unsupported fields, each with the action to take."""


def unsupported_features(spec: Spec) -> Iterator[FieldError]:
    """An error for every setting of `spec` that this version does not support."""
    for path, supported in CHOICES.items():
        value = _value(spec, path)
        if value is not None and value not in supported:
            yield FieldError(path, f"{value} is not supported yet; supported: {', '.join(supported)}", (path,))
    for path, instead in ABSENT.items():
        value = _value(spec, path)
        if value:
            shown = "true" if value is True else value
            yield FieldError(path, f"{shown} is not supported yet; {instead}", (path,))


def _value(spec: Spec, path: Path) -> object:
    """The value at `path`; None if a parent section is not set."""
    value: object = spec
    for step in path[1:]:
        name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in str(step))
        value = getattr(value, name) if value is not None else None
    return value
