"""Each module of the operator has a test file of its name in the same folder below tests/operator."""

from __future__ import annotations

from pathlib import Path

OPERATOR = Path(__file__).resolve().parents[2] / "operator" / "s3sink_operator"
TESTS = Path(__file__).resolve().parent
WITHOUT_TESTS = {
    "reasons.py",  # an enum
    "status/progress_model.py",  # the fields of a section, without functions
}
"""Modules without behaviour of their own."""


def without_test_file() -> set[str]:
    found = set()
    for module in OPERATOR.rglob("*.py"):
        path = module.relative_to(OPERATOR)
        is_private = path.name.startswith("__")  # __init__, and __main__ with its one call
        if not is_private and not (TESTS / path.parent / f"test_{path.name}").exists():
            found.add(str(path))
    return found


def test_each_module_has_a_test_file_of_its_name() -> None:
    assert without_test_file() == WITHOUT_TESTS
