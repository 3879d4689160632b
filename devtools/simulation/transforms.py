"""Transforms in simulated runs: each manifest filters the records with a mark, and adds the number of its list.

The filter is the same in all manifests, so that a marked record is in no object, whoever has read it. What differs is
in the content of objects, where `list` must be that of the claim of the object.
"""

from __future__ import annotations

import json
import random
from typing import Any, Final

from devtools.simulation import containers

_MARK: Final = "hidden"
_ADDED: Final = "list"


def add_transforms(spec: dict[str, Any], rng: random.Random) -> None:
    """Adds a list to a manifest. Where the filter is in it differs, too."""
    found: list[dict[str, Any]] = [
        {"type": "Insert", "field": _ADDED, "source": "Text", "text": str(rng.randrange(3))},
        {"type": "Filter", "when": {"field": _MARK}},
    ]
    rng.shuffle(found)
    if rng.random() < 0.3:
        found.append({"type": "Keep", "fields": [_ADDED, "at", "kind", "pad"]})
    spec["transforms"] = found


def is_filtered(rng: random.Random) -> bool:
    """Whether the next record has the mark."""
    return rng.random() < 0.3


def marked(fields: dict[str, Any]) -> bytes:
    """The value of a record that no object has."""
    return json.dumps({**fields, _MARK: True}).encode()


def came_from(line: bytes) -> str:
    """The value of which a transform has made a line, as by `containers.canonical`. Raises ValueError and KeyError."""
    fields = json.loads(line)
    del fields[_ADDED]
    return containers.canonical(fields)
