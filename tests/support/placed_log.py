"""A log whose records have texts and times that paths express in unusual ways: escaped, null, around a clock change."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from tests.support.synthetic_log import SyntheticLog

REGIONS: Final = ("eu", "a/b", "a%2Fb", None, "null", "..", "ü x=y", "two\nlines", "'q'", "", "100%")
"""Values of the field `region`, over and over. Two pairs of them have the same text in a path."""
START: Final = datetime(2026, 10, 24, 21, 0, tzinfo=UTC)
"""The time of the first record. The clocks of Berlin change 4 h later."""


@dataclass(frozen=True)
class PlacedLog(SyntheticLog):
    """Records with `region`, the time `at` every 20 minutes, and every seventh record 3 h late."""

    regions: tuple[str | None, ...] = REGIONS

    def region(self, offset: int) -> str | None:
        return self.regions[offset % len(self.regions)]

    def at(self, offset: int) -> datetime:
        late = timedelta(hours=3) if offset % 7 == 6 else timedelta()
        return START + timedelta(minutes=20 * offset) - late

    def timestamp(self, offset: int) -> int:
        return int(self.at(offset).timestamp() * 1000)

    def value(self, partition: int, offset: int) -> bytes:
        payload = {"number": offset, "region": self.region(offset), "at": self.timestamp(offset)}
        return json.dumps({"schema": _SCHEMA, "payload": payload}).encode()


_SCHEMA: Final[dict[str, Any]] = {
    "type": "struct",
    "name": "example.Placed",
    "optional": False,
    "fields": [
        {"field": "number", "type": "int64", "optional": False},
        {"field": "region", "type": "string", "optional": True},
        {
            "field": "at",
            "type": "int64",
            "name": "org.apache.kafka.connect.data.Timestamp",
            "version": 1,
            "optional": False,
        },
    ],
}
