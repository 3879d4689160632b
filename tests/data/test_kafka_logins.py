"""The types of `spec.kafka.login` against a real broker: the admin client and the reader log in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from devtools.topics import Topics
from sink_job.api.errors import InvalidCredentials
from tests.support.login_broker import PASSWORD, USER, LoginBroker, login_broker
from tests.support.spark_fixture import UNTIL_CAUGHT_UP, SparkFixture

pytestmark = [pytest.mark.data, pytest.mark.spark]
VALUES = [b'{"n":%d}' % n for n in range(10)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoginBroker]:
    with login_broker(tmp_path_factory.mktemp("logins")) as found:
        yield found


@pytest.fixture
def fixture(spark_fixture: SparkFixture, server: LoginBroker, topic: str) -> SparkFixture:
    """With a topic of ten records on the broker with logins."""
    topics = Topics(server.broker.bootstrap)
    topics.create(topic)
    topics.produce_values(topic, VALUES)
    return replace(spark_fixture, topics=topics)


def copied(fixture: SparkFixture) -> list[bytes]:
    return [line for lines in fixture.values().values() for line in lines]


@pytest.mark.parametrize("kind", ["Scram512", "Scram256", "Plain"])
def test_a_user_logs_in_with_a_password(fixture: SparkFixture, server: LoginBroker, topic: str, kind: str) -> None:
    server.write_secrets(fixture.folder / "secrets", username=USER, password=f"{PASSWORD}\n")
    sink = fixture.sink([topic], kafka=server.kafka(kind))
    fixture.run(sink, UNTIL_CAUGHT_UP)
    assert copied(fixture) == VALUES
    assert fixture.committed(sink, topic) == {0: 10}


def test_the_secret_of_a_kafka_user_of_strimzi_needs_the_name_of_the_user(
    fixture: SparkFixture, server: LoginBroker, topic: str
) -> None:
    server.write_secrets(fixture.folder / "secrets", password=PASSWORD, **{"sasl.jaas.config": "not used"})
    fixture.run(fixture.sink([topic], kafka=server.kafka("Scram512", username=USER)), UNTIL_CAUGHT_UP)
    assert copied(fixture) == VALUES


@pytest.mark.parametrize("kind", ["Scram512", "Plain"])
def test_a_wrong_password_is_an_error_without_the_password(
    fixture: SparkFixture, server: LoginBroker, topic: str, kind: str
) -> None:
    server.write_secrets(fixture.folder / "secrets", username=USER, password="looking-glass")
    with pytest.raises(InvalidCredentials, match="authentication failed") as error:
        fixture.run(fixture.sink([topic], kafka=server.kafka(kind)), UNTIL_CAUGHT_UP)
    assert "looking-glass" not in str(error.value)
    assert error.value.exit_code == 7


@pytest.mark.parametrize(("certificate", "key"), [("tls.crt", "tls.key"), ("user.crt", "user.key")])
def test_a_client_logs_in_with_a_certificate(
    fixture: SparkFixture, server: LoginBroker, topic: str, certificate: str, key: str
) -> None:
    pair = {certificate: server.client.certificate.read_bytes(), key: server.client.key.read_bytes()}
    server.write_secrets(fixture.folder / "secrets", **pair)
    sink = fixture.sink([topic], kafka=server.kafka("Certificate"))
    fixture.run(sink, UNTIL_CAUGHT_UP)
    assert copied(fixture) == VALUES


def test_a_certificate_that_the_brokers_do_not_trust_is_an_error_of_tls(
    fixture: SparkFixture, server: LoginBroker, topic: str
) -> None:
    other = server.certificate
    pair = {"tls.crt": other.certificate.read_bytes(), "tls.key": other.key.read_bytes()}
    server.write_secrets(fixture.folder / "secrets", **pair)
    with pytest.raises(InvalidCredentials, match="TLS handshake failed"):
        fixture.run(fixture.sink([topic], kafka=server.kafka("Certificate")), UNTIL_CAUGHT_UP)
