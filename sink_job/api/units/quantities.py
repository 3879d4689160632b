"""Durations and sizes: text in a manifest (`1h30m`, `25Mi`), integers in code (ms, bytes).

A duration must have units, because a bare `600` could mean seconds or milliseconds. A size is a Kubernetes quantity; a
bare number is bytes. Code may pass durations as integers, but a manifest may not. The pydantic validation context
`MANIFEST` marks values from a manifest.
"""

from __future__ import annotations

import dataclasses
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # the command `convert` reads and writes quantities without pydantic
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, ValidationInfo
    from pydantic.json_schema import JsonSchemaValue
    from pydantic_core import CoreSchema

MANIFEST: Final = {"manifest": True}

SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND
HOUR: Final = 60 * MINUTE
DAY: Final = 24 * HOUR

KI: Final = 1 << 10
MI: Final = 1 << 20
GI: Final = 1 << 30
TI: Final = 1 << 40

DURATION_UNITS: Final = {"d": DAY, "h": HOUR, "m": MINUTE, "s": SECOND, "ms": 1}
SIZE_UNITS: Final = {"Ti": TI, "Gi": GI, "Mi": MI, "Ki": KI, "T": 10**12, "G": 10**9, "M": 10**6, "k": 10**3}

DURATION_PATTERN: Final = r"^([0-9]{1,15}d)?([0-9]{1,15}h)?([0-9]{1,15}m)?([0-9]{1,15}s)?([0-9]{1,15}ms)?$"
SIZE_PATTERN: Final = r"^[0-9]{1,19}(\.[0-9]{1,9})?(k|M|G|T|Ki|Mi|Gi|Ti)?$"

_DURATION = re.compile(DURATION_PATTERN)
_SIZE = re.compile(SIZE_PATTERN)
_MAX_DURATION = 36_500 * DAY
_MAX_SIZE = 1 << 60
DURATION_HINT = "use a number with a unit (d, h, m, s, ms; largest first), such as 10m or 1h30m"
_SIZE_HINT = (
    "use bytes, or a number with a unit such as 25Mi (Ki, Mi, Gi, Ti: powers of 1024; k, M, G, T: powers of 1000)"
)


def parse_duration(text: str) -> int:
    """Milliseconds in `text` (`1d`, `1h30m`, `250ms`). Raises ValueError with the correct form."""
    found = _DURATION.fullmatch(text)
    if not found or not text:
        raise ValueError(f"is not a duration: {_bare_hint(text) or DURATION_HINT}")
    amounts = zip(found.groups(), DURATION_UNITS.items(), strict=True)
    total = sum(int(amount.removesuffix(unit)) * ms for amount, (unit, ms) in amounts if amount)
    if total > _MAX_DURATION:
        raise ValueError("is longer than 100 years")
    return total


def format_duration(ms: int) -> str:
    """The shortest text that `parse_duration` reads back as `ms`."""
    if ms == 0:
        return "0s"
    words = []
    for unit, size in DURATION_UNITS.items():
        amount, ms = divmod(ms, size)
        if amount:
            words.append(f"{amount}{unit}")
    return "".join(words)


def parse_size(text: str) -> int:
    """Bytes in `text` (`25Mi`, `1.5Gi`, `5242880`). Raises ValueError with the correct form."""
    found = _SIZE.fullmatch(text)
    if not found:
        raise ValueError(f"is not a size: {_byte_hint(text) or _SIZE_HINT}")
    unit = found.group(2) or ""
    size = Decimal(text.removesuffix(unit)) * SIZE_UNITS.get(unit, 1)
    if size != size.to_integral_value():
        raise ValueError("is not a whole number of bytes")
    if size > _MAX_SIZE:
        raise ValueError("is larger than 1048576Ti")
    return int(size)


def format_size(size: int) -> str:
    """The shortest text that `parse_size` reads back as `size`, in binary units before decimal ones."""
    for unit, factor in SIZE_UNITS.items():
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def _bare_hint(text: str) -> str | None:
    """A suggestion for a number without unit. The connector uses milliseconds, so whole seconds are read as ms."""
    if not re.fullmatch(r"[0-9]+", text):
        return None
    whole = len(text) <= 15 and int(text) and int(text) % SECOND == 0
    return f"use {format_duration(int(text))} ({text}ms)" if whole else f"use {text}s or {text}ms"


def _byte_hint(text: str) -> str | None:
    found = re.fullmatch(r"([0-9]{1,19}(?:\.[0-9]{1,9})?)\s*([kKmMgGtT])(i?)[bB]?", text)
    if not found:
        return None
    number, letter, binary = found.groups()
    decimal = letter.lower() if letter in "kK" else letter.upper()
    return f"use {number}{letter.upper()}i" + ("" if binary else f" (1024) or {number}{decimal} (1000)")


def of_manifest(info: ValidationInfo) -> bool:
    """True if the validated value comes from a manifest."""
    return bool(info.context and info.context.get("manifest"))


@dataclasses.dataclass(frozen=True, kw_only=True)
class _Quantity:
    """Base class of the annotations Duration and Size: bounds, shown in the units of the manifest."""

    minimum: int = 0
    maximum: int | None = None
    owner: str = ""  # the origin of the bound, as in "S3's"

    def read(self, value: object, info: ValidationInfo) -> int:
        raise NotImplementedError

    def show(self, value: int) -> str:
        raise NotImplementedError

    def checked(self, value: object, info: ValidationInfo) -> int:
        number = self.read(value, info)
        whose = f"{self.owner} " if self.owner else "the "
        if number < self.minimum:
            raise ValueError(f"is below {whose}minimum of {self.show(self.minimum)}")
        if self.maximum is not None and number > self.maximum:
            raise ValueError(f"is above {whose}maximum of {self.show(self.maximum)}")
        return number

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        from pydantic_core import core_schema

        return core_schema.with_info_plain_validator_function(
            self.checked, serialization=core_schema.plain_serializer_function_ser_schema(self.show)
        )

    def bounds(self) -> JsonSchemaValue:
        """The bounds as schema extensions: JSON schema cannot compare `5Mi` with `25Mi`."""
        schema: JsonSchemaValue = {"x-s3sink-minimum": self.show(self.minimum)}
        if self.maximum is not None:
            schema["x-s3sink-maximum"] = self.show(self.maximum)
        return schema


class Duration(_Quantity):
    """Annotation: `1h30m` in the manifest, `int` milliseconds in code."""

    def read(self, value: object, info: ValidationInfo) -> int:
        if isinstance(value, str):
            return parse_duration(value)
        if isinstance(value, int) and not isinstance(value, bool) and not of_manifest(info):
            return value
        raise ValueError(f"is not a duration: {_bare_hint(str(value)) or DURATION_HINT}")

    def show(self, value: int) -> str:
        return format_duration(value)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return {
            "type": "string",
            "pattern": DURATION_PATTERN,
            "minLength": 2,
            "maxLength": 81,
            "x-s3sink-type": "duration",
        } | self.bounds()


class Size(_Quantity):
    """Annotation: `25Mi` or bytes in the manifest, `int` bytes in code."""

    def read(self, value: object, info: ValidationInfo) -> int:
        if isinstance(value, str):
            return parse_size(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        raise ValueError(f"is not a size: {_SIZE_HINT}")

    def show(self, value: int) -> str:
        return format_size(value)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        kind = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
        return kind | {"pattern": SIZE_PATTERN, "x-s3sink-type": "size"} | self.bounds()
