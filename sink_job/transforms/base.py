"""What all transforms share: the interface, and the origin of a record."""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple, Protocol

from sink_job.transforms.typed_values import TypedValue


class RecordOrigin(NamedTuple):
    """Where a record is in Kafka. `timestamp`: milliseconds; None for a record without one."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None


class Filtered(Enum):
    """In place of a value: the record is left out."""

    FILTERED = "filtered"


FILTERED: Final = Filtered.FILTERED


class Transform(Protocol):
    """Changes values without a schema, and with one."""

    def transform(self, value: object, origin: RecordOrigin) -> object:
        """The value in place of `value`, or `value` itself, which it never changes. None is a tombstone.

        FILTERED: the record is left out. Raises InvalidValue if it cannot handle the value.
        """
        ...

    def typed(self, given: TypedValue, origin: RecordOrigin) -> TypedValue | Filtered:
        """As `transform`, for a value with a schema."""
        ...
