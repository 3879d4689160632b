"""Text to document: YAML as Kubernetes means it, and what the user reads when it is none."""

from __future__ import annotations

import json

import pytest

from sink_job.api.errors import InvalidSpec
from sink_job.api.spec import Sink, load_sink
from tests.unit.api.manifests import mistakes

RIGHT = """
apiVersion: s3sink.io/v1alpha1
kind: S3Sink
metadata: {name: flights}
spec:
  kafka: {bootstrapServers: "localhost:9092", topics: [flights]}
  partitioner: {type: Hourly, timezone: +10:00, locale: no}
  rotation: {flushSize: 90, scheduleInterval: 1h30m}
  s3: {bucket: archive, partSize: 6Mi}
"""


def refused(text: str) -> list[str]:
    with pytest.raises(InvalidSpec) as raised:
        load_sink(text)
    return list(raised.value.mistakes)


def right_with(line: str) -> Sink:
    return load_sink(f"{RIGHT}  {line}\n")


def test_durations_become_milliseconds_and_sizes_bytes() -> None:
    spec = load_sink(RIGHT).spec
    assert spec.rotation.schedule_interval == 5_400_000
    assert spec.s3.part_size == 6 * 1024 * 1024


def test_an_offset_of_ten_hours_is_no_number_of_seconds() -> None:
    assert load_sink(RIGHT).spec.partitioner.timezone == "+10:00"


def test_norwegian_is_a_language() -> None:
    assert load_sink(RIGHT).spec.partitioner.locale == "no"


def test_what_looks_like_a_date_is_text() -> None:
    assert right_with("restartNonce: 2025-11-03").spec.restart_nonce == "2025-11-03"


def test_a_number_with_leading_zeros_is_no_number() -> None:
    assert refused(RIGHT + "  rounds: {maxRecords: 0100}") == ['spec.rounds.maxRecords: "0100" is not a whole number']


def test_what_is_left_empty_counts_as_not_written() -> None:
    assert right_with("errors:\n    tolerance:\n").spec.errors.tolerance == "None"


def test_a_required_field_that_is_left_empty_is_missing() -> None:
    assert mistakes({"spec.s3.bucket": None}) == [
        "spec.s3.bucket: is missing: bucket of the objects, such as flights-archive"
    ]


def test_a_property_that_is_left_empty_is_a_mistake() -> None:
    assert mistakes({"spec.kafka.properties": {"client.id": None}}) == [
        "spec.kafka.properties[client.id]: null is not text"
    ]


def test_an_item_that_is_left_empty_is_a_mistake() -> None:
    assert mistakes({"spec.kafka.topics": ["a", None]}) == ["spec.kafka.topics[1]: null is not text"]


def test_anchors_and_merge_keys_may_be_used() -> None:
    text = RIGHT + "  rounds: &it {minBytes: 1Mi, maxBytes: 2Mi}\n  driver: {podTemplate: {x: {<<: *it, maxBytes: 3}}}"
    assert load_sink(text).spec.driver.pod_template == {"x": {"minBytes": "1Mi", "maxBytes": 3}}


def test_a_single_document_may_begin_with_dashes() -> None:
    assert load_sink(f"# our sink\n---\n{RIGHT}---\n").name == "flights"


def test_every_key_that_is_given_twice_is_named_with_both_lines() -> None:
    twice = RIGHT + "  rotation: {flushSize: 1, flushSize: 2}\n"
    assert refused(twice) == [
        "line 10: rotation was already given in line 8",
        "line 10: flushSize was already given in line 10",
    ]


def test_broken_yaml_is_answered_with_line_and_column() -> None:
    assert refused("apiVersion: s3sink.io/v1alpha1\nspec: {kafka: [}\n") == [
        "line 2, column 16: this is not YAML: expected the node content, but found '}'"
    ]


