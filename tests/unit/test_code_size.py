"""What CONTRIBUTING.md says of the code: limits of size, class names of their own, and a test file for each module."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MODULES = sorted(path for folder in ("sink_job", "operator") for path in (ROOT / folder).rglob("*.py"))
FILE, CLASS, ATTRIBUTES, FUNCTION, FOLDER = 500, 250, 12, 50, 20
COLUMNS = {"AcceptedRows"}
"""Classes that are a table: an attribute is a column of a batch."""
DEFINITIONS = {
    "api/report_access.py",  # names of a variable and of query parameters, and a maximum
    "api/units/s3_limits.py",  # one number
    "arrow/arrays.py",  # names of types
    "coordinator/context.py",  # what a coordinator is given
    "formats/base.py",  # interfaces
    "registry/base.py",  # an interface
    "registry/failures.py",  # codes, and what a failure is described by
    "rotation/types.py",  # what a rotator returns
    "transforms/base.py",  # an interface
}
"""Modules of the job without behaviour of their own."""


def definitions(kinds: tuple[type[ast.stmt], ...]) -> Iterator[tuple[str, ast.stmt]]:
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, kinds):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def lines(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def attributes(node: ast.stmt) -> set[str]:
    """What the methods of a class assign to `self`."""
    return {
        each.attr
        for each in ast.walk(node)
        if isinstance(each, ast.Attribute)
        and isinstance(each.ctx, ast.Store)
        and isinstance(each.value, ast.Name)
        and each.value.id == "self"
    }


def test_files_are_short() -> None:
    assert [p for p in MODULES if len(p.read_text(encoding="utf-8").splitlines()) > FILE] == []


def test_classes_are_short() -> None:
    assert [at for at, node in definitions((ast.ClassDef,)) if lines(node) > CLASS] == []


def test_objects_have_few_attributes() -> None:
    assert [
        at
        for at, node in definitions((ast.ClassDef,))
        if len(attributes(node)) > ATTRIBUTES and getattr(node, "name", "") not in COLUMNS
    ] == []


def test_functions_fit_a_screen() -> None:
    assert [at for at, node in definitions((ast.FunctionDef, ast.AsyncFunctionDef)) if lines(node) > FUNCTION] == []


@pytest.mark.parametrize("folder", sorted({path.parent.relative_to(ROOT) for path in MODULES}), ids=str)
def test_folders_have_few_modules(folder: Path) -> None:
    assert len([p for p in (ROOT / folder).glob("*.py") if p.name != "__init__.py"]) <= FOLDER


def test_no_class_name_of_the_product_occurs_twice() -> None:
    places = defaultdict(list)
    for at, node in definitions((ast.ClassDef,)):
        places[getattr(node, "name", "")].append(at)
    assert len(places) > 500
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_each_module_has_a_test_file_of_its_name() -> None:
    """`sink_job/x/y.py`: `tests/unit/x/test_y.py`. Also fails for an exception that has one by now."""
    job, tests = ROOT / "sink_job", ROOT / "tests" / "unit"
    modules = [path.relative_to(job) for path in job.rglob("*.py") if not path.name.startswith("__")]
    without = {str(path) for path in modules if not (tests / path.parent / f"test_{path.name}").exists()}
    assert without == DEFINITIONS
