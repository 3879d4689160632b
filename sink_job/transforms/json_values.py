"""JSON values that are read as far as transforms need: what no transform touches is written as it came.

A value is None (a tombstone, or null), a `msgspec.Raw` that is not read yet, a dict whose items are such values, or any
other value of Python's.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec

from sink_job.connect.errors import InvalidValue
from sink_job.connect.json_decoder import decode_reason
from sink_job.transforms.java_numbers import Float32

_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ANY: Final = msgspec.json.Decoder()
_ENCODER: Final = msgspec.json.Encoder(decimal_format="number")
_SPACE: Final = b" \t\r\n"
_NULL: Final = b"null"
_NAMES: Final = {
    dict: "an object",
    list: "an array",
    str: "a text",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    Float32: "a number",
    type(None): "null",
}

MAX_INTEGER: Final = 2**63 - 1


def is_null(value: object) -> bool:
    """Whether a value is a tombstone or null. It need not have been read."""
    return value is None or (isinstance(value, msgspec.Raw) and bytes(value).strip(_SPACE) == _NULL)


def opened(value: object) -> object:
    """The value, of which one level has been read. Raises InvalidValue if it is not JSON."""
    if not isinstance(value, msgspec.Raw):
        return value
    text = bytes(value)
    try:
        return (_OBJECT if text.lstrip(_SPACE)[:1] == b"{" else _ANY).decode(text)
    except msgspec.DecodeError as error:
        reason = "the value is empty" if not text.strip(_SPACE) else None
        raise InvalidValue(reason or f"the value is not JSON: {decode_reason(error, text)}") from None
    except RecursionError:
        raise InvalidValue("the value is JSON nested too deeply") from None


def object_of(value: object) -> dict[str, object]:
    """The fields of an object. Raises InvalidValue for another value."""
    found = opened(value)
    if not isinstance(found, dict):
        raise InvalidValue(f"the value is {kind_of(found)}, not an object")
    return found


def kind_of(value: object) -> str:
    """What a value is, for messages."""
    return _NAMES.get(type(value), "another value")


def checked_integer(value: object, name: str) -> object:
    """A value that has been read. Raises InvalidValue for an integer that Connect's int64 cannot have."""
    if type(value) is int and not -MAX_INTEGER - 1 <= value <= MAX_INTEGER:
        raise InvalidValue(f"{name} has more than 64 bits")
    return value


def json_text(value: object) -> bytes:
    """The JSON text of a value."""
    if isinstance(value, msgspec.Raw):
        return bytes(value)
    return _ENCODER.encode(_encodable(value))


def _encodable(value: object) -> object:
    """NaN and the infinities are texts, as JsonConverter writes them."""
    if isinstance(value, float):
        if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return value.shortest() if isinstance(value, Float32) else value
    if isinstance(value, dict) and not all(isinstance(each, msgspec.Raw) for each in value.values()):
        return {name: _encodable(each) for name, each in value.items()}
    return value
