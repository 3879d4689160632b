"""Connect's logical types (org.apache.kafka.connect.data.Decimal, Date, Time, Timestamp).

A value of a logical type is in Connect's form: a date in days since the epoch, a time in ms since midnight, a timestamp
in ms since the epoch, a decimal as `decimal.Decimal` with the scale of its schema.
"""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Final

from sink_job.connect.errors import InvalidSchema, InvalidValue
from sink_job.connect.schema import Schema, SchemaType

DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
DATE: Final = "org.apache.kafka.connect.data.Date"
TIME: Final = "org.apache.kafka.connect.data.Time"
TIMESTAMP: Final = "org.apache.kafka.connect.data.Timestamp"
SCALE: Final = "scale"

AVRO_ENUM: Final = "io.confluent.connect.avro.Enum"
"""The parameter with the name of an enum in a schema of Confluent's AvroData."""

VERSION: Final = 1
"""The version of the schemas of all logical types."""

_EPOCH: Final = date(1970, 1, 1).toordinal()
_CYCLE_DAYS: Final = 146_097
"""The days of 400 years, after which the calendar repeats."""
_DAY_MS: Final = 86_400_000
_MAX_DIGITS: Final = 4_000
"""Python converts no longer integers to text."""

MAX_SCALE: Final = 10_000
"""The maximum of the absolute value of a decimal's scale and exponent."""


def is_decimal(schema: Schema) -> bool:
    """True for the schema of a decimal."""
    return schema.name == DECIMAL and schema.type is SchemaType.BYTES


def scale_of(schema: Schema) -> int:
    """The scale of a decimal's schema. Raises InvalidSchema if it has none, or one beyond MAX_SCALE."""
    text = schema.parameter.get(SCALE)
    try:
        return checked_scale(int(text or ""))
    except ValueError:
        raise InvalidSchema(f"the scale of a decimal must be an integer within ±{MAX_SCALE:,}, not {text!r}") from None


def checked_scale(scale: int) -> int:
    """The scale. Raises InvalidSchema if it is beyond MAX_SCALE."""
    if abs(scale) > MAX_SCALE:
        raise InvalidSchema(f"the scale of a decimal is beyond ±{MAX_SCALE:,}")
    return scale


def decimal_from_bytes(unscaled: bytes, scale: int) -> Decimal:
    """The decimal with the big-endian two's complement integer `unscaled`.

    Raises InvalidValue for an empty or very long integer.
    """
    if not unscaled:
        raise InvalidValue("a decimal has no bytes")
    digits = int.from_bytes(unscaled, "big", signed=True)
    if digits.bit_length() > _MAX_DIGITS * 3:
        raise InvalidValue(f"a decimal has {len(unscaled)} bytes, which is too long")
    return Decimal(f"{digits}E{-scale}")


def decimal_to_bytes(value: Decimal, scale: int) -> bytes:
    """The shortest big-endian two's complement integer of `value`, which has at most `scale` decimal places.

    Raises InvalidValue if it has more, is very long, or is not a number.
    """
    return integer_to_bytes(unscaled(value, scale))


def unscaled(value: Decimal, scale: int) -> int:
    """The integer that is `value` multiplied by 10 to the power of `scale`. Raises InvalidValue like
    `decimal_to_bytes`."""
    sign, digits, exponent = checked_length(value, scale).as_tuple()
    if not isinstance(exponent, int) or exponent < -scale:
        raise InvalidValue(f"a decimal does not have the scale {scale}")
    found: int = int("".join(map(str, digits)) or "0") * 10 ** (exponent + scale)
    return -found if sign else found


def checked_length(value: Decimal, scale: int) -> Decimal:
    """The decimal. Raises InvalidValue if its unscaled integer at `scale` is too long to be computed."""
    _, digits, exponent = value.as_tuple()
    if isinstance(exponent, int) and (abs(exponent) > MAX_SCALE or len(digits) + exponent + scale > _MAX_DIGITS):
        raise InvalidValue(f"a decimal has more than {_MAX_DIGITS:,} digits, or an exponent beyond ±{MAX_SCALE:,}")
    return value


def integer_to_bytes(value: int) -> bytes:
    """The shortest big-endian two's complement form, as Java's BigInteger.toByteArray."""
    magnitude = value if value >= 0 else -value - 1
    return value.to_bytes(magnitude.bit_length() // 8 + 1, "big", signed=True)


def iso_date(days: int) -> str:
    """The ISO 8601 text of a date. A year before 0 or after 9999 has a sign."""
    cycles, rest = divmod(days, _CYCLE_DAYS)
    day = date.fromordinal(_EPOCH + rest)
    year = day.year + 400 * cycles
    return f"{_year(year)}-{day.month:02d}-{day.day:02d}"


def _year(year: int) -> str:
    return f"{year:04d}" if 0 <= year <= 9999 else f"{year:+05d}"


def iso_time(ms: int) -> str:
    """The ISO 8601 text of a time of the day. Raises InvalidValue if `ms` is not within a day."""
    if not 0 <= ms < _DAY_MS:
        raise InvalidValue(f"{ms} is not a time of the day in ms")
    seconds, ms = divmod(ms, 1000)
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{ms:03d}"


def iso_timestamp(ms: int) -> str:
    """The ISO 8601 text of a timestamp, in UTC with three decimal places."""
    days, rest = divmod(ms, _DAY_MS)
    return f"{iso_date(days)}T{iso_time(rest)}Z"
