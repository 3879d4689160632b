"""A log whose records have the schemas of several versions by turns."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tests.support.synthetic_log import SyntheticLog

Schema = Mapping[str, str]
"""The Connect types of fields."""
UNUSUAL_NAMES: Final = (
    "select",
    "a b",
    "ü.",
    '"q"',
    "`t`!",
    "1x",
    "'; drop table t",
    "日本語",
    "k=v/w",
    "tab\there",
    "N2",
)


@dataclass(frozen=True)
class VersionLog(SyntheticLog):
    """Records whose schemas are `versions`, by turns; the value of a field is its offset."""

    versions: tuple[Schema, ...] = field(default_factory=tuple)

    def row(self, offset: int) -> dict[str, Any]:
        return {name: _value(kind, offset) for name, kind in self.versions[offset % len(self.versions)].items()}

    def rows(self) -> list[dict[str, Any]]:
        """The rows of a table with the fields of all versions, in the order of the offsets."""
        names = {name for each in self.versions for name in each}
        return [{name: self.row(offset).get(name) for name in names} for offset in range(self.records)]

    def value(self, partition: int, offset: int) -> bytes:
        kinds = self.versions[offset % len(self.versions)]
        fields = [{"field": name, "type": kind, "optional": False} for name, kind in kinds.items()]
        schema = {"type": "struct", "name": "example.Row", "optional": False, "fields": fields}
        return json.dumps({"schema": schema, "payload": self.row(offset)}).encode()


def _value(kind: str, offset: int) -> Any:
    return {"string": f"v{offset}", "float": offset / 2, "double": offset / 3}.get(kind, offset)
