"""Reads the YAML of a manifest the way Kubernetes means it, and strictly: nothing a person wrote is silently dropped.

- Plain scalars follow YAML 1.2's core schema: `no` is text, `+10:00` is no number of seconds, `2025-11-03` no date.
- A key that is written twice is a mistake, not a second chance.
- An empty value counts as not written, as it does for the API server, save where the user's own keys stand.
Messages give lines and never quote the text, which may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

from sink_job.api.errors import InvalidSpec
from sink_job.api.field_errors import in_a_line

TOO_DEEP: Final = "the manifest is nested too deeply"

_OPEN_MAPPINGS: Final = ("properties", "sparkConf", "podTemplate", "status")
_FIRST_CHARACTERS: Final = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    "int": (r"[-+]?(?:0|[1-9][0-9]*)", list("-+0123456789")),
    "float": (r"[-+]?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?", list("-+0123456789")),
    "merge": (r"<<", ["<"]),
}


class _Loader(yaml.SafeLoader):
    """Core-schema scalars, text for keys, and a list of keys that were written twice."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.mistakes: list[str] = []

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: dict[str, int] = {}
        for key, _ in node.value:
            line = key.start_mark.line + 1
            if not isinstance(key, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(None, None, "a key must be text", key.start_mark)
            if key.tag == "tag:yaml.org,2002:merge":
                continue
            if key.value in seen:
                self.mistakes.append(f"line {line}: {in_a_line(key.value)} was already given in line {seen[key.value]}")
            seen.setdefault(key.value, line)
            key.tag = "tag:yaml.org,2002:str"
        return super().construct_mapping(node, deep=deep)


_Loader.yaml_implicit_resolvers = {}
for _name, (_pattern, _first) in _FIRST_CHARACTERS.items():
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_name}", re.compile(f"^(?:{_pattern})$"), _first)


def read(text: str) -> tuple[object, list[str]]:
    """The one document in `text`, and the keys written twice, each as a sentence.

    Raises InvalidSpec when the text is not YAML (with line and column), is empty, or holds several documents.
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
        raise InvalidSpec(["the manifest is empty: write an S3Sink"])
    if len(found) > 1:
        raise InvalidSpec([f"the manifest holds {len(found)} documents: give one S3Sink at a time"])
    return found[0], loader.mistakes


def _documents(loader: _Loader) -> Iterator[object]:
    while loader.check_node():
        node = loader.get_node()
        if node is not None:
            yield loader.construct_document(node)


def without_nulls(section: dict[str, Any]) -> dict[str, Any]:
    """`section` without keys that were left empty, at any depth."""
    return {
        key: without_nulls(inner) if isinstance(inner, dict) and key not in _OPEN_MAPPINGS else inner
        for key, inner in section.items()
        if inner is not None
    }


def _sentence(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return f"{where}this is not YAML: {_problem(error)}"


def _problem(error: yaml.YAMLError) -> str:
    """What PyYAML says, unless it would quote the manifest."""
    if isinstance(error, yaml.reader.ReaderError):
        return "it has a character that text cannot have"
    if isinstance(error, yaml.composer.ComposerError):
        return "an alias (*) refers to nothing, or an anchor (&) is set twice"
    problem = str(getattr(error, "problem", None) or "it cannot be read")
    if isinstance(error, yaml.constructor.ConstructorError) and problem != "a key must be text":
        return "it has a tag (!) or a value that cannot be used here"
    if "tag handle" in problem:
        return "it has an unknown tag (!)"
    return problem
