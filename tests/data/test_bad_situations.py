"""Stores that fail for a while, brokers that go and come back, clocks that go back, a stop in the middle of an upload.

And the ways to servers that have a certificate of their own or want a login. What the user reads when the command ends
is in test_cli_errors.
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
from devtools.faults.s3_proxy import Answer, FaultProxy, Hold
from devtools.faults.s3_requests import Request, kind
from devtools.kafka import KafkaBroker, kafka_broker
from devtools.s3 import S3Server, s3_server
from devtools.sink_process import Sink, local_spec, manifest
from devtools.topics import Topics
from sink_job.api.errors import ConfigurationError, InvalidCredentials, TransientError
from tests.conftest import SinkFactory
from tests.support.sink_fixture import Place
from tests.support.spark_fixture import ALL, SOON, Site
from tests.support.synthetic_log import FunctionLog

pytestmark = pytest.mark.data


def values(count: int, *, start: int = 0) -> list[bytes]:
    """Records that tell which they are."""
    return [b'{"n":%d}' % n for n in range(start, start + count)]


def in_objects(site: Site) -> list[bytes]:
    """The records in all visible objects, in the order of their keys."""
    return [line for lines in site.values().values() for line in lines]


def beyond_the_start(request: Request) -> bool:
    """Requests of rounds, not those that try out the store."""
    return "/probe/" not in request.key and "/topics/" not in request.key


# -- the store -----------------------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.parametrize("answer", [Answer(503, "SlowDown"), Answer(500, "InternalError")], ids=lambda a: a.code)
def test_a_store_that_fails_for_a_while_delays_and_changes_nothing(
    site: Site, s3_proxy: FaultProxy, topic: str, answer: Answer
) -> None:
    site.topics.create(topic, partitions=2)
    for partition in range(2):
        site.topics.produce_values(topic, values(25), partition=partition)
    sink = replace(site, endpoint=s3_proxy.endpoint).sink([topic])
    with s3_proxy.when(beyond_the_start, answer, nth=12, times=12) as rule:
        site.run(sink, ALL)
        assert len(rule.fired) == 12
    assert in_objects(site) == values(25) * 2
    assert site.committed(sink, topic) == {0: 25, 1: 25}
    assert bucket_listing.uploads(site.s3.client(), site.bucket) == {}


@pytest.mark.spark
def test_a_store_that_keeps_failing_ends_the_run_which_then_goes_on_without_loss(
    site: Site, s3_proxy: FaultProxy, topic: str
) -> None:
    site.topics.create(topic)
    site.topics.produce_values(topic, values(25))
    impatient = replace(site, endpoint=s3_proxy.endpoint, patience_s=0.5)
    sink = impatient.sink([topic])
    with (
        s3_proxy.when(kind("UploadPart", key="+0+"), Answer(503, "SlowDown"), times=None),
        pytest.raises(TransientError, match=rf"s3://{site.bucket}/.*: UploadPart failed for \d+ s: SlowDown") as error,
    ):
        impatient.run(sink, ALL)
    assert error.value.exit_code == 75
    assert site.keys() == []
    site.run(sink, ALL)
    assert in_objects(site) == values(25)
    assert site.committed(sink, topic) == {0: 25}


# -- the broker ----------------------------------------------------------------------------------------------------

JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule required username='alice' password='{password}';"


@pytest.fixture(scope="module")
def own_kafka() -> Iterator[KafkaBroker]:
    """A broker of this file's own, which can be killed, with a second listener for those who log in."""
    with kafka_broker(users={"alice": "wonderland"}) as broker:
        yield broker


@pytest.fixture
def own_site(site: Site, own_kafka: KafkaBroker) -> Site:
    return replace(
        site, topics=Topics(own_kafka.bootstrap), bootstrap=own_kafka.bootstrap, kafka_timeout_ms=50_000, look_every=500
    )


@pytest.mark.spark
def test_a_broker_that_comes_back_is_read_on_without_loss(own_site: Site, own_kafka: KafkaBroker, topic: str) -> None:
    site = own_site
    site.topics.create(topic)
    site.topics.produce_values(topic, values(10))
    sink = site.sink([topic])
    with site.running(sink) as running:
        running.wait_until(lambda: site.committed(sink, topic) == {0: 10}, "the first records")
        own_kafka.kill()
        own_kafka.start()
        topics = Topics(own_kafka.bootstrap)  # a client of its own: the one before is slow to find its broker again
        topics.produce_values(topic, values(10, start=10))
        running.wait_until(lambda: len(site.keys()) == 2, "the records after it")
        running.wait_until(lambda: topics.committed(sink.group_id, topic) == {0: 20}, "the commit")
    assert in_objects(site) == values(20)


