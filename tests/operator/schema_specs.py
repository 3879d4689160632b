"""Specs at random, out of the CustomResourceDefinition's own schema: any field may take any value that fits its node.

What the parser rejects is left out, one change at a time, so that many fields of a spec are unusual at once.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import yaml
from hypothesis import strategies as st

from s3sink_operator import crd
from s3sink_operator.types import Json
from sink_job.api.errors import InvalidSpec
from sink_job.api.parser import parse_sink
from tests.operator.fake_cluster import SPEC, document

Path = tuple[str, ...]
# The identity of a sink cannot change, and a request about offsets is carried out, not kept.
_LEFT_OUT = {("s3", "bucket"), ("s3", "topicsDir"), ("kafka", "groupId"), ("sinkId",), ("offsets",)}
_MOST_CHANGES = 6


def _schema() -> Json:
    document = yaml.load(crd.text(), Loader=yaml.CSafeLoader)
    whole: Json = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return dict(whole["properties"]["spec"])


def _leaves(node: Json, path: Path = ()) -> Iterator[tuple[Path, Json]]:
    if any(path[: len(each)] == each for each in _LEFT_OUT):
        return
    if "properties" not in node:
        yield path, node
        return
    for name, inner in node["properties"].items():
        yield from _leaves(inner, (*path, name))


def _values(node: Json) -> st.SearchStrategy[Any]:
    """What fits a node of the schema."""
    if "enum" in node:
        return st.sampled_from(node["enum"])
    if node.get("x-kubernetes-preserve-unknown-fields"):
        return st.just({}) | st.just({"metadata": {"labels": {"team": "a"}}, "spec": {"priorityClassName": "high"}})
    if "pattern" in node:
        lengths = slice(node.get("minLength", 0), min(node.get("maxLength", 40), 40))
        matching = st.from_regex(node["pattern"].replace("$", r"\Z"))
        return matching.filter(lambda text: lengths.start <= len(text) <= lengths.stop)
    match node.get("type"):
        case "boolean":
            return st.booleans()
        case "integer":
            return st.integers(node.get("minimum", 0), min(node.get("maximum", 1 << 40), 1 << 40))
        case "array":
            least, most = node.get("minItems", 0), min(node.get("maxItems", 3), 3)
            return st.lists(_values(node["items"]), min_size=least, max_size=most)
        case "object" if "additionalProperties" in node:
            names = st.from_regex(r"[a-z]{1,5}(\.[a-z]{1,5}){0,2}", fullmatch=True)
            return st.dictionaries(names, _values(node["additionalProperties"]), max_size=3)
        case "object":
            required = {name: _values(node["properties"][name]) for name in node.get("required", ())}
            optional = {name: _values(inner) for name, inner in node["properties"].items() if name not in required}
            return st.fixed_dictionaries(required, optional=optional)
    text = st.text(st.characters(min_codepoint=32, max_codepoint=126))
    return text.filter(lambda each: node.get("minLength", 0) <= len(each) <= min(node.get("maxLength", 40), 40))


_LEAVES = dict(_leaves(_schema()))
_CHANGES = st.lists(
    st.sampled_from(sorted(_LEAVES)).flatmap(lambda path: st.tuples(st.just(path), _values(_LEAVES[path]))),
    max_size=_MOST_CHANGES,
)


def _with(spec: Json, path: Path, value: Any) -> Json:
    changed = copy.deepcopy(spec)
    place = changed
    for step in path[:-1]:
        place = place.setdefault(step, {})
    place[path[-1]] = value
    return changed


def _is_right(spec: Json) -> bool:
    try:
        parse_sink(document(**spec))
    except InvalidSpec:
        return False
    return True


@st.composite
def specs(draw: st.DrawFn) -> Json:
    """A whole spec that is right."""
    spec = copy.deepcopy(SPEC)
    for path, value in draw(_CHANGES):
        changed = _with(spec, path, value)
        if _is_right(changed):
            spec = changed
    return spec
