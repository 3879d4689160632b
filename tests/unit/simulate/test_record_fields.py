"""`s3sink simulate` with keys, headers and the names of schemas in paths."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from sink_job.api.errors import InvalidSpec
from sink_job.api.spec import Sink
from sink_job.cli.simulate import simulate
from tests.unit.api.manifests import accepted


def sink(**sections: Any) -> Sink:
    return accepted({"spec.rotation.flushSize": 2}, {f"spec.{name}": section for name, section in sections.items()})


def record(offset: int, **more: Any) -> dict[str, Any]:
    return {"topic": "t", "partition": 0, "offset": offset, "value": 1, **more}


def run(of: Sink, *records: dict[str, Any]) -> dict[str, Any]:
    """The report of one write."""
    (report,) = simulate(of, [json.dumps({"write": records}).encode()])
    found: dict[str, Any] = json.loads(msgspec.json.encode(report))
    return found


BY_KEY_AND_HEADER = {"type": "Field", "fields": ["$key", "$header.tenant", "$topic"]}


@pytest.mark.parametrize("headers", [{"tenant": "acme"}, [{"key": "tenant", "value_base64": "YWNtZQ=="}]])
def test_paths_can_come_from_keys_and_headers(headers: Any) -> None:
    of = sink(format={"keyConverter": "Text"}, partitioner=BY_KEY_AND_HEADER)
    report = run(of, record(0, key="k1", headers=headers), record(1, key_base64="azE=", headers=headers))
    assert [each["path"] for each in report["closed"]] == [["key=k1", "header.tenant=acme", "topic=t"]]


def test_the_key_of_a_registry_is_given_as_json() -> None:
    registry = {"url": ["https://registry.example.com"]}
    keys = {"keyConverter": "Avro", "registry": registry}
    of = sink(format=keys, partitioner={"type": "Field", "fields": ["$key.id"]})
    report = run(of, record(0, key={"id": 5}))
    assert [each["path"] for each in report["open"]] == [["key.id=5"]]


def test_a_record_without_the_header_of_its_path_is_an_error() -> None:
    of = sink(partitioner={"type": "Field", "fields": ["$header.tenant"]}, errors={"tolerance": "All"})
    report = run(of, record(0), record(1, headers=[{"key": "tenant"}]))
    assert [each["message"] for each in report["errors"]] == ['field "$header.tenant" is missing']
    assert [each["path"] for each in report["open"]] == [["header.tenant=null"]]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"key": "a", "key_base64": "YQ=="}, 'set either "key" or "key_base64"'),
        ({"key_base64": "?"}, '"key_base64": '),
        (
            {"headers": [{"key": "a", "value": "b", "value_base64": "YQ=="}]},
            'set either "value" or "value_base64" of a',
        ),
        ({"headers": {"a": 1}}, "Expected `str | null`, got `int`"),
    ],
)
def test_an_invalid_key_or_header_ends_the_simulation(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSpec) as raised:
        run(sink(format={"keyConverter": "Text"}, partitioner=BY_KEY_AND_HEADER), record(0, **fields))
    assert message in raised.value.errors[0]


@pytest.mark.parametrize("position", ["Prefix", "Suffix"])
def test_paths_can_have_the_name_of_the_schema(position: str) -> None:
    schema = {"name": "Flight", "version": 1, "fields": []}
    report = run(sink(partitioner={"schemaName": position}), record(0, schema=schema), record(1))
    at = 0 if position == "Prefix" else 1
    found = [each["path"][at] for each in [*report["closed"], *report["open"]]]
    assert found == ["schema_name=Flight", "schema_name=null"]
