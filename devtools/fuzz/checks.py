"""The properties of a converted batch."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

import pyarrow as pa

from devtools.fuzz.case import Case
from devtools.fuzz.targets import TARGETS, converter_of
from sink_job.api.enums import OutputFormat
from sink_job.converters.base import BatchSource, ValueConverter

_SOURCE = BatchSource("t")


class BrokenProperty(AssertionError):
    """A property does not hold. The message names it and the row."""


class _Row(NamedTuple):
    """The result for a value. `text`: None for a null or rejected value."""

    reason: str | None
    is_null: bool
    text: bytes | None
    fields: str
    schema: object


def check(case: Case) -> tuple[int, int]:
    """Converts the batch of `case`, and returns the number of its texts and of its rejections.

    Raises BrokenProperty, and whatever leaves the converter. The properties: each value is either rejected or a
    complete JSON text on one line; the text of a value is the same in a batch and alone; with the output Bytes the
    same values are rejected, and the others stay as they came.
    """
    converter = converter_of(case, OutputFormat.JSON)
    rows = _converted(converter, case.rows, case.fields)
    for number, (row, value) in enumerate(zip(rows, case.rows, strict=False)):
        _check_row(case, number, row, value)
        alone = _converted(converter, (value,), case.fields)
        _require(alone == [row], number, f"alone it gives {alone}, in its batch {row}")
    _check_bytes(case, rows)
    return sum(row.text is not None for row in rows), sum(row.reason is not None for row in rows)


def _converted(converter: ValueConverter, values: tuple[bytes | None, ...], fields: tuple[str, ...]) -> list[_Row]:
    """The results for the values up to the first with a schema that is not resolved."""
    found = converter.convert(pa.array(values, pa.binary()), _SOURCE)
    reasons = dict(found.rejected)
    texts: list[bytes] = found.values.to_pylist()
    end = found.unresolved[0][0] if found.unresolved else len(values)
    rows = []
    for row in range(end):
        is_null = row not in reasons and found.nulls is not None and bool(found.nulls[row])
        code = -1 if found.schemas is None else int(found.schemas.codes[row])
        is_absent = is_null or row in reasons
        rows.append(
            _Row(
                reasons.get(row),
                is_null,
                None if is_absent else texts[row],
                "" if row in reasons else repr([found.fields[name][row] for name in fields]),
                None if row in reasons or code < 0 or found.schemas is None else found.schemas.schemas[code],
            )
        )
    return rows


def _check_row(case: Case, number: int, row: _Row, value: bytes | None) -> None:
    _require(row.reason != "", number, "the rejection has no reason")
    _require(value is not None or row.is_null, number, "a tombstone is not null")
    if row.text is None:
        return
    target = TARGETS[case.converter]
    if not target.is_json:
        _require(row.text == value, number, f"the text is {row.text!r}")
        return
    _require(b"\n" not in row.text and b"\r" not in row.text, number, f"the text {row.text!r} is not one line")
    content = _json(row.text, number)
    if target.keeps_values and value is not None:
        _require(content == _json(value, number), number, f"the text {row.text!r} differs from the value")


def _json(text: bytes, number: int) -> Any:
    """The content of a JSON text. Integers stay texts: Python limits their digits."""
    try:
        return json.loads(text.decode(), parse_int=str, parse_constant=_no_constant)
    except ValueError as error:
        raise BrokenProperty(f"row {number}: {text!r} is not a complete JSON text: {error}") from None


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _check_bytes(case: Case, rows: list[_Row]) -> None:
    if TARGETS[case.converter].keeps_values:  # the output makes no difference to the converter
        return
    same = _converted(converter_of(case, OutputFormat.BYTES), case.rows, ())
    for number, (row, other) in enumerate(zip(rows, same, strict=True)):
        _require(row.reason == other.reason, number, f"with the output Bytes its rejection is {other.reason!r}")
        _require(other.text is None or other.text == case.rows[number], number, f"the output Bytes has {other.text!r}")


def _require(holds: bool, row: int, message: str) -> None:
    if not holds:
        raise BrokenProperty(f"row {row}: {message}")
