"""Compilation of schemas to functions on values: children, and references to enclosing structs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MethodType
from typing import Any, Generic, NoReturn, TypeVar

from sink_job.connect.errors import InvalidSchema
from sink_job.connect.schema import Schema

Result = TypeVar("Result")


class Later(Generic[Result]):
    """The function of a struct while its fields are compiled, so that a field can refer to it."""

    function: Callable[[Any], Result]

    def __call__(self, value: Any) -> Result:
        return self.function(value)

    def set_to(self, function: Callable[[Any], Result]) -> Callable[[Any], Result]:
        """Sets the function and returns it."""
        self.function = function
        return function


Scope = Mapping[str, Later[Result]]
"""The functions of the enclosing structs by the struct's name."""


def enclosing(scope: Scope[Result], reference: Schema) -> Callable[[Any], Result]:
    """The function of the struct that `reference` means.

    If no such struct encloses it, the function raises InvalidSchema. So an empty array of the default of a field can
    be used without the struct of the field.
    """
    return scope.get(reference.name or "") or functools.partial(_not_enclosed, reference.name)


def _not_enclosed(name: str | None, value: object) -> NoReturn:
    raise InvalidSchema(f"the schema refers to {name}, which does not enclose the reference")


def shown(function: Callable[..., object]) -> str:
    """A compiled function for the repr of another one: the object whose method it is, or its name."""
    if isinstance(function, MethodType):
        return repr(function.__self__)
    return str(getattr(function, "__name__", repr(function)))


def named_in(error: Exception, field: str, owner: object) -> None:
    """Adds to an unexpected error the field whose value raised it, for its traceback."""
    if not isinstance(error, RecursionError):  # there is no stack left for it, and no field to blame
        error.add_note(f"in the field {field!r} of {owner!r}")


def child(schema: Schema | None) -> Schema:
    """The schema of the keys or values of a map or an array. Raises InvalidSchema if there is none."""
    if schema is None:
        raise InvalidSchema("a map or an array has no schema of its keys or values")
    return schema