def test_a_tab_is_answered_with_line_and_column() -> None:
    assert refused("spec:\n\tkafka: x\n") == [
        "line 2, column 1: this is not YAML: found character '\\t' that cannot start any token"
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
def test_broken_yaml_is_never_quoted(text: str) -> None:
    assert "hunter2" not in "".join(refused(text))


def test_an_empty_file_is_refused() -> None:
    assert refused("# nothing yet\n") == ["the manifest is empty: write an S3Sink"]


def test_several_documents_are_refused() -> None:
    assert refused(f"{RIGHT}---{RIGHT}") == ["the manifest holds 2 documents: give one S3Sink at a time"]


def test_a_list_is_refused() -> None:
    assert refused("- flights") == [
        "the manifest is not a mapping: write apiVersion, kind, metadata and spec",
    ]


def test_endless_nesting_is_refused() -> None:
    assert refused("[" * 1_000) == ["the manifest is nested too deeply"]


def test_an_anchor_that_holds_itself_is_refused() -> None:
    assert refused(RIGHT + "  errors: &it {a: {b: {c: *it}}}") == ["the manifest is nested too deeply"]


def test_another_kind_of_object_is_refused_without_further_noise() -> None:
    assert refused("apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 1}") == [
        "apiVersion: apps/v1 is not s3sink.io/v1alpha1, the only one that is read here",
        "kind: Deployment is not S3Sink, the only one that is read here",
    ]


def test_a_manifest_without_version_and_kind_is_told_what_to_write() -> None:
    assert refused("spec: {}") == [
        "apiVersion: is missing: write apiVersion: s3sink.io/v1alpha1",
        "kind: is missing: write kind: S3Sink",
    ]


def test_a_misspelt_field_is_answered_with_the_nearest() -> None:
    assert mistakes({"spec.s3.partsize": "6Mi"}) == [
        "spec.s3.partsize: is not a field of spec.s3; did you mean partSize?"
    ]


def test_a_field_in_snake_case_is_answered_with_its_name() -> None:
    assert mistakes({"spec.s3.part_size": "6Mi"}) == [
        "spec.s3.part_size: is not a field of spec.s3; did you mean partSize?"
    ]


def test_a_field_in_the_wrong_section_is_answered_with_the_right_one() -> None:
    assert mistakes({"spec.s3.maxOpenObjects": 5}) == [
        "spec.s3.maxOpenObjects: is not a field of spec.s3; did you mean spec.rotation.maxOpenObjects?"
    ]


def test_a_key_of_the_connector_is_answered_with_the_field_that_stands_for_it() -> None:
    spec = {"kafka": {"bootstrapServers": "a:1", "topics": ["a"]}, "s3": {"bucket": "archive"}, "flush.size": 5}
    assert mistakes({"spec": spec}) == [
        "spec[flush.size]: is not a field of spec; did you mean spec.rotation.flushSize?"
    ]


def test_a_field_that_resembles_nothing_is_refused_without_a_guess() -> None:
    assert mistakes({"spec.s3.zebra": 1}) == ["spec.s3.zebra: is not a field of spec.s3"]


def test_every_mistake_is_reported_at_once() -> None:
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
    assert refused(text) == [
        "line 13: errors was already given in line 12",
        "line 11: partSize was already given in line 11",
        "spec.kafka.bootstrapServers: is missing: bootstrap brokers: host:port, separated by commas, such as "
        "kafka.example.com:9092",
        'spec.kafka.topics[0]: "a b" is not a topic: Kafka allows letters, digits, . _ and -',
        "spec.partitioner.timezone: Mars is not a time zone: write an IANA name or ±hh:mm, such as Europe/Berlin or "
        "+02:00",
        "spec.rotation.scheduleInterval: 2d is above the maximum of 1d",
        "spec.rotation.flush: is not a field of spec.rotation; did you mean flushSize?",
        "spec.s3.partSize: 3Mi is below S3's minimum of 5Mi",
        "spec.kafka.properties[group.id]: cannot be set here: use spec.kafka.groupId",
        "spec.partitioner.duration: is missing: the type Time needs it, such as 1h",
        "spec.partitioner.pathFormat: is missing: the type Time needs it, such as 'year'=YYYY/'month'=MM/'day'=dd",
        "spec.rounds.minBytes: 2Gi is above spec.rounds.maxBytes, 512Mi",
        "spec.format.output: Avro is not supported by this version; supported values: Json, Bytes",
        "spec.errors.onNullValue: Write is not supported by this version; supported values: Fail, Ignore",
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
    ids=["mapping", "REST", "properties", "properties that are no YAML", "Strimzi"],
)
def test_a_connector_s_configuration_is_recognised(text: str) -> None:
    assert refused(text) == [
        "this is a configuration of Kafka Connect, not an S3Sink: docs/migrating.md has the table of what each of its "
        "keys becomes"
    ]
