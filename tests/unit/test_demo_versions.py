"""When the demo's check of versions and objects passes."""

from __future__ import annotations

import pytest

from demo.versions import Stored, one_for_each_version


def stored(*lines: int, folder: str = "month=01", partition: str = "0") -> Stored:
    """An object with lines of these versions."""
    return Stored(folder, partition, dict.fromkeys(lines, 7))


@pytest.mark.parametrize(
    ("objects", "good"),
    [
        ([stored(1), stored(2)], True),
        ([stored(1), stored(1, folder="month=02"), stored(1, partition="4")], True),
        ([stored(1), stored(2), stored(1)], False),
        ([stored(1, 2)], False),
        ([stored()], False),
        ([], False),
    ],
    ids=["each version", "several places", "two objects of a version", "both in an object", "no line", "no object"],
)
def test_each_place_has_one_object_for_each_version(objects: list[Stored], good: bool) -> None:
    assert one_for_each_version(objects) is good
