"""Parsing of manifests: YAML with the semantics of Kubernetes, and messages for invalid text."""

from __future__ import annotations

import json

import pytest

from sink_job.api.errors import InvalidSpec
from sink_job.api.parser import load_sink
from sink_job.api.spec import Sink
from tests.unit.api.manifests import spec_errors

VALID = """
apiVersion: s3sink.io/v1alpha1
kind: S3Sink
metadata: {name: flights}
spec:
  kafka: {bootstrapServers: "localhost:9092", topics: [flights]}
  partitioner: {type: Hourly, timezone: +10:00, locale: no}
  rotation: {flushSize: 90, scheduleInterval: 1h30m}
  s3: {bucket: archive, partSize: 6Mi}
"""


def errors_of(text: str) -> list[str]:
    with pytest.raises(InvalidSpec) as raised:
        load_sink(text)
    return list(raised.value.errors)


def valid_with(line: str) -> Sink:
    return load_sink(f"{VALID}  {line}\n")


def test_durations_are_milliseconds_and_sizes_are_bytes() -> None:
    spec = load_sink(VALID).spec
    assert spec.rotation.schedule_interval == 5_400_000
    assert spec.s3.part_size == 6 * 1024 * 1024


def test_a_time_zone_offset_is_text_not_a_number_of_seconds() -> None:
    assert load_sink(VALID).spec.partitioner.timezone == "+10:00"


def test_no_is_text_not_false() -> None:
    assert load_sink(VALID).spec.partitioner.locale == "no"


def test_a_date_is_text() -> None:
    assert valid_with("restartNonce: 2025-11-03").spec.restart_nonce == "2025-11-03"


def test_a_number_with_leading_zeros_is_text() -> None:
    assert errors_of(VALID + "  rounds: {maxRecords: 0100}") == ['spec.rounds.maxRecords: "0100" is not a whole number']


def test_an_empty_field_gets_its_default() -> None:
    assert valid_with("errors:\n    tolerance:\n").spec.errors.tolerance == "None"


def test_an_empty_required_field_is_missing() -> None:
    assert spec_errors({"spec.s3.bucket": None}) == [
        "spec.s3.bucket: is missing: bucket for the objects, for example flights-archive"
    ]


def test_an_empty_property_is_an_error() -> None:
    assert spec_errors({"spec.kafka.properties": {"client.id": None}}) == [
        "spec.kafka.properties[client.id]: null is not text"
    ]


def test_an_empty_list_item_is_an_error() -> None:
    assert spec_errors({"spec.kafka.topics": ["a", None]}) == ["spec.kafka.topics[1]: null is not text"]


def test_anchors_and_merge_keys_are_supported() -> None:
    text = VALID + "  rounds: &it {minBytes: 1Mi, maxBytes: 2Mi}\n  driver: {podTemplate: {x: {<<: *it, maxBytes: 3}}}"
    assert load_sink(text).spec.driver.pod_template == {"x": {"minBytes": "1Mi", "maxBytes": 3}}


def test_a_single_document_may_start_with_dashes() -> None:
    assert load_sink(f"# our sink\n---\n{VALID}---\n").name == "flights"


def test_every_duplicate_key_is_reported_with_both_lines() -> None:
    twice = VALID + "  rotation: {flushSize: 1, flushSize: 2}\n"
    assert errors_of(twice) == [
        "line 10: rotation is a duplicate of the key in line 8",
        "line 10: flushSize is a duplicate of the key in line 10",
    ]


def test_invalid_yaml_is_reported_with_line_and_column() -> None:
    assert errors_of("apiVersion: s3sink.io/v1alpha1\nspec: {kafka: [}\n") == [
        "line 2, column 16: invalid YAML: expected the node content, but found '}'"
    ]


def test_a_tab_is_reported_with_line_and_column() -> None:
    assert errors_of("spec:\n\tkafka: x\n") == [
        "line 2, column 1: invalid YAML: found character '\\t' that cannot start any token"
    ]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("password: *hunter2", id="an alias"),
        pytest.param("password: !hunter2 x", id="a tag"),
        pytest.param("password: !hunter2!x y", id="a tag handle"),
        pytest.param("password: !!python/object:hunter2 {}", id="a Python object"),
        pytest.param("? [hunter2]\n: 4", id="a key that is a list"),
    ],
)
def test_an_error_in_yaml_does_not_quote_the_text(text: str) -> None:
    assert "hunter2" not in "".join(errors_of(text))


def test_an_empty_file_is_rejected() -> None:
    assert errors_of("# no manifest\n") == ["the manifest is empty: it must contain an S3Sink"]


def test_several_documents_are_rejected() -> None:
    assert errors_of(f"{VALID}---{VALID}") == ["the manifest contains 2 documents: use one S3Sink per manifest"]


def test_a_list_is_rejected() -> None:
    assert errors_of("- flights") == [
        "the manifest is not a mapping: set apiVersion, kind, metadata and spec",
    ]


def test_deep_nesting_is_rejected() -> None:
    assert errors_of("[" * 1_000) == ["the manifest is nested too deeply"]


def test_an_anchor_that_contains_itself_is_rejected() -> None:
    assert errors_of(VALID + "  errors: &it {a: {b: {c: *it}}}") == ["the manifest is nested too deeply"]


def test_aliases_that_multiply_the_manifest_are_rejected() -> None:
    levels = [f"x{n}: &x{n} {{{', '.join(f'k{k}: *x{n - 1}' for k in range(9))}}}\n" for n in range(1, 9)]
    assert errors_of("x0: &x0 {k: v}\n" + "".join(levels) + VALID.lstrip()) == [
        "the aliases (*) make the manifest larger than 1,000,000 keys and values"
    ]


