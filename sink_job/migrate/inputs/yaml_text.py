"""YAML documents with all scalars as text, as they are written."""

from __future__ import annotations

from typing import Any

import yaml

from sink_job.api.errors import InvalidConnector
from sink_job.api.field_errors import in_a_line

_MAX_NODES = 1_000_000


class _TextLoader(yaml.BaseLoader):
    """Rejects keys that occur twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            mark = key.start_mark
            where = f"line {mark.line + 1}, column {mark.column + 1}: "
            if not isinstance(key, yaml.ScalarNode):
                raise InvalidConnector(f"{where}a key must be text")
            if key.value in lines:
                message = f"{where}the key {in_a_line(key.value)} is there twice, first in line {lines[key.value]}"
                raise InvalidConnector(f"{message}: remove one")
            lines[key.value] = mark.line + 1
        return super().construct_mapping(node, deep=deep)


def read_yaml(text: str) -> list[Any]:
    """The documents of `text`; empty ones are left out. Raises InvalidConnector with line and column."""
    try:
        loader = _TextLoader(text)
        found = []
        while loader.check_node():
            node = loader.get_node()
            if node is not None:
                _check_size(node)
                found.append(loader.construct_document(node))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise InvalidConnector(f"{where}invalid YAML: {_problem(error)}") from None
    return [each for each in found if each not in ("", None)]


def _problem(error: yaml.YAMLError) -> str:
    """What is wrong, without the text of the input."""
    if isinstance(error, yaml.reader.ReaderError):
        return "it contains a character that is not allowed"
    if isinstance(error, yaml.composer.ComposerError):
        return "an alias (*) has no anchor, or an anchor (&) is defined twice"
    problem = str(getattr(error, "problem", None) or "it cannot be parsed")
    return "it contains an unknown tag (!)" if "tag handle" in problem else problem


def _check_size(node: yaml.Node) -> None:
    """Rejects aliases that multiply the document, and an anchor that contains itself."""
    if _nodes(node, {}) > _MAX_NODES:
        raise InvalidConnector(f"the aliases (*) make the input larger than {_MAX_NODES:,} keys and values")


def _nodes(node: yaml.Node, known: dict[int, int]) -> int:
    if id(node) not in known:
        known[id(node)] = _MAX_NODES  # for an anchor that contains itself
        inner = [each for pair in node.value for each in pair] if isinstance(node, yaml.MappingNode) else node.value
        below = sum(_nodes(each, known) for each in inner) if isinstance(node, yaml.CollectionNode) else 0
        known[id(node)] = 1 + below
    return known[id(node)]
