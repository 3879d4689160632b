"""Features that a manifest can request but this version does not support. They are rejected by name, never ignored."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from sink_job.api.enums import OnExisting
from sink_job.api.field_errors import FieldError, Path, field_at, shown

if TYPE_CHECKING:
    from sink_job.api.spec import Spec

CHOICES: Final[Mapping[Path, Collection[StrEnum]]] = {
    ("spec", "offsets", "reset", "onExisting"): (OnExisting.FAIL, OnExisting.NEW_PREFIX),
}
"""The supported values of fields with unsupported values."""

ABSENT: Final[Mapping[Path, str]] = {}
"""The unsupported fields, each with the action to take."""


def unsupported_features(spec: Spec) -> Iterator[FieldError]:
    """An error for every setting of `spec` that this version does not support."""
    for path, supported in CHOICES.items():
        value = _value(spec, path)
        if value is not None and value not in supported:
            yield FieldError(path, f"{value} is not supported yet; supported: {', '.join(supported)}", (path,))
    for path, instead in ABSENT.items():
        value, field = _value(spec, path), field_at(type(spec), path[1:])
        assert field is not None, "an unsupported field is a field"
        if value not in (None, field.default):
            yield FieldError(path, f"{shown(path, value)} is not supported yet; {instead}", (path,))


def _value(spec: Spec, path: Path) -> object:
    """The value at `path`; None if a parent section is not set."""
    value: object = spec
    for step in path[1:]:
        name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in str(step))
        value = getattr(value, name) if value is not None else None
    return value