@pytest.mark.spark
def test_one_set_of_properties_logs_in_the_reader_and_the_admin_client(
    own_site: Site, own_kafka: KafkaBroker, topic: str
) -> None:
    own_site.topics.create(topic)
    own_site.topics.produce_values(topic, values(10))
    site = replace(own_site, bootstrap=own_kafka.sasl_bootstrap)
    sink = site.sink(
        [topic],
        kafka={
            "properties": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
            "propertySecrets": [{"name": "sasl.jaas.config", "secret": "login", "key": "jaas"}],
        },
    )
    login = site.folder / "secrets" / "login"
    login.mkdir(parents=True)
    (login / "jaas").write_text(JAAS.format(password="looking-glass"))
    with pytest.raises(InvalidCredentials, match="authentication failed") as error:
        site.run(sink, SOON)
    assert "looking-glass" not in str(error.value)
    (login / "jaas").write_text(JAAS.format(password="wonderland"))
    site.run(sink, SOON)
    assert in_objects(site) == values(10)
    assert site.committed(sink, topic) == {0: 10}


# -- TLS -----------------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_a_store_with_a_certificate_of_its_own_is_trusted_through_the_secret_and_only_so(
    site: Site, topic: str, tmp_path: Path
) -> None:
    authority = tmp_path / "secrets" / "store-ca"
    authority.mkdir(parents=True)
    site.topics.create(topic)
    site.topics.produce_values(topic, values(10))
    with s3_server(certificate=self_signed(authority)) as server:
        server.client().create_bucket(Bucket=site.bucket)
        site = replace(site, s3=server)
        with pytest.raises(ConfigurationError, match="certificate"):
            site.run(site.sink([topic]), SOON)
        sink = site.sink([topic], s3={"caSecret": {"secret": "store-ca", "key": "tls.crt"}})
        site.run(sink, SOON)
        assert in_objects(site) == values(10)


@pytest.mark.spark
def test_brokers_with_a_certificate_of_their_own_are_trusted_by_the_reader_and_the_admin_client_and_only_if_told(
    own_site: Site, topic: str, tmp_path: Path
) -> None:
    secrets = own_site.folder / "secrets" / "kafka"
    secrets.mkdir(parents=True)
    (secrets / "jaas").write_text(JAAS.format(password="wonderland"))
    with kafka_broker(users={"alice": "wonderland"}, certificate=self_signed(tmp_path)) as broker:
        topics = Topics(broker.bootstrap)
        topics.create(topic)
        topics.produce_values(topic, values(10))
        site = replace(own_site, bootstrap=broker.sasl_bootstrap, topics=topics)
        properties = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
        jaas = {"name": "sasl.jaas.config", "secret": "kafka", "key": "jaas"}
        with pytest.raises(InvalidCredentials, match="TLS handshake failed"):
            site.run(site.sink([topic], kafka={"properties": properties, "propertySecrets": [jaas]}), SOON)
        (secrets / "ca.crt").write_bytes((tmp_path / "tls.crt").read_bytes())
        trusted = {**properties, "ssl.truststore.type": "PEM"}
        authority = {"name": "ssl.truststore.certificates", "secret": "kafka", "key": "ca.crt"}
        sink = site.sink([topic], kafka={"properties": trusted, "propertySecrets": [jaas, authority]})
        site.run(sink, SOON)
        assert in_objects(site) == values(10)
        assert site.committed(sink, topic) == {0: 10}


# -- the clock -----------------------------------------------------------------------------------------------------


def test_a_clock_that_goes_back_takes_no_round_back(s3: S3Server, tmp_path: Path) -> None:
    place = Place.new(s3.endpoint, tmp_path)
    noon, hour = 1_700_049_600_000, 3_600_000
    hourly = {
        "partitioner": {"type": "Hourly", "timezone": "UTC"},
        "rotation": {"scheduleInterval": "1h"},
    }
    place.run(FunctionLog(records=5), SOON, spec=hourly, clock=lambda: noon)
    place.run(FunctionLog(records=10), SOON, spec=hourly, clock=lambda: noon - 2 * hour)
    place.run(FunctionLog(records=15), ALL, spec=hourly, clock=lambda: noon + hour)
    path = "topics/log/year=2023/month=11/day=15/hour="
    assert {key: place.offsets(key) for key in place.bodies()} == {
        f"{path}12/log+0+0000000000.json": list(range(10)),
        f"{path}13/log+0+0000000010.json": list(range(10, 15)),
    }


# -- a stop --------------------------------------------------------------------------------------------------------


@pytest.mark.spark
def test_sigterm_in_the_middle_of_an_upload_ends_the_run_with_0_and_the_next_run_is_exact(
    kafka: KafkaBroker,
    topics: Topics,
    topic: str,
    s3: S3Server,
    bucket: str,
    s3_proxy: FaultProxy,
    sink_of: SinkFactory,
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
    sink = sink_of(manifest("stopped", spec))
    process = sink.start("run")
    hold = Hold()
    rule = s3_proxy.when(kind("UploadPart", key="+0+"), hold)
    Sink.wait_for(lambda: bool(rule.fired), "an upload", process, seconds=300)
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
