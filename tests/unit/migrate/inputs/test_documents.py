"""Configurations of every form, and input that is none."""

from __future__ import annotations

import json

import pytest

from sink_job.api.errors import InvalidConnector
from sink_job.migrate.inputs.documents import read_configurations

CLASS = "io.confluent.connect.s3.S3SinkConnector"
FLAT = {"connector.class": CLASS, "topics": "flights"}


def test_the_json_of_post_get_and_put_is_recognized() -> None:
    post = {"name": "flights", "config": FLAT, "initial_state": "STOPPED"}
    get = {"name": "flights", "config": {**FLAT, "name": "flights"}, "tasks": [], "type": "sink"}
    for document, state in ((post, "Stopped"), (get, "Running"), ({**FLAT, "name": "flights"}, "Running")):
        (found,) = read_configurations(json.dumps(document))
        assert (found.name, found.state, found.settings["topics"]) == ("flights", state, "flights")


def test_numbers_and_booleans_are_texts_as_they_are_written_and_null_is_unset() -> None:
    (found,) = read_configurations(
        '{"connector.class": "x", "a": 9223372036854775808, "b": true, "c": 1.50, "d": null}'
    )
    assert found.settings == {"connector.class": "x", "a": "9223372036854775808", "b": "true", "c": "1.50"}


def test_properties_are_recognized() -> None:
    (found,) = read_configurations(f"# a comment\nname=flights\nconnector.class={CLASS}\n")
    assert (found.name, found.settings["connector.class"]) == ("flights", CLASS)


def test_a_mapping_of_yaml_is_recognized() -> None:
    (found,) = read_configurations(f'connector.class: {CLASS}\nflush.size: "5"\n')
    assert found.settings == {"connector.class": CLASS, "flush.size": "5"}


STRIMZI = """
apiVersion: kafka.strimzi.io/v1
kind: KafkaConnector
metadata: {name: flights, namespace: kafka, labels: {strimzi.io/cluster: connect}}
spec:
  class: io.confluent.connect.s3.S3SinkConnector
  state: paused
  config: {topics: flights, flush.size: 1000, errors.log.enable: true}
"""
WORKER = """
apiVersion: kafka.strimzi.io/v1
kind: KafkaConnect
metadata: {name: connect}
spec: {bootstrapServers: "kafka:9092", config: {value.converter: X}}
"""


def test_a_resource_of_strimzi_has_name_namespace_and_state() -> None:
    (found,) = read_configurations(STRIMZI)
    assert (found.name, found.namespace, found.state) == ("flights", "kafka", "Paused")
    assert found.settings["flush.size"] == "1000"
    assert found.settings["errors.log.enable"] == "true"


def test_a_worker_in_the_same_file_is_that_of_its_connectors() -> None:
    (found,) = read_configurations(f"{WORKER}---{STRIMZI}")
    assert found.worker == {"value.converter": "X", "bootstrap.servers": "kafka:9092"}


def test_several_documents_and_lists_have_several_connectors() -> None:
    assert [each.name for each in read_configurations(f"{STRIMZI}---{STRIMZI.replace('flights', 'b')}")] == [
        "flights",
        "b",
    ]
    resource = {"kind": "KafkaConnector", "metadata": {"name": "a"}, "spec": {"class": CLASS, "pause": True}}
    (found,) = read_configurations(json.dumps({"kind": "List", "items": [resource, {"kind": "Secret"}]}))
    assert (found.name, found.state) == ("a", "Paused")


def test_a_resource_of_confluent_for_kubernetes_can_have_another_name_of_the_connector() -> None:
    resource = {
        "apiVersion": "platform.confluent.io/v1beta1",
        "kind": "Connector",
        "metadata": {"name": "a", "namespace": "b"},
        "spec": {"name": "Flights", "class": CLASS, "configs": {"topics": "x"}},
        "status": {"connectorState": "STOPPED"},
    }
    (found,) = read_configurations(json.dumps(resource))
    assert (found.name, found.namespace, found.state) == ("Flights", "b", "Stopped")


def test_the_output_of_msk_connect_is_managed_and_has_its_brokers() -> None:
    document = {
        "connectorConfiguration": FLAT,
        "connectorName": "flights",
        "connectorState": "FAILED",
        "kafkaCluster": {"apacheKafkaCluster": {"bootstrapServers": "b:9098"}},
    }
    (found,) = read_configurations(json.dumps(document))
    assert (found.managed, found.worker["bootstrap.servers"]) == ("MSK Connect", "b:9098")
    assert found.remarks == ("The connector is FAILED.",)


def test_the_answer_with_all_connectors_is_recognized() -> None:
    document = {"a": {"info": {"name": "a", "config": FLAT}}, "b": {"info": {"name": "b", "config": FLAT}}}
    assert [each.name for each in read_configurations(json.dumps(document))] == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\ufeff \n", "is empty"),
        ("[]", "line 1, column 1: the input is an array"),
        ('"x"', "is not a property"),
        ("{}", "neither connector.class nor config"),
        ('{"a": {"b": 1}}', "neither connector.class nor config"),
        ('{\n  "a": 1,\n}', "line 3, column 1: invalid JSON"),
        ('{"a": 1', "line 1, column 8: invalid JSON"),
        ('{"connector.class": "x",\n "a": "hunter2",\n "a": "2"}', "line 3, column 2: the key a is there twice"),
        ('{"connector.class": "x", "topics": ["a"]}', "the value of topics is an array"),
        ('{"connector.class": "x", "a": {"b": 1}}', "the value of a is an object"),
        ("<html><body>Sign in</body></html>", "line 1, column 1: the input is HTML"),
        ("a=1\nb=2\n", "no connector.class"),
        ("connector.class=x\na=1\na=2\n", "line 3, column 1: the key a is there twice, first in line 2"),
        ("nothing", "line 1, column 1: the line is not a property"),
        ("nothing here", "the input has no connector.class"),
        ("kind: Secret\n", "has no connector"),
        ("kind: [a\n", "line 2, column 1: invalid YAML"),
        ("kind: KafkaConnector\nkind: KafkaConnector\n", "line 2, column 1: the key kind is there twice"),
        ("{" * 100_000, "invalid JSON"),
        ('{"a":' * 100_000, "input"),
        ("a: &a [*a]\nkind: x\n", "aliases"),
        ("kind: x\na: " + "[" * 5000, "input"),
        ("{}\x00", "invalid JSON"),
    ],
)
def test_input_that_is_no_configuration_has_one_message_without_its_text(text: str, message: str) -> None:
    with pytest.raises(InvalidConnector) as raised:
        read_configurations(text)
    assert message in str(raised.value)
    assert "hunter2" not in str(raised.value)
    assert len(str(raised.value)) < 500


def test_comments_of_json_may_occur_twice() -> None:
    (found,) = read_configurations('{"connector.class": "x", "_comment": "a", "_comment": "b"}')
    assert found.settings["_comment"] == "b"
