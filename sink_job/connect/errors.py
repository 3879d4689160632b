"""Errors of schemas and of values under them. Each message is a reason for the rejection of a record."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final


class InvalidSchema(ValueError):
    """The text of a schema is invalid, or Kafka Connect's data model has no equivalent of it."""


class InvalidValue(ValueError):
    """A value does not conform to its schema, or its output format cannot express it."""


class InvalidFieldValue(InvalidValue):
    """A value that does not fit its type. `path` leads to it; its names are separated by dots."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(f"the field {path}: {reason}" if path else reason)
        self.reason = reason
        self.path = path

    @classmethod
    def of(cls, error: InvalidValue, name: str) -> InvalidFieldValue:
        """The error `error` of a value within the field `name`."""
        if not isinstance(error, InvalidFieldValue):
            return cls(str(error), name)
        return cls(error.reason, f"{name}.{error.path}" if error.path else name)


class ProjectionError(ValueError):
    """A schema cannot be projected to another one."""


VALUE_ERRORS: Final = (ArithmeticError, LookupError, TypeError, ValueError)
"""What Python raises for a malformed value. Any other error would fail the task each time, also where invalid records
are tolerated."""


@contextmanager
def rejecting(what: str) -> Iterator[None]:
    """Raises InvalidSchema for what Python raises for a malformed schema. `what` is the schema, for the message.

    Any other error would fail the task each time, also where invalid records are tolerated.
    """
    try:
        yield
    except InvalidSchema:
        raise
    except RecursionError:
        raise InvalidSchema(f"{what} is nested too deeply") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise InvalidSchema(f"{what} is malformed: {error}") from None


class UnknownSchema(ValueError):
    """The registry does not know a schema id. The message is the reason for the rejection of a record with it."""
