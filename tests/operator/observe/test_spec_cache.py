"""A spec is parsed once for each generation."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from s3sink_operator import names
from s3sink_operator.observe import spec_cache
from s3sink_operator.observe.spec_cache import SpecCache
from s3sink_operator.types import Json
from sink_job.api.parser import parse_sink
from sink_job.api.spec import Sink
from tests.operator.fake_cluster import document


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[Json]:
    """The documents that the parser gets."""
    seen: list[Json] = []
    parse = parse_sink

    def counted(found: Json, *, for_job: bool = True) -> Sink:
        seen.append(found)
        return parse(found, for_job=for_job)

    monkeypatch.setattr(spec_cache, "parse_sink", counted)
    return seen


def test_a_sink_is_parsed_once_for_each_generation(parsed: list[Json]) -> None:
    cache, sink = SpecCache(), document()
    first = cache.parse(sink)
    newer = copy.deepcopy(sink)
    newer["metadata"]["resourceVersion"] = "9"
    newer["status"] = {"replicas": 1}
    assert cache.parse(newer) is first
    assert len(parsed) == 1
    newer["metadata"]["generation"] = 2
    newer["spec"]["rotation"] = {"flushSize": 7}
    found = cache.parse(newer).spec.sink
    assert found is not None
    assert found.spec.rotation.flush_size == 7
    assert len(parsed) == 2


def test_a_sink_that_was_deleted_and_created_again_is_parsed_again() -> None:
    cache = SpecCache()
    cache.parse(document(uid="one"))
    found = cache.parse(document(uid="two", rotation={"flushSize": 7})).spec.sink
    assert found is not None
    assert found.spec.rotation.flush_size == 7


def test_another_reset_annotation_is_parsed_without_another_generation() -> None:
    cache, sink = SpecCache(), document()
    assert cache.parse(sink).reset is None
    sink["metadata"]["annotations"] = {names.RESET_OFFSETS_ANNOTATION: '{"nonce": "a", "to": "Latest"}'}
    reset = cache.parse(sink).reset
    assert reset is not None
    assert (reset.nonce, reset.error) == ("a", "")


def skips(text: str, **spec: Any) -> spec_cache.ParsedSink:
    sink = document(**spec)
    sink["metadata"]["annotations"] = {names.SKIP_ANNOTATION: text}
    return SpecCache().parse(sink)


def test_records_of_the_annotation_are_added_to_those_of_the_spec() -> None:
    found = skips("flights-0@7", errors={"skip": [{"topic": "flights", "partition": 0, "offset": 42}]}).spec.sink
    assert found is not None
    assert [str(each) for each in found.spec.errors.skip] == ["flights-0@7", "flights-0@42"]


def test_an_invalid_skip_annotation_is_ignored_with_its_error() -> None:
    found = skips("flights-0@7, flights")
    assert found.skip_error == "flights is not topic-partition@offset, such as flights-0@42"
    assert found.spec.sink is not None
    assert found.spec.sink.spec.errors.skip == []


def test_another_skip_annotation_is_parsed_without_another_generation() -> None:
    cache, sink = SpecCache(), document()
    assert cache.parse(sink).skip_error == ""
    sink["metadata"]["annotations"] = {names.SKIP_ANNOTATION: "flights"}
    assert cache.parse(sink).skip_error


def test_an_unsupported_feature_is_an_error_and_its_sink_still_takes_part_in_conflicts() -> None:
    reset = {"nonce": "n", "to": "Earliest", "onExisting": "Overwrite"}
    found = SpecCache().parse(document(offsets={"reset": reset}))
    assert found.spec.sink is None
    assert "spec.offsets.reset.onExisting: Overwrite is not supported" in found.spec.error
    assert found.readable is not None
    assert found.readable.spec.offsets.reset is not None
    assert found.readable.spec.offsets.reset.on_existing == "Overwrite"


def test_an_invalid_spec_is_an_error_and_owns_nothing() -> None:
    found = SpecCache().parse(document(rotation={}))
    assert found.spec.sink is None
    assert found.spec.error
    assert found.readable is None
