"""The logical types for dates and times of Protobuf, by column. Each takes the columns of a message without nulls, by
field, and returns Connect's numbers. Raises UnusualValues if one of the messages is not valid."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sink_job.converters.json_columns import UnusualValues
from sink_job.partitioning import arrow_columns
from sink_job.schemas.protobuf_values import NANOS, SECONDS

Columns = dict[str, pa.Array]
_Ints = npt.NDArray[np.int64]


def _ints(columns: Columns, name: str, allowed: range) -> _Ints:
    found = arrow_columns.numbers(columns[name].cast(pa.int64()))
    if len(found) and not (int(found.min()) in allowed and int(found.max()) in allowed):
        raise UnusualValues(f"{name} is outside its range")
    return found


def _timestamps(columns: Columns) -> pa.Array:
    return arrow_columns.integers(_ints(columns, "seconds", SECONDS) * 1000 + _ints(columns, "nanos", NANOS) // 10**6)


def _times(columns: Columns) -> pa.Array:
    minutes = _ints(columns, "hours", range(24)) * 60 + _ints(columns, "minutes", range(60))
    seconds = minutes * 60 + _ints(columns, "seconds", range(60))
    return arrow_columns.integers(seconds * 1000 + _ints(columns, "nanos", NANOS) // 10**6)


def _dates(columns: Columns) -> pa.Array:
    years = _ints(columns, "year", range(1, 10_000))
    months = ((years - 1970) * 12 + _ints(columns, "month", range(1, 13)) - 1).astype("M8[M]")
    days = months.astype("M8[D]") + (_ints(columns, "day", range(1, 32)) - 1).astype("m8[D]")
    if (days.astype("M8[M]") != months).any():
        raise UnusualValues("a day is outside its month")
    return arrow_columns.integers(days.astype(np.int64))


READERS: Final[dict[str, Callable[[Columns], pa.Array]]] = {
    "google.protobuf.Timestamp": _timestamps,
    "google.type.TimeOfDay": _times,
    "google.type.Date": _dates,
}
"""By the full name of the message."""
