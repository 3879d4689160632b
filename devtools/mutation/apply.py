"""Puts a mutant into the running process: the code objects of the module's functions are exchanged.

No file is written and no module is imported again. What was compiled before, in any reference to a function (a
decorated one, a default argument, a table), runs the mutant afterwards.
"""

from __future__ import annotations

import ast
import gc
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

from devtools.mutation.operators import Mutant, mutated


class NotApplicable(Exception):
    """The mutant has no function object in this process, or it does not compile."""


def apply(mutant: Mutant, root: Path) -> list[tuple[FunctionType, CodeType]]:
    """Exchanges the code of the mutant's function; returns the functions with their original code (`undo`).

    The module must be imported. Raises NotApplicable.
    """
    code = _code(mutated(mutant, root), root / mutant.path, mutant.function)
    exchanged = []
    for function in _functions(str(root / mutant.path), code):
        original = function.__code__
        try:
            function.__code__ = code
        except ValueError as error:  # the mutant no longer uses a variable of an outer scope, such as super()
            raise NotApplicable(f"{mutant.name}: {error}") from error
        exchanged.append((function, original))
    if not exchanged:
        raise NotApplicable(f"{mutant.name}: no function {mutant.function} is loaded")
    return exchanged


def undo(exchanged: list[tuple[FunctionType, CodeType]]) -> None:
    """Restores the original code."""
    for function, original in exchanged:
        function.__code__ = original


def _code(tree: ast.Module, path: Path, function: str) -> CodeType:
    try:
        module = compile(tree, str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        raise NotApplicable(f"{path}: {error}") from error
    found = [each for each in _nested(module) if each.co_qualname == function]
    if len(found) != 1:  # overloads and properties with a setter have several of one name
        raise NotApplicable(f"{path}: {len(found)} functions are named {function}")
    return found[0]


def _nested(code: CodeType) -> Iterator[CodeType]:
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield each
            yield from _nested(each)


def _functions(path: str, code: CodeType) -> list[FunctionType]:
    return [
        each
        for each in gc.get_objects()
        if type(each) is FunctionType
        and each.__code__.co_qualname == code.co_qualname
        and each.__code__.co_firstlineno == code.co_firstlineno
        and each.__code__.co_filename == path
    ]
