"""Change events as Debezium writes them, in envelopes of JsonConverter."""

from __future__ import annotations

import json
from typing import Any, Final

_ROW: Final = [
    {"type": "int32", "optional": False, "field": "id"},
    {"type": "string", "optional": True, "field": "name"},
]


def change_event(
    op: str, before: dict[str, Any] | None, after: dict[str, Any] | None, *, name: str = "server.db.Envelope"
) -> str:
    """An event of a table with the columns id and name. `name`: that of its schema."""
    rows = [
        {"type": "struct", "optional": True, "name": "server.db.Value", "field": each, "fields": _ROW}
        for each in ("before", "after")
    ]
    source = [
        {"type": "string", "optional": False, "field": "db"},
        {"type": "int64", "optional": False, "field": "ts_ms"},
    ]
    fields = [
        *rows,
        {"type": "struct", "optional": False, "name": "server.Source", "field": "source", "fields": source},
        {"type": "string", "optional": False, "field": "op"},
        {"type": "int64", "optional": True, "field": "ts_ms"},
    ]
    schema = {"type": "struct", "name": name, "optional": False, "version": 2, "fields": fields}
    payload = {"before": before, "after": after, "source": {"db": "d", "ts_ms": 5}, "op": op, "ts_ms": 9}
    return json.dumps({"schema": schema, "payload": payload})
