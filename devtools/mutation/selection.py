"""The unit tests of a module: those that import it, found in their text.

A test that starts a server, Spark or a process is not among them: the process would not have the mutant.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path


def unit_tests_of(path: str, root: Path) -> list[str]:
    """The test files of a module, as paths relative to `root`: first those that import it directly, then those of its
    package that reach it through other modules; of both, the file named like the module, its package, and small files
    first."""
    module = _module(path)
    package = module.split(".")[1]
    named = f"tests/unit/{package}/test_{module.split('.')[-1]}.py"
    found = [str(each.relative_to(root)) for each in sorted((root / "tests/unit").rglob("test_*.py"))]
    found.sort(key=lambda test: (test != named, package not in test.split("/"), (root / test).stat().st_size))
    direct = [test for test in found if module in _imports(root, test)]
    own = [test for test in found if test.startswith(f"tests/unit/{package}/") and module in _reached(root, test)]
    return [*direct, *(test for test in own if test not in direct)]


def _module(path: str) -> str:
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


@cache
def _imports(root: Path, path: str) -> frozenset[str]:
    """The modules of this repository that a file imports by name."""
    return frozenset(_existing(root, ast.parse((root / path).read_text())))


def _existing(root: Path, tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names):
                names_of = [each.name for each in names]
            case ast.ImportFrom(module=str(module), names=names):
                names_of = [module, *(f"{module}.{each.name}" for each in names)]
            case _:
                continue
        yield from (name for name in names_of if _file(root, name) is not None)


@cache
def _file(root: Path, module: str) -> str | None:
    if module.split(".")[0] not in ("sink_job", "tests", "devtools"):
        return None
    path = module.replace(".", "/") + ".py"
    return path if (root / path).is_file() else None


@cache
def _reached(root: Path, path: str) -> frozenset[str]:
    """The modules that a file imports, directly or through others."""
    reached: set[str] = set()
    waiting = list(_imports(root, path))
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            waiting += _imports(root, _file(root, module) or path)
    return frozenset(reached)
