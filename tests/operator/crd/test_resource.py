"""The resource itself: its names, subresources and columns."""

from __future__ import annotations

from tests.operator.crd.definition import FIELDS, MADE, SCHEMA, VERSION


def test_scaling_and_status_are_resources_of_their_own() -> None:
    assert VERSION["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.executor.instances",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }
    assert SCHEMA["properties"]["spec"]["properties"]["executor"]["properties"]["instances"]["minimum"] == 1


def test_the_columns_of_kubectl_get() -> None:
    columns = VERSION["additionalPrinterColumns"]
    names = [column["name"] for column in columns]
    assert names == ["Ready", "State", "Partitions", "Lag", "Memory", "Age", "Reason", "Updated"]
    assert [column["name"] for column in columns if column.get("priority")] == ["Reason", "Updated"]


def test_a_column_shows_a_field_that_there_is() -> None:
    known = {f".{path}" for path, _ in FIELDS}
    paths = {column["jsonPath"] for column in VERSION["additionalPrinterColumns"]} - {".metadata.creationTimestamp"}
    conditions = {path for path in paths if path.startswith(".status.conditions[?")}
    assert paths - conditions <= known
    assert {path.rsplit(".", 1)[1] for path in conditions} == {"status", "reason"}


def test_names_of_the_resource() -> None:
    assert MADE["metadata"]["name"] == "s3sinks.s3sink.io"
    assert MADE["spec"]["names"] == {
        "kind": "S3Sink",
        "listKind": "S3SinkList",
        "plural": "s3sinks",
        "singular": "s3sink",
        "shortNames": ["s3s"],
        "categories": ["sinks"],
    }
