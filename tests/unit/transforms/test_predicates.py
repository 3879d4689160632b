"""The records that a transform applies to."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.transforms.transformed import applied, batch

VALUES = (b'{"op":"d","n":{"x":1}}', b'{"op":null}', b'{"op":1.5}', b'{"op":true}', b"{}", b"[1]", b"null", None)


def filtered(when: dict[str, Any]) -> list[int]:
    headers = [["h"], [], ["other", "h"], ["h", "h"], [], [], [], ["h"]]
    found = applied(batch(*VALUES, headers=headers), {"type": "Filter", "when": when})
    assert found.rejected == []
    return [row for row, is_filtered in enumerate(found.filtered) if is_filtered]


@pytest.mark.parametrize(
    ("when", "rows"),
    [
        ({"topic": "fl.*"}, list(range(8))),
        ({"topic": "fl"}, []),
        ({"header": "h"}, [0, 2, 3, 7]),
        ({"tombstone": True}, [6, 7]),
        ({"tombstone": False}, [0, 1, 2, 3, 4, 5]),
        ({"field": "op"}, [0, 1, 2, 3]),
        ({"field": "op", "values": ["d", "null", "true", "1.5"]}, [0, 1, 2, 3]),
        ({"field": "op", "values": ["1"]}, []),
        ({"field": "n.x", "values": ["1"]}, [0]),
        ({"field": "n"}, [0]),
        ({"field": "n", "values": ["{}"]}, []),
        ({"header": "h", "field": "op", "values": ["d"]}, [0]),
        ({"header": "h", "not": True}, [1, 4, 5, 6]),
        ({"header": "h", "tombstone": True, "not": True}, [0, 1, 2, 3, 4, 5, 6]),
    ],
)
def test_all_conditions_must_hold(when: dict[str, Any], rows: list[int]) -> None:
    assert filtered(when) == rows


def test_headers_of_no_record_match_nothing() -> None:
    found = applied(batch(b"1", b"2").slice(0, 1), {"type": "Filter", "when": {"header": "h"}})
    assert not found.filtered.any()
