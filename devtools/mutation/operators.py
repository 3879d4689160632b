"""Mutants of a module's functions: each changes one place of its syntax tree.

Code outside of functions (constants, declarations of types) is not mutated, nor are annotations, texts, logging, and
what an error says.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

Replacement = Callable[[], ast.AST]
Function = ast.FunctionDef | ast.AsyncFunctionDef

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
    ast.BitAnd: ast.BitOr,
}
FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any"}
LOGGERS = ("LOG", "LOGGER", "log", "logger", "logging")


@dataclass(frozen=True)
class Mutant:
    """One change: the `number`-th of its module, at a line (from 1), in a function (dotted with its class)."""

    path: str
    number: int
    line: int
    function: str
    operator: str
    before: str
    after: str

    @property
    def name(self) -> str:
        """The same for the same source text; results are stored by it."""
        return f"{self.path}:{self.line}#{self.number}"


@dataclass(frozen=True)
class _Site:
    function: str
    node: ast.AST
    operator: str
    replacement: Replacement


def mutants(path: Path, root: Path) -> list[Mutant]:
    """All mutants of a file, in the order of its text; paths are relative to `root`."""
    tree = ast.parse(path.read_text())
    return [
        Mutant(
            path=str(path.relative_to(root)),
            number=number,
            line=_line(site.node),
            function=site.function,
            operator=site.operator,
            before=_text(site.node),
            after=_text(site.replacement()),
        )
        for number, site in enumerate(_sites(tree))
    ]


def mutated(mutant: Mutant, root: Path) -> ast.Module:
    """The syntax tree of a mutant. Raises LookupError if the file is not the one that the mutant was made of."""
    tree = ast.parse((root / mutant.path).read_text())
    site = next((each for number, each in enumerate(_sites(tree)) if number == mutant.number), None)
    if site is None or _text(site.node) != mutant.before:
        raise LookupError(f"{mutant.path}: the file has changed since mutant {mutant.name} was made")
    changed = ast.copy_location(site.replacement(), site.node)
    _Exchange(site.node, changed).visit(tree)
    return ast.fix_missing_locations(tree)


class _Exchange(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self._new if node is self._old else super().generic_visit(node)


def _line(node: ast.AST) -> int:
    found: int = getattr(node.iter if isinstance(node, ast.comprehension) else node, "lineno", 0)
    return found


def _text(node: ast.AST) -> str:
    lines = ast.unparse(node).splitlines() or [""]
    return lines[0] if len(lines) == 1 else f"{lines[0]} …"


def _sites(tree: ast.Module) -> Iterator[_Site]:
    for function, node in functions(tree):
        for each in node.body:
            yield from _of(each, function)


def functions(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, Function]]:
    """The functions and methods of a module, with their dotted names, but not those inside of functions."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from functions(node, f"{prefix}{node.name}.")


def _of(node: ast.AST, function: str) -> Iterator[_Site]:
    if _is_skipped(node):
        return
    for operator, replacement in _changes(node):
        yield _Site(function, node, operator, replacement)
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "args") and not isinstance(node, ast.Call):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _of(child, function)


def _is_skipped(node: ast.AST) -> bool:
    if isinstance(node, ast.Raise | ast.Assert | ast.JoinedStr):
        return True
    if not isinstance(node, ast.Expr):
        return False
    call = node.value
    if isinstance(call, ast.Constant):  # a docstring
        return True
    return isinstance(call, ast.Call) and ast.unparse(call.func).split(".")[0] in LOGGERS


def _changes(node: ast.AST) -> Iterator[tuple[str, Replacement]]:
    """The operators that apply to a node itself."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARISONS:
            yield "comparison", lambda: _with(node, ops=[COMPARISONS[type(op)]()])
        case ast.BoolOp():
            yield "and/or", lambda: _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        case ast.UnaryOp(op=ast.Not()):
            yield "not removed", lambda: copy.deepcopy(node.operand)
        case ast.BinOp() if type(node.op) in ARITHMETIC and not _is_text(node):
            yield "arithmetic", lambda: _with(node, op=ARITHMETIC[type(node.op)]())
        case ast.Constant(value=bool(flag)):
            yield "boolean", lambda: ast.Constant(not flag)
        case ast.Constant(value=int(number)):
            yield "+1", lambda: ast.Constant(number + 1)
            yield "-1", lambda: ast.Constant(number - 1)
        case ast.If() | ast.IfExp() | ast.While() if not isinstance(node.test, ast.Compare | ast.UnaryOp):
            yield "condition negated", lambda: _with(node, test=ast.UnaryOp(ast.Not(), copy.deepcopy(node.test)))
        case ast.comprehension(ifs=[_, *_]):
            yield "filter removed", lambda: _with(node, ifs=[])
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign():
            yield "statement removed", ast.Pass
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "statement removed", ast.Pass
        case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
            yield "returns None", lambda: ast.Return(ast.Constant(None))
        case ast.Name(id=name) if name in FUNCTIONS:
            yield "function", lambda: _with(node, id=FUNCTIONS[name])


def _is_text(node: ast.BinOp) -> bool:
    return any(
        isinstance(each, ast.JoinedStr) or (isinstance(each, ast.Constant) and isinstance(each.value, str))
        for each in (node.left, node.right)
    )


def _with(node: ast.AST, **fields: object) -> ast.AST:
    changed = copy.deepcopy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return changed
