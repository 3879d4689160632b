"""Temporary store failures, broker restarts, clocks that go back, and termination during an upload.

Also connections to servers with private certificates and logins. test_cli_errors has the messages at the end of the
command.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from devtools import bucket_listing
from devtools.certificates import self_signed
from devtools.faults.s3_proxy import FaultProxy, Hold, S3ErrorReply
from devtools.faults.s3_requests import S3Request, kind
from devtools.kafka import KafkaBroker, kafka_broker
from devtools.s3 import S3Server, s3_server
from devtools.sink_process import SinkCommand, local_spec, manifest
from devtools.topics import Topics
from sink_job.api.errors import ConfigurationError, InvalidCredentials, TransientError
from tests.conftest import SinkFactory
from tests.support.sink_fixture import SinkFixture
from tests.support.spark_fixture import PUBLISH_ALL, UNTIL_CAUGHT_UP, SparkFixture
from tests.support.synthetic_log import SyntheticLog

pytestmark = pytest.mark.data


def values(count: int, *, start: int = 0) -> list[bytes]:
    """Records that contain their number."""
    return [b'{"n":%d}' % n for n in range(start, start + count)]


def in_objects(spark_fixture: SparkFixture) -> list[bytes]:
    """The records in all visible objects, in the order of their keys."""
    return [line for lines in spark_fixture.values().values() for line in lines]


def beyond_the_start(request: S3Request) -> bool:
    """Requests of rounds, without those of the start-up probe."""
    return "/probe/" not in request.key and "/topics/" not in request.key


# -- the store -------------------------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.parametrize(
    "answer", [S3ErrorReply(503, "SlowDown"), S3ErrorReply(500, "InternalError")], ids=lambda a: a.code
)
def test_a_temporary_store_failure_delays_the_run_and_changes_nothing(
    spark_fixture: SparkFixture, s3_proxy: FaultProxy, topic: str, answer: S3ErrorReply
) -> None:
    spark_fixture.topics.create(topic, partitions=2)
    for partition in range(2):
        spark_fixture.topics.produce_values(topic, values(25), partition=partition)
    sink = replace(spark_fixture, endpoint=s3_proxy.endpoint).sink([topic])
    with s3_proxy.when(beyond_the_start, answer, nth=12, times=12) as rule:
        spark_fixture.run(sink, PUBLISH_ALL)
        assert len(rule.fired) == 12
    assert in_objects(spark_fixture) == values(25) * 2
    assert spark_fixture.committed(sink, topic) == {0: 25, 1: 25}
    assert bucket_listing.uploads(spark_fixture.s3.client(), spark_fixture.bucket) == {}


@pytest.mark.spark
def test_a_run_that_ends_after_repeated_store_failures_resumes_without_loss(
    spark_fixture: SparkFixture, s3_proxy: FaultProxy, topic: str
) -> None:
    spark_fixture.topics.create(topic)
    spark_fixture.topics.produce_values(topic, values(25))
    impatient = replace(spark_fixture, endpoint=s3_proxy.endpoint, max_elapsed_s=0.5)
    sink = impatient.sink([topic])
    with (
        s3_proxy.when(kind("UploadPart", key="+0+"), S3ErrorReply(503, "SlowDown"), times=None),
        pytest.raises(
            TransientError, match=rf"s3://{spark_fixture.bucket}/.*: UploadPart failed for \d+ s: SlowDown"
        ) as error,
    ):
        impatient.run(sink, PUBLISH_ALL)
    assert error.value.exit_code == 75
    assert spark_fixture.keys() == []
    spark_fixture.run(sink, PUBLISH_ALL)
    assert in_objects(spark_fixture) == values(25)
    assert spark_fixture.committed(sink, topic) == {0: 25}


# -- the broker ------------------------------------------------------------------------------------------------------

JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required username='alice' password='{password}';"


@pytest.fixture(scope="module")
def own_kafka() -> Iterator[KafkaBroker]:
    """A broker for this module that tests can kill. Its second listener requires a login."""
    with kafka_broker(users={"alice": "wonderland"}) as broker:
        yield broker


@pytest.fixture
def own_kafka_fixture(spark_fixture: SparkFixture, own_kafka: KafkaBroker) -> SparkFixture:
    return replace(
        spark_fixture,
        topics=Topics(own_kafka.bootstrap),
        bootstrap=own_kafka.bootstrap,
        kafka_timeout_ms=50_000,
        discovery_interval_ms=500,
    )


@pytest.mark.spark
def test_reading_continues_without_loss_after_a_broker_restart(
    own_kafka_fixture: SparkFixture, own_kafka: KafkaBroker, topic: str
) -> None:
    spark_fixture = own_kafka_fixture
    spark_fixture.topics.create(topic)
    spark_fixture.topics.produce_values(topic, values(10))
    sink = spark_fixture.sink([topic])
    with spark_fixture.running(sink) as running:
        running.wait_until(lambda: spark_fixture.committed(sink, topic) == {0: 10}, "the first records")
        own_kafka.kill()
        own_kafka.start()
        topics = Topics(own_kafka.bootstrap)  # a new client: the previous one reconnects slowly
        topics.produce_values(topic, values(10, start=10))
        running.wait_until(lambda: len(spark_fixture.keys()) == 2, "the records after it")
        running.wait_until(lambda: topics.committed(sink.group_id, topic) == {0: 20}, "the commit")
    assert in_objects(spark_fixture) == values(20)


@pytest.mark.spark
def test_the_reader_and_the_admin_client_log_in_with_the_same_properties(
    own_kafka_fixture: SparkFixture, own_kafka: KafkaBroker, topic: str
) -> None:
    own_kafka_fixture.topics.create(topic)
    own_kafka_fixture.topics.produce_values(topic, values(10))
    spark_fixture = replace(own_kafka_fixture, bootstrap=own_kafka.sasl_bootstrap)
    sink = spark_fixture.sink(
        [topic],
        kafka={
            "properties": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
            "propertySecrets": [{"name": "sasl.jaas.config", "secret": "login", "key": "jaas"}],
        },
    )
    login = spark_fixture.folder / "secrets" / "login"
    login.mkdir(parents=True)
    (login / "jaas").write_text(JAAS.format(password="looking-glass"))
    with pytest.raises(InvalidCredentials, match="authentication failed") as error:
        spark_fixture.run(sink, UNTIL_CAUGHT_UP)
    assert "looking-glass" not in str(error.value)
    (login / "jaas").write_text(JAAS.format(password="wonderland"))
    spark_fixture.run(sink, UNTIL_CAUGHT_UP)
    assert in_objects(spark_fixture) == values(10)
    assert spark_fixture.committed(sink, topic) == {0: 10}


# -- TLS -------------------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_a_store_with_a_private_certificate_is_trusted_only_with_the_secret(
    spark_fixture: SparkFixture, topic: str, tmp_path: Path
) -> None:
    authority = tmp_path / "secrets" / "store-ca"
    authority.mkdir(parents=True)
    spark_fixture.topics.create(topic)
    spark_fixture.topics.produce_values(topic, values(10))
    with s3_server(certificate=self_signed(authority)) as server:
        server.client().create_bucket(Bucket=spark_fixture.bucket)
        spark_fixture = replace(spark_fixture, s3=server)
        with pytest.raises(ConfigurationError, match="certificate"):
            spark_fixture.run(spark_fixture.sink([topic]), UNTIL_CAUGHT_UP)
        sink = spark_fixture.sink([topic], s3={"caSecret": {"secret": "store-ca", "key": "tls.crt"}})
        spark_fixture.run(sink, UNTIL_CAUGHT_UP)
        assert in_objects(spark_fixture) == values(10)


@pytest.mark.spark
def test_brokers_with_a_private_certificate_are_trusted_only_if_configured(
    own_kafka_fixture: SparkFixture, topic: str, tmp_path: Path
) -> None:
    secrets = own_kafka_fixture.folder / "secrets" / "kafka"
    secrets.mkdir(parents=True)
    (secrets / "jaas").write_text(JAAS.format(password="wonderland"))
    with kafka_broker(users={"alice": "wonderland"}, certificate=self_signed(tmp_path)) as broker:
        topics = Topics(broker.bootstrap)
        topics.create(topic)
        topics.produce_values(topic, values(10))
        spark_fixture = replace(own_kafka_fixture, bootstrap=broker.sasl_bootstrap, topics=topics)
        properties = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
        jaas = {"name": "sasl.jaas.config", "secret": "kafka", "key": "jaas"}
        with pytest.raises(InvalidCredentials, match="TLS handshake failed"):
            spark_fixture.run(
                spark_fixture.sink([topic], kafka={"properties": properties, "propertySecrets": [jaas]}),
                UNTIL_CAUGHT_UP,
            )
        (secrets / "ca.crt").write_bytes((tmp_path / "tls.crt").read_bytes())
        trusted = {**properties, "ssl.truststore.type": "PEM"}
        authority = {"name": "ssl.truststore.certificates", "secret": "kafka", "key": "ca.crt"}
        sink = spark_fixture.sink([topic], kafka={"properties": trusted, "propertySecrets": [jaas, authority]})
        spark_fixture.run(sink, UNTIL_CAUGHT_UP)
        assert in_objects(spark_fixture) == values(10)
        assert spark_fixture.committed(sink, topic) == {0: 10}


# -- the clock -------------------------------------------------------------------------------------------------------


def test_a_clock_that_goes_back_does_not_repeat_a_round(s3: S3Server, tmp_path: Path) -> None:
    sink_fixture = SinkFixture.new(s3.endpoint, tmp_path)
    noon, hour = 1_700_049_600_000, 3_600_000
    hourly = {
        "partitioner": {"type": "Hourly", "timezone": "UTC"},
        "rotation": {"scheduleInterval": "1h"},
    }
    sink_fixture.run(SyntheticLog(records=5), UNTIL_CAUGHT_UP, spec=hourly, clock=lambda: noon)
    sink_fixture.run(SyntheticLog(records=10), UNTIL_CAUGHT_UP, spec=hourly, clock=lambda: noon - 2 * hour)
    sink_fixture.run(SyntheticLog(records=15), PUBLISH_ALL, spec=hourly, clock=lambda: noon + hour)
    path = "topics/log/year=2023/month=11/day=15/hour="
    assert {key: sink_fixture.offsets(key) for key in sink_fixture.contents()} == {
        f"{path}12/log+0+0000000000.json": list(range(10)),
        f"{path}13/log+0+0000000010.json": list(range(10, 15)),
    }


# -- a stop ----------------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_after_sigterm_during_an_upload_the_run_exits_with_0_and_the_next_run_is_exact(
    kafka: KafkaBroker,
    topics: Topics,
    topic: str,
    s3: S3Server,
    bucket: str,
    s3_proxy: FaultProxy,
    sink_here: SinkFactory,
) -> None:
    topics.create(topic)
    topics.produce_values(topic, values(25))
    spec = local_spec(
        bootstrap=kafka.bootstrap,
        topics=[topic],
        endpoint=s3_proxy.endpoint,
        bucket=bucket,
        rotation={"flushSize": 10},
    )
    sink = sink_here(manifest("stopped", spec))
    process = sink.start("run")
    hold = Hold()
    rule = s3_proxy.when(kind("UploadPart", key="+0+"), hold)
    SinkCommand.wait_for(lambda: bool(rule.fired), "an upload", process, seconds=300)
    os.kill(process.pid, signal.SIGTERM)
    assert process.wait(30) == 0, process.log
    hold.release.set()
    assert bucket_listing.objects(s3.client(), bucket) == {}
    sink.catch_up()
    lines = [
        line
        for key in bucket_listing.objects(s3.client(), bucket)
        for line in bucket_listing.lines(s3.client(), bucket, key)
    ]
    assert [json.loads(line)["n"] for line in lines] == list(range(25))
    assert bucket_listing.uploads(s3.client(), bucket) == {}
