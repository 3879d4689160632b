"""Evaluates the part of CEL that the operator's expressions use, so that unit tests can run them.

Not supported: the types of CEL beyond Python's, `has`, regular expressions that RE2 and Python read differently. In
tests/cluster the API server evaluates the expressions.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

Names: TypeAlias = Mapping[str, Any]
Node: TypeAlias = Callable[[Names], Any]

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<text>'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*")|(?P<number>\d+)|(?P<name>\w+)|(?P<sign>[=!<>]=|&&|\|\||\S))"""
)
_COMPARISONS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq, "!=": operator.ne, "<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt,
    "in": lambda item, items: item in items,
}  # fmt: skip
_UNITS: Final = {"h": 3_600_000, "m": 60_000, "s": 1000, "ms": 1}
_TYPES: Final[Names] = {"bool": bool, "int": int, "string": str, "list": list, "map": dict}


def evaluate(expression: str, names: Names) -> Any:
    """The value of a CEL expression. `names`: the values of its variables."""
    parser = _Parser(expression)
    node = parser.expression()
    assert not parser.tokens, f"not read: {parser.tokens}"
    return node({**_TYPES, **names})


def duration(text: str) -> int:
    """Milliseconds of a duration of Go, such as `0s1h30m`."""
    found = re.findall(r"(\d+)(ms|[hms])", text)
    assert "".join(number + unit for number, unit in found) == text, f"{text} is not a duration"
    return sum(int(number) * _UNITS[unit] for number, unit in found)


_FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {
    "type": type,
    "string": lambda value: str(value).lower() if isinstance(value, bool) else str(value),
    "duration": duration,
}
_METHODS: Final[Mapping[str, Callable[..., Any]]] = {
    "contains": lambda text, part: part in text,
    "indexOf": lambda text, part: text.find(part),
    "join": lambda texts, separator: separator.join(texts),
    "matches": lambda text, pattern: re.search(pattern, text) is not None,
    "size": len,
    "startsWith": lambda text, prefix: text.startswith(prefix),
    "substring": lambda text, start: text[start:],
}
_MACROS: Final[Mapping[str, Callable[[Any, Callable[[Any], Any]], Any]]] = {
    "all": lambda items, test: all(map(test, items)),
    "filter": lambda items, test: [item for item in items if test(item)],
    "map": lambda items, convert: [convert(item) for item in items],
}


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens = [found[found.lastgroup or 0] for found in _TOKEN.finditer(text.strip())]

    def expression(self) -> Node:
        condition = self._binary("||", lambda: self._binary("&&", self._comparison))
        if not self._accept("?"):
            return condition
        yes = self.expression()
        self._expect(":")
        no = self.expression()
        return lambda names: yes(names) if condition(names) else no(names)

    def _binary(self, sign: str, operand: Callable[[], Node]) -> Node:
        nodes = [operand()]
        while self._accept(sign):
            nodes.append(operand())
        if len(nodes) == 1:
            return nodes[0]
        choose = any if sign == "||" else all
        return lambda names: choose(node(names) for node in nodes)

    def _comparison(self) -> Node:
        left = self._sum()
        for sign, compare in _COMPARISONS.items():
            if self._accept(sign):
                right = self._sum()
                return lambda names: compare(left(names), right(names))
        return left

    def _sum(self) -> Node:
        nodes = [self._unary()]
        while self._accept("+"):
            nodes.append(self._unary())

        def add(names: Names) -> Any:
            first, *others = (node(names) for node in nodes)
            for other in others:
                first = first + other
            return first

        return add

    def _unary(self) -> Node:
        if self._accept("!"):
            inner = self._unary()
            return lambda names: not inner(names)
        return self._postfix(self._primary())

    def _postfix(self, node: Node) -> Node:
        while True:
            if self._accept("."):
                node = self._member(node, self.tokens.pop(0))
            elif self._accept("["):
                node = self._item(node, self.expression())
                self._expect("]")
            else:
                return node

    def _member(self, node: Node, name: str) -> Node:
        if not self._accept("("):
            return lambda names: node(names)[name]
        if name in _MACROS:
            variable, macro = self.tokens.pop(0), _MACROS[name]
            self._expect(",")
            body = self.expression()
            self._expect(")")
            return lambda names: macro(node(names), lambda item: body({**names, variable: item}))
        method, arguments = _METHODS[name], self._list(")")
        return lambda names: method(node(names), *arguments(names))

    @staticmethod
    def _item(node: Node, key: Node) -> Node:
        return lambda names: node(names)[key(names)]

    def _primary(self) -> Node:
        token = self.tokens.pop(0)
        if token == "(":
            inner = self.expression()
            self._expect(")")
            return inner
        if token == "[":
            return self._list("]")
        if token[0] in "'\"" or token.isdigit():
            value = ast.literal_eval(token)
            return lambda _: value
        if self._accept("("):
            function, arguments = _FUNCTIONS[token], self._list(")")
            return lambda names: function(*arguments(names))
        return lambda names: names[token]

    def _list(self, end: str) -> Node:
        nodes: list[Node] = []
        while not self._accept(end):
            nodes.append(self.expression())
            if self.tokens[0] != end:
                self._expect(",")
        return lambda names: [node(names) for node in nodes]

    def _accept(self, token: str) -> bool:
        if self.tokens and self.tokens[0] == token:
            self.tokens.pop(0)
            return True
        return False

    def _expect(self, token: str) -> None:
        assert self._accept(token), f"{token} expected: {self.tokens[:5]}"
