"""Any manifest is either accepted or rejected with messages that start with the path of the field."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.errors import InvalidSpec
from sink_job.api.field_errors import every_field
from sink_job.api.parser import load_sink, parse_sink
from sink_job.api.spec import Sink, Spec
from tests.unit.api.manifests import document

PATHS = [path for path, _ in every_field(Spec, ("spec",))]
ODD: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=12)
    | st.sampled_from(["", "10m", "5Mi", "Json", "Time", "Field", "http://a", "..", "a.b", "'", "All", "Latest"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=6), inner, max_size=2),
    max_leaves=4,
)
CHANGES = st.lists(st.tuples(st.sampled_from(PATHS), ODD), min_size=1, max_size=4)
SENTENCE = re.compile(r"(apiVersion|kind|metadata|spec)[^\n]*: [^\n]+")


def put(manifest: dict[str, Any], path: tuple[int | str, ...], value: object) -> None:
    """Puts `value` at `path`. Adds missing sections and lists; does nothing if a parent is text."""
    place: Any = manifest
    for step, following in itertools.pairwise(path):
        fresh: Any = [{}] if following == 0 else {}
        if isinstance(place, list):
            place = place[0] if place else None
        elif isinstance(place, dict):
            place = place.setdefault(step, fresh)
    if isinstance(place, dict):
        place[path[-1]] = value


def changed(changes: list[tuple[tuple[int | str, ...], object]]) -> dict[str, Any]:
    manifest = document()
    for path, value in changes:
        put(manifest, path, value)
    return manifest


def outcome(read: Callable[[], Sink]) -> Sink | tuple[str, ...]:
    """The parsed sink, or its errors."""
    try:
        return read()
    except InvalidSpec as error:
        return error.errors


@given(CHANGES)
def test_any_manifest_is_accepted_or_rejected_with_messages(
    changes: list[tuple[tuple[int | str, ...], object]],
) -> None:
    found = outcome(lambda: parse_sink(changed(changes), for_job=False))
    if isinstance(found, Sink):
        assert parse_sink(found.model_dump(mode="json"), for_job=False) == found
    else:
        assert found
        assert all(SENTENCE.fullmatch(error) for error in found)
        assert len(set(found)) == len(found)


@given(CHANGES)
def test_text_and_plain_data_give_the_same_result(changes: list[tuple[tuple[int | str, ...], object]]) -> None:
    manifest = changed(changes)
    text = yaml.safe_dump(manifest, sort_keys=False)
    assert outcome(lambda: load_sink(text)) == outcome(lambda: parse_sink(manifest))


@given(st.text(st.sampled_from("abc:{}[]-,&*!|>'\"%@`#?\n \t0~"), max_size=40))
def test_any_text_is_rejected_with_messages(text: str) -> None:
    found = outcome(lambda: load_sink(text))
    assert isinstance(found, tuple)
    assert all(error and "\n" not in error for error in found)
