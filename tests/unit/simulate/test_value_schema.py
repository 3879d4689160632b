"""JSON values of a simulation under the schema of the sink: others are data errors, as in the job."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sink_job.api.errors import InvalidSpec
from sink_job.cli.simulate import simulate
from tests.unit.api.manifests import accepted

STEP = json.dumps({"write": [{"topic": "t", "partition": 0, "offset": 0, "value": {"id": 1}}]}).encode()
FIELDS = {"text": "- {name: id, type: int64}"}
OBJECT = {"text": '{"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}'}


def errors(value: object, **given: Any) -> list[str]:
    """The data errors of a record with this value, in Parquet."""
    of = accepted({"spec.rotation.flushSize": 1, "spec.format": {"output": "Parquet", **given}})
    record = {"topic": "t", "partition": 0, "offset": 0, "value": value}
    (report,) = simulate(of, [json.dumps({"write": [record]}).encode()])
    assert bool(report.closed) != bool(report.errors)
    return [each.message for each in report.errors]


@pytest.mark.parametrize(
    "given", [{"schema": FIELDS}, {"schema": OBJECT}, {"schema": OBJECT, "converter": "JsonSchema"}]
)
def test_a_json_value_that_does_not_conform_to_the_schema_of_the_sink_is_a_data_error(given: dict[str, Any]) -> None:
    assert errors({"id": 1}, **given) == []
    assert errors({"id": "one"}, **given) == ["the field id: a JSON value must be an integer"]
    assert errors({"id": 1, "gate": "B7"}, **given) == ["the field gate: its schema does not have this property"]
    assert errors({"id": 1, "gate": "B7"}, unknownFields="Json", **given) == []


def test_a_json_value_is_not_checked_against_a_schema_that_is_in_a_config_map() -> None:
    assert errors({"id": "one"}, schema={"configMap": "schemas", "key": "flight"}) == []


@pytest.mark.parametrize("source", [{"inference": "Once"}, {"schema": {"text": "- {name: id, type: int64}"}}])
def test_json_with_a_schema_of_the_sink_is_simulated_as_it_is(source: dict[str, Any]) -> None:
    of = accepted({"spec.rotation.flushSize": 1, "spec.format": {"output": "Parquet", **source}})
    (report,) = simulate(of, [STEP])
    assert [each.key for each in report.closed] == ["topics/t/partition=0/t+0+0000000000.snappy.parquet"]


@pytest.mark.parametrize(
    "given", [{"output": "Json", "converter": "JsonSchema"}, {"converter": "Avro", "output": "Avro"}]
)
def test_values_that_the_job_does_not_read_as_json_of_the_schema_are_not_checked(given: dict[str, Any]) -> None:
    avro = '{"type": "record", "name": "R", "fields": [{"name": "id", "type": "long"}]}'
    schema = OBJECT if given["converter"] == "JsonSchema" else {"text": avro}
    assert errors({"id": "one"}, **given, schema=schema) == []


def test_a_value_that_is_no_json_has_the_reason_of_the_converter() -> None:
    of = accepted({"spec.rotation.flushSize": 1, "spec.format": {"output": "Parquet", "schema": FIELDS}})
    record = {"topic": "t", "partition": 0, "offset": 0, "value_base64": "eyI="}
    (report,) = simulate(of, [json.dumps({"write": [record]}).encode()])
    [error] = report.errors
    assert "JSON" in error.message


def test_each_record_has_its_own_reason() -> None:
    changes = {"spec.rotation.flushSize": 9, "spec.errors.tolerance": "All"}
    of = accepted(changes, {"spec.format": {"output": "Parquet", "schema": FIELDS}})
    values = [{"id": 1}, {"id": "one"}, {}, {"id": 2}]
    records = [{"topic": "t", "partition": 0, "offset": n, "value": value} for n, value in enumerate(values)]
    (report,) = simulate(of, [json.dumps({"write": records}).encode()])
    assert [error.offset for error in report.errors] == [1, 2]
    assert [each.offsets for each in report.open] == [[0, 3]]


REGISTRY = {"url": ["https://registry"]}


def test_a_transformed_value_has_another_schema_than_that_of_the_sink() -> None:
    insert = {"type": "Insert", "field": "topic", "source": "Topic"}
    of = accepted(
        {
            "spec.rotation.flushSize": 1,
            "spec.format": {"converter": "JsonSchema", "output": "Parquet", "schema": OBJECT},
            "spec.transforms": [insert],
        }
    )
    (report,) = simulate(of, [STEP])
    assert (len(report.closed), report.errors) == (1, [])


@pytest.mark.parametrize(
    "transform", [{"type": "Unwrap"}, {"type": "Timestamp", "field": "id", "timestampType": "Timestamp"}]
)
def test_a_transform_that_needs_a_schema_is_not_simulated(transform: dict[str, Any]) -> None:
    transforms = [{"type": "Drop", "fields": ["x"]}, transform]
    of = accepted({"spec.format": {"converter": "Avro", "registry": REGISTRY}, "spec.transforms": transforms})
    with pytest.raises(InvalidSpec, match=rf"spec\.transforms\[1\] \({transform['type']}\) needs values with a schema"):
        list(simulate(of, [STEP]))
