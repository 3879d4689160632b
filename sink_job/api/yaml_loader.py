"""Strict YAML parser of manifests, with the semantics of Kubernetes. It never drops input silently.

- Plain scalars follow the core schema of YAML 1.2: `no`, `+10:00` and `2025-11-03` are text, not a boolean, a number of
  seconds or a date.
- A duplicate key is an error.
- A field with an empty value is treated like a field that is not set, as in the API server, except in mappings with
  keys of the user.
- Aliases may repeat a part of the text, but not multiply the manifest beyond `MAX_NODES`.
- Messages contain line numbers and never the text, because it may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from sink_job.api.errors import InvalidSpec
from sink_job.api.field_errors import in_a_line

TOO_DEEP: Final = "the manifest is nested too deeply"
MAX_NODES: Final = 1_000_000
"""Maximum number of keys and values of a manifest, with each alias (*) replaced by its value."""

_OPEN_MAPPINGS: Final = ("properties", "sparkConf", "podTemplate", "status")
_FIRST_CHARACTERS: Final = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?(?:0|[1-9][0-9]*)", list("-+0123456789")),
    "float": (r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", list("-+0123456789")),
    "merge": (r"<<", ["<"]),
}


class _Loader(yaml.SafeLoader):
    """Core-schema scalars, text as keys, and a list of duplicate keys."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.errors: list[str] = []

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, KeyError):  # `!!bool x`, or a number with more digits than Python reads
            raise yaml.constructor.ConstructorError(None, None, None, node.start_mark) from None

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        lines: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be text", key.start_mark)
            if key.tag == "tag:yaml.org,2002:merge":
                continue
            if key.value in lines:
                first = lines[key.value]
                self.errors.append(f"line {line}: {in_a_line(key.value)} is a duplicate of the key in line {first}")
            lines.setdefault(key.value, line)
            key.tag = "tag:yaml.org,2002:str"
        return super().construct_mapping(node, deep=deep)


_Loader.yaml_implicit_resolvers = {}
for _name, (_pattern, _first) in _FIRST_CHARACTERS.items():
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", re.compile(f"^(?:{_pattern})$"), _first)


def read(text: str) -> tuple[object, list[str]]:
    """The document in `text`, and a sentence for each duplicate key.

    Raises InvalidSpec if the text is not YAML (with line and column), is empty, or contains several documents.
    """
    try:
        loader = _Loader(text)
        documents = list(_documents(loader))
    except yaml.YAMLError as error:
        raise InvalidSpec([_sentence(error)]) from None
    except RecursionError:
        raise InvalidSpec([TOO_DEEP]) from None
    found = [document for document in documents if document is not None]
    if not found:
        raise InvalidSpec(["the manifest is empty: it must contain an S3Sink"])
    if len(found) > 1:
        raise InvalidSpec([f"the manifest contains {len(found)} documents: use one S3Sink per manifest"])
    return found[0], loader.errors


def _documents(loader: _Loader) -> Iterator[object]:
    while loader.check_node():
        node = loader.get_node()
        if node is not None:
            if _nodes(node, {}) > MAX_NODES:
                raise InvalidSpec([f"the aliases (*) make the manifest larger than {MAX_NODES:,} keys and values"])
            yield loader.construct_document(node)


def _nodes(node: yaml.Node, known: dict[int, int]) -> int:
    """The number of nodes below and including `node`, with aliases replaced. `known`: the results by the node's id."""
    if id(node) not in known:
        known[id(node)] = 1  # for an anchor that contains itself, which is rejected later
        inner = [each for pair in node.value for each in pair] if isinstance(node, yaml.MappingNode) else node.value
        if isinstance(node, yaml.CollectionNode):
            known[id(node)] += sum(_nodes(each, known) for each in inner)
    return known[id(node)]


def without_nulls(section: dict[str, Any]) -> dict[str, Any]:
    """`section` without keys that have an empty value, at any depth."""
    return {
        key: without_nulls(inner) if isinstance(inner, dict) and key not in _OPEN_MAPPINGS else inner
        for key, inner in section.items()
        if inner is not None
    }


def _sentence(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"{where}invalid YAML: {_problem(error)}"


def _problem(error: yaml.YAMLError) -> str:
    """The message of PyYAML, or another one if that message would quote the manifest."""
    if isinstance(error, yaml.reader.ReaderError):
        return "it contains a character that is not allowed"
    if isinstance(error, yaml.composer.ComposerError):
        return "an alias (*) has no anchor, or an anchor (&) is defined twice"
    problem = str(getattr(error, "problem", None) or "it cannot be parsed")
    if isinstance(error, yaml.constructor.ConstructorError) and problem != "a key must be text":
        return "it contains a tag (!) or a value that is not allowed here"
    if "tag handle" in problem:
        return "it contains an unknown tag (!)"
    return problem
