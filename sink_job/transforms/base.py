"""What all transforms share: the interface, and the origin of a record."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from sink_job.transforms.typed_values import TypedValue


class RecordOrigin(NamedTuple):
    """Where a record is in Kafka. `timestamp`: milliseconds; None for a record without one."""

    topic: str
    partition: int
    offset: int
    timestamp: int | None


class Transform(Protocol):
    """Changes values without a schema, and with one."""

    def transform(self, value: object, origin: RecordOrigin) -> object:
        """The value in place of `value`, or `value` itself, which it never changes. None is a tombstone.

        Raises InvalidValue if it cannot handle the value.
        """
        ...

    def typed(self, given: TypedValue, origin: RecordOrigin) -> TypedValue:
        """As `transform`, for a value with a schema."""
        ...
