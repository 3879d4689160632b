"""The place of an invalid value, and what counts as an invalid schema."""

from __future__ import annotations

import pytest

from sink_job.connect.errors import VALUE_ERRORS, InvalidFieldValue, InvalidSchema, InvalidValue, rejecting


def test_the_path_grows_from_the_inner_field_to_the_outer_one() -> None:
    error = InvalidFieldValue.of(InvalidValue("it is no number"), "c")
    for name in ("b", "a"):
        error = InvalidFieldValue.of(error, name)
    assert (error.path, error.reason, str(error)) == ("a.b.c", "it is no number", "the field a.b.c: it is no number")


def test_a_value_that_is_no_field_has_its_reason_alone() -> None:
    error = InvalidFieldValue("it is no number")
    assert str(error) == "it is no number"
    assert str(InvalidFieldValue.of(error, "a")) == "the field a: it is no number"


@pytest.mark.parametrize("error", [ZeroDivisionError, AttributeError, KeyError, TypeError, ValueError])
def test_what_python_raises_for_a_malformed_schema_is_an_invalid_schema(error: type[Exception]) -> None:
    with pytest.raises(InvalidSchema, match=r"^the schema is malformed: .*odd"), rejecting("the schema"):
        raise error("odd")


def test_too_many_levels_are_an_invalid_schema() -> None:
    with pytest.raises(InvalidSchema, match=r"^the schema is nested too deeply$"), rejecting("the schema"):
        raise RecursionError


def test_an_invalid_schema_keeps_its_own_reason() -> None:
    with pytest.raises(InvalidSchema, match=r"^its own reason$"), rejecting("the schema"):
        raise InvalidSchema("its own reason")


@pytest.mark.parametrize("error", [MemoryError, OSError, KeyboardInterrupt])
def test_an_error_of_the_machine_is_no_invalid_schema(error: type[BaseException]) -> None:
    with pytest.raises(error), rejecting("the schema"):
        raise error


@pytest.mark.parametrize("error", [InvalidValue("x"), OverflowError(), KeyError("x"), IndexError()])
def test_a_malformed_value_is_among_the_value_errors(error: Exception) -> None:
    assert isinstance(error, VALUE_ERRORS)
