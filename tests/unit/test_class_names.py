"""A reader finds a class by its name alone."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_no_class_name_of_the_product_occurs_twice() -> None:
    places = defaultdict(list)
    for path in [*(ROOT / "sink_job").rglob("*.py"), *(ROOT / "operator").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(str(path.relative_to(ROOT)))
    assert len(places) > 500
    assert {name: found for name, found in places.items() if len(found) > 1} == {}
