"""The tables of a sink."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sink_job.api.errors import ConfigurationError, InvalidSpec
from sink_job.api.parser import load_sink
from sink_job.api.spec import Sink
from sink_job.connect.schema import Field, Schema, SchemaType
from sink_job.ddl.sink_tables import chosen_topics, sink_tables, table_names
from sink_job.ddl.table import ColumnType, Kind, SinkTable, TableColumn

SCHEMA = Schema(SchemaType.STRUCT, name="r", fields=(Field("n", Schema(SchemaType.INT32)),))


def sink_of(**given: Any) -> Sink:
    spec = {
        "kafka": {"bootstrapServers": "kafka:9092", "topics": ["flights", "other.Topic"]},
        "rotation": {"flushSize": 1},
        "s3": {"bucket": "lake", "region": "eu-west-1", **given.pop("s3", {})},
        **given,
    }
    head = {"apiVersion": "s3sink.io/v1alpha1", "kind": "S3Sink", "metadata": {"name": "t"}}
    return load_sink(json.dumps({**head, "spec": spec}))


def table(sink: Sink, schema: Schema | None = None) -> SinkTable:
    (found,) = sink_tables(sink, ["flights"], lambda topic: schema)
    return found


def test_each_topic_is_a_table_with_a_plain_name() -> None:
    sink = sink_of()
    found = list(sink_tables(sink, chosen_topics(sink, None), lambda topic: None))
    assert [(each.topic, each.name, each.prefix) for each in found] == [
        ("flights", "flights", "topics/flights/"),
        ("other.Topic", "other_topic", "topics/other.Topic/"),
    ]


def test_names_of_tables_occur_once() -> None:
    assert table_names(["a.b", "a-b", "a_b"]) == {"a.b": "a_b", "a-b": "a_b_2", "a_b": "a_b_3"}


def test_one_topic_can_be_chosen_and_a_pattern_needs_it() -> None:
    assert chosen_topics(sink_of(), "flights") == ["flights"]
    with pytest.raises(InvalidSpec, match=r"--topic x is not in spec.kafka.topics: flights, other.Topic"):
        chosen_topics(sink_of(), "x")
    pattern = sink_of(kafka={"bootstrapServers": "kafka:9092", "topicsPattern": "f.*"})
    assert chosen_topics(pattern, "flights") == ["flights"]
    with pytest.raises(InvalidSpec, match="--topic is missing"):
        chosen_topics(pattern, None)


def test_json_without_a_schema_has_no_columns_and_a_note() -> None:
    found = table(sink_of())
    assert found.columns is None
    assert "--records FILE" in found.notes[0]
    assert found.gaps == ()


def test_columns_are_those_of_the_schema() -> None:
    found = table(sink_of(format={"converter": "ConnectJson", "output": "Avro"}), SCHEMA)
    assert found.columns == (TableColumn("n", ColumnType(Kind.INT)),)
    assert json.loads(found.avro or "")["fields"] == [{"name": "n", "type": "int"}]
    assert (found.extension, found.codec.value) == (".avro", "None")


def test_containers_need_a_known_schema() -> None:
    with pytest.raises(ConfigurationError, match="neither the ledger nor a registry has one"):
        table(sink_of(format={"converter": "ConnectJson", "output": "Parquet"}))


def test_values_that_are_no_structs_are_a_gap_of_containers() -> None:
    found = table(sink_of(format={"converter": "ConnectJson", "output": "Avro"}), Schema(SchemaType.STRING))
    assert found.gaps == ("records are no structs: they have no columns",)


def test_with_schema_evolution_a_note_names_the_newest_object() -> None:
    sink = sink_of(format={"converter": "ConnectJson", "output": "Avro"}, schemaCompatibility="Backward")
    assert "those of the newest object" in table(sink, SCHEMA).notes[0]


def test_bytes_have_their_separator() -> None:
    sink = sink_of(format={"converter": "Bytes", "output": "Bytes", "bytes": {"separator": "|", "extension": ".txt"}})
    found = table(sink)
    assert (found.separator, found.extension, found.columns) == ("|", ".txt", None)


def test_another_delimiter_of_directories_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"spec.s3.directoryDelimiter is '_'"):
        table(sink_of(s3={"directoryDelimiter": "_"}))


PREFIX = {"topic": "flights", "prefix": "a/b"}


def test_a_table_is_over_the_directory_of_its_topic() -> None:
    assert table(sink_of(s3={"prefixes": [PREFIX]})).prefix == "topics/a/b/flights/"
    assert table(sink_of(s3={"prefixes": [PREFIX], "topicInPath": False})).prefix == "topics/a/b/"


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"s3": {"topicInPath": False}}, "those of topic other.Topic and the ledger"),
        ({"s3": {"topicInPath": False, "topicsDir": ""}}, "those of topic other.Topic and the ledger"),
        ({"s3": {"prefixes": [{"topic": "other.Topic", "prefix": "flights"}]}}, "those of topic other.Topic"),
        (
            {
                "kafka": {"bootstrapServers": "kafka:9092", "topicsPattern": "f.*"},
                "s3": {"prefixes": [{"pattern": "f.*", "prefix": "a"}], "topicInPath": False},
            },
            "those of other topics that spec.kafka.topicsPattern may match",
        ),
    ],
)
def test_a_directory_with_other_objects_is_no_table(given: dict[str, Any], what: str) -> None:
    with pytest.raises(
        ConfigurationError, match=rf"topic flights: below .* are not only its objects, but also {what}:"
    ):
        table(sink_of(**given))
