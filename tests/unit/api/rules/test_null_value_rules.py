"""The rules of `spec.errors.onNullValue: Write`."""

from __future__ import annotations

import pytest

from tests.unit.api.manifests import accepted, spec_errors

PATH = "spec.errors.tombstonePath"
WRITE = {"spec.errors": {"onNullValue": "Write"}, "spec.format": {"envelope": True}}


def test_nulls_are_written_with_an_envelope_only() -> None:
    assert spec_errors({"spec.errors": {"onNullValue": "Write"}}) == [
        "spec.errors.onNullValue: Write needs spec.format.envelope: true: a record without a value has only its key, "
        "headers and origin to write; set that, or use Ignore or Fail"
    ]
    assert accepted(WRITE).object_settings().null_values is not None


def test_settings_of_objects_without_it_have_no_trace_of_it() -> None:
    found = accepted({"spec.errors": {"onNullValue": "Ignore"}}).object_settings()
    assert "null" not in found.model_dump_json().replace(":null", "").lower()
    assert "nullValues" in accepted(WRITE).object_settings().model_dump_json(by_alias=True)


def test_a_tombstone_path_needs_it() -> None:
    assert spec_errors({PATH: "gone"}) == [
        f"{PATH}: gone has no effect without spec.errors.onNullValue: Write: set that, or remove it"
    ]
    found = accepted({**WRITE, "spec.errors": {"onNullValue": "Write", "tombstonePath": "gone/2"}})
    assert found.object_settings().tombstone_path == "gone/2"


@pytest.mark.parametrize(
    ("path", "sentence"),
    [
        ("", "is empty: use a directory of its own such as tombstone"),
        ("a//b", "has an empty element: remove / at the start, / at the end and //"),
        ("../a", "has an element . or .."),
        ("_s3sink", "contains the directory _s3sink, which is reserved for ledgers"),
    ],
)
def test_a_tombstone_path_is_a_directory(path: str, sentence: str) -> None:
    written = f"{path} " if path else ""
    given = {**WRITE, "spec.errors": {"onNullValue": "Write", "tombstonePath": path}}
    assert spec_errors(given) == [f"{PATH}: {written}{sentence}"]


def test_a_tombstone_path_does_not_end_with_the_delimiter() -> None:
    given = {**WRITE, "spec.errors": {"onNullValue": "Write", "tombstonePath": "gone-"}}
    assert spec_errors({**given, "spec.s3.directoryDelimiter": "-"}) == [
        f"{PATH}: gone- starts or ends with spec.s3.directoryDelimiter: remove it there"
    ]


AVRO = {
    "converter": "Avro",
    "keyConverter": "Avro",
    "output": "Avro",
    "envelope": True,
    "registry": {"url": ["https://registry.example.com"]},
}


def test_keys_with_schemas_need_an_object_for_each_schema() -> None:
    given = {"spec.errors": {"onNullValue": "Write"}, "spec.format": AVRO}
    assert spec_errors(given) == [
        "spec.schemaCompatibility: None cannot be used with errors.onNullValue: Write, keyConverter Avro and the "
        "output Avro: each record without a value would close the open objects; use Separate, or keyConverter Bytes"
    ]
    bare = {**AVRO, "schema": {"text": '"long"'}}
    (error,) = spec_errors({**given, "spec.format": bare})
    assert error.endswith("would close the open objects; use keyConverter Bytes")
    accepted({**given, "spec.schemaCompatibility": "Separate"})
    accepted({**given, "spec.format": {**AVRO, "keyConverter": "Text"}})
    accepted({**given, "spec.format": {**AVRO, "output": "Json"}})
