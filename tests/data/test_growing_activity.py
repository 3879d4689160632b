"""More and more topic-partitions receive records while one driver runs."""

from __future__ import annotations

from collections import Counter
from functools import partial

import pytest
from pyspark import SparkContext

from devtools.kafka import kafka_broker
from devtools.topics import Record, Topics
from sink_job.api.topic_partition import TopicPartition
from sink_job.engine.types import Columns, Range, stateless
from sink_job.spark.engine import SparkEngine
from tests.support import spark_tasks
from tests.support.spark_fixture import RunningDriver, SparkFixture

pytestmark = [pytest.mark.data, pytest.mark.spark]

LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def test_every_record_is_copied_when_more_partitions_become_active(spark_fixture: SparkFixture, topic: str) -> None:
    spark_fixture.topics.create(topic, partitions=40)
    sink = spark_fixture.sink([topic])
    produced: list[bytes] = []
    with spark_fixture.running(sink) as running:
        for active in (5, 30, 40):
            records = [
                Record(value=b'"%d of %d: %d"' % (number, n, active), partition=n)
                for n in range(active)
                for number in range(10)
            ]
            spark_fixture.topics.produce(topic, records)
            produced += [record.value or b"" for record in records]
            running.wait_until(partial(copied, running, len(produced)), f"the records of {active} partitions")
    assert Counter(line for lines in spark_fixture.values().values() for line in lines) == Counter(produced)


def copied(running: RunningDriver, records: int) -> bool:
    return running.report().totals.objects * 10 == records


def test_readers_need_no_permission_on_a_group(spark: SparkContext, topic: str) -> None:
    rights = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
    }
    with kafka_broker(users={"reader": "reader-word"}, settings=rights) as broker:
        topics = Topics(broker.bootstrap)
        topics.create(topic)
        topics.produce_values(topic, [b"a", b"b"])
        topics.allow("reader", topic)
        login = {
            "bootstrap.servers": broker.sasl_bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{LOGIN_MODULE} required username="reader" password="reader-word";',
        }
        engine = SparkEngine(spark, login)
        tp = TopicPartition(topic, 0)
        got = engine.run(
            ranges={tp: Range(0, 2)}, idle=(), inputs={}, columns=Columns(), factory=stateless(spark_tasks.summary)
        )
        assert got[tp] == b'["%s", "", 2, 0, 1]' % str(tp).encode()
