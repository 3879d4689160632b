"""Names in Avro schemas that are made of Connect's.

A name that Avro does not allow is changed as AvroData does with `scrub.invalid.names=true`: it is encoded as in a URL,
each other character than a letter, digit or underscore becomes an underscore, and a digit at the start gets an `x` in
front. Without that setting AvroData rejects the schema.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import quote_plus

_VALID: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_INVALID: Final = re.compile(r"[^A-Za-z0-9_]")


def is_avro_name(text: str) -> bool:
    """Whether Avro allows the name, which has no namespace."""
    return _VALID.fullmatch(text) is not None


def avro_name(text: str) -> str:
    """The name of a field or of a type without its namespace."""
    if is_avro_name(text):
        return text
    encoded = quote_plus(text, safe="*", errors="replace").replace("~", "%7E") or "_"
    if encoded[:1].isdigit():
        encoded = f"x{encoded}"
    return _INVALID.sub("_", encoded)


def avro_full_name(text: str) -> str:
    """The name of a type with its namespace, if it has one."""
    return ".".join(avro_name(each) for each in text.split(".") if each) or avro_name(text)
