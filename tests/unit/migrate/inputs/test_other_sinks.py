"""Classes of connectors."""

from __future__ import annotations

import pytest

from sink_job.migrate.inputs.other_sinks import other_class


@pytest.mark.parametrize("name", ["io.confluent.connect.s3.S3SinkConnector", "S3SinkConnector", "S3Sink"])
def test_the_s3_sink_is_known_by_its_class_and_by_its_short_names(name: str) -> None:
    assert other_class(name) is None


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("io.aiven.kafka.connect.s3.AivenKafkaConnectS3SinkConnector", "file.name.template"),
        ("io.lenses.streamreactor.connect.aws.s3.sink.S3SinkConnector", "connect.s3.kcql"),
        ("com.datamountaineer.streamreactor.connect.aws.s3.sink.S3SinkConnector", "connect.s3.kcql"),
        ("org.apache.camel.kafkaconnector.awss3sink.CamelAwss3sinkSinkConnector", "Camel"),
        ("com.cloudera.dim.kafka.connect.s3.S3SinkConnector", "Cloudera"),
        ("S3_SINK", "Confluent Cloud"),
        ("com.redpanda.kafka.connect.s3.S3SinkConnector", "Redpanda"),
        ("io.confluent.connect.s3.source.S3SourceConnector", "source"),
        ("io.confluent.connect.gcs.GcsSinkConnector", "not S3"),
        ("org.apache.iceberg.connect.IcebergSinkConnector", "table"),
        ("io.debezium.connector.postgresql.PostgresSourceConnector", "source"),
        ("com.example.S3SinkConnector", "only the class"),
        ("", "only the class"),
    ],
)
def test_another_connector_has_one_sentence_on_what_differs(name: str, words: str) -> None:
    sentence = other_class(name)
    assert sentence is not None
    assert words in sentence