@pytest.mark.parametrize("value", ["9" * 5_000, "!!int x", "!!bool x", "!!float x"])
def test_a_value_that_its_tag_does_not_allow_is_rejected_with_its_place(value: str) -> None:
    (error,) = errors_of(f"a: {value}")
    assert error == "line 1, column 4: invalid YAML: it contains a tag (!) or a value that is not allowed here"


def test_another_kind_of_object_is_rejected_without_further_errors() -> None:
    assert errors_of("apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 1}") == [
        "apiVersion: apps/v1 is not supported: the only supported value is s3sink.io/v1alpha1",
        "kind: Deployment is not supported: the only supported value is S3Sink",
    ]


def test_a_missing_version_and_kind_are_reported_with_their_values() -> None:
    assert errors_of("spec: {}") == [
        "apiVersion: is missing: set apiVersion: s3sink.io/v1alpha1",
        "kind: is missing: set kind: S3Sink",
    ]


def test_a_misspelled_field_gets_a_suggestion() -> None:
    assert spec_errors({"spec.s3.partsize": "6Mi"}) == [
        "spec.s3.partsize: is not a field of spec.s3; did you mean partSize?"
    ]


def test_a_field_in_snake_case_gets_a_suggestion() -> None:
    assert spec_errors({"spec.s3.part_size": "6Mi"}) == [
        "spec.s3.part_size: is not a field of spec.s3; did you mean partSize?"
    ]


def test_a_field_in_the_wrong_section_gets_a_suggestion() -> None:
    assert spec_errors({"spec.s3.maxOpenObjects": 5}) == [
        "spec.s3.maxOpenObjects: is not a field of spec.s3; did you mean spec.rotation.maxOpenObjects?"
    ]


def test_a_connector_key_gets_the_equivalent_field_as_suggestion() -> None:
    spec = {"kafka": {"bootstrapServers": "a:1", "topics": ["a"]}, "s3": {"bucket": "archive"}, "flush.size": 5}
    assert spec_errors({"spec": spec}) == [
        "spec[flush.size]: is not a field of spec; did you mean spec.rotation.flushSize?"
    ]


def test_an_unknown_field_without_a_similar_one_gets_no_suggestion() -> None:
    assert spec_errors({"spec.s3.zebra": 1}) == ["spec.s3.zebra: is not a field of spec.s3"]


def test_all_errors_are_reported_at_once() -> None:
    text = """
apiVersion: s3sink.io/v1alpha1
kind: S3Sink
metadata: {name: flights}
spec:
  kafka: {topics: [a b], properties: {group.id: x}}
  format: {output: Avro}
  partitioner: {type: Time, timezone: Mars}
  rotation: {flush: 4, scheduleInterval: 2d}
  rounds: {minBytes: 2Gi}
  s3: {bucket: archive, partSize: 4Mi, partSize: 3Mi}
  errors: {}
  errors: {onNullValue: Write}
"""
    assert errors_of(text) == [
        "line 13: errors is a duplicate of the key in line 12",
        "line 11: partSize is a duplicate of the key in line 11",
        "spec.kafka.bootstrapServers: is missing: bootstrap brokers: host:port, separated by commas, for example "
        "kafka.example.com:9092",
        'spec.kafka.topics[0]: "a b" is not a valid topic name: Kafka allows letters, digits, . _ and -',
        "spec.partitioner.timezone: Mars is not a known time zone: use an IANA name or ±hh:mm, such as Europe/Berlin "
        "or "
        "+02:00",
        "spec.rotation.scheduleInterval: 2d is above the maximum of 1d",
        "spec.rotation.flush: is not a field of spec.rotation; did you mean flushSize?",
        "spec.s3.partSize: 3Mi is below S3's minimum of 5Mi",
        "spec.kafka.properties[group.id]: cannot be set here: use spec.kafka.groupId",
        "spec.partitioner.duration: is missing: the type Time needs it, for example 1h",
        "spec.partitioner.pathFormat: is missing: the type Time needs it, for example 'year'=YYYY/'month'=MM/'day'=dd",
        "spec.format.output: Avro needs records with a schema, and those of the converter Json have none: use the "
        "converter Avro, Protobuf or JsonSchema with registry or schema, ConnectJson, or Json with schema or "
        "inference",
        "spec.errors.onNullValue: Write needs spec.format.envelope: true: a record without a value has only its key, "
        "headers and origin to write; set that, or use Ignore or Fail",
        "spec.rounds.minBytes: 2Gi is above spec.rounds.maxBytes, 512Mi",
    ]


CONNECTOR = {"connector.class": "io.confluent.connect.s3.S3SinkConnector", "topics": "flights", "flush.size": 90}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(CONNECTOR),
        json.dumps({"name": "flights", "config": CONNECTOR}),
        "# flights\n" + "".join(f"{name}={value}\n" for name, value in {"name": "flights", **CONNECTOR}.items()),
        "".join(f"{name}={value}\n" for name, value in CONNECTOR.items()) + "path.format='day': dd\n",
        json.dumps({"kind": "KafkaConnector", "spec": {"config": {"topics": "flights"}}}),
    ],
    ids=["mapping", "REST", "properties", "properties that are not YAML", "Strimzi"],
)
def test_a_connector_configuration_is_recognized(text: str) -> None:
    assert errors_of(text) == [
        "this is a configuration of Kafka Connect, not an S3Sink: s3sink convert makes a manifest of it "
        "(docs/migrating.md)"
    ]
