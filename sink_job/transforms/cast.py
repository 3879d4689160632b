"""Cast: changes the types of fields, or of the whole value (org.apache.kafka.connect.transforms.Cast).

A number loses its fraction and wraps at the size of an integer, as a conversion of Java does. Null stays null, and a
field that the object lacks becomes null.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from sink_job.api.enums import CastType
from sink_job.connect.errors import InvalidValue
from sink_job.transforms.base import RecordOrigin
from sink_job.transforms.java_numbers import float_text, parse_float, parse_integer, to_float32, truncated, wrapped
from sink_job.transforms.json_values import checked_integer, is_null, kind_of, object_of, opened

_BITS: Final = {CastType.INT8: 8, CastType.INT16: 16, CastType.INT32: 32, CastType.INT64: 64}

Simple = bool | int | float | str


class CastFields:
    """Changes the types of fields. A tombstone stays one."""

    def __init__(self, types: Mapping[str, CastType]) -> None:
        self._casts = {name: cast_to(kind) for name, kind in types.items()}

    def transform(self, value: object, origin: RecordOrigin) -> object:
        if is_null(value):
            return value
        found = dict(object_of(value))
        for name, cast in self._casts.items():
            found[name] = _cast(opened(found.get(name)), cast, f"the field {name}")
        return found


class CastValue:
    """Changes the type of the whole value. A tombstone stays one."""

    def __init__(self, kind: CastType) -> None:
        self._cast = cast_to(kind)

    def transform(self, value: object, origin: RecordOrigin) -> object:
        return value if is_null(value) else _cast(opened(value), self._cast, "the value")


def cast_to(kind: CastType) -> Callable[[Simple], Simple]:
    """The conversion to a type. It raises ValueError for a text that is no value of the type."""
    match kind:
        case CastType.TEXT:
            return _text
        case CastType.BOOLEAN:
            return _boolean
        case CastType.FLOAT32:
            return lambda value: to_float32(_float(value))
        case CastType.FLOAT64:
            return _float
    bits = _BITS[kind]
    return lambda value: _integer(value, bits)


def _cast(value: object, cast: Callable[[Simple], Simple], what: str) -> object:
    if value is None:
        return None
    if not isinstance(value, bool | int | float | str):
        raise InvalidValue(f"{what} is {kind_of(value)}, which cannot be cast")
    checked_integer(value, what)
    try:
        return cast(value)
    except ValueError:
        raise InvalidValue(f"{what} is a text that is no value of the type") from None


def _integer(value: Simple, bits: int) -> int:
    if isinstance(value, str):
        return parse_integer(value, bits)
    return truncated(value, bits) if isinstance(value, float) else wrapped(int(value), bits)


def _float(value: Simple) -> float:
    return parse_float(value) if isinstance(value, str) else float(value)


def _boolean(value: Simple) -> bool:
    if isinstance(value, str):
        return value.lower() == "true"
    return truncated(value, 64) != 0 if isinstance(value, float) else bool(value)


def _text(value: Simple) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    return float_text(value) if isinstance(value, float) else str(value)
