"""Logins to Kafka that need options or classes of the JVM: OAuth tokens, and IAM of MSK.

Sinks are processes, as their JVMs get them at the start.
"""

from __future__ import annotations

import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from devtools.processes import LOOPBACK, Process
from devtools.s3 import S3Server
from devtools.sink_process import SinkCommand, local_spec, manifest
from devtools.topics import Topics
from sink_job.api.errors import InvalidCredentials, TransientError
from sink_job.api.sections.job_sections import KafkaSpec
from sink_job.driver.standalone_admin import admin
from sink_job.kafka.properties import KafkaProperties
from tests.conftest import SinkFactory
from tests.support.login_broker import LoginBroker, login_broker
from tests.support.sts_server import ROLE_SECRET, ROLE_TOKEN, sts_server
from tests.support.token_server import CLIENT, CLIENT_SECRET, SCOPE

pytestmark = pytest.mark.data
VALUES = [b'{"n":%d}' % n for n in range(10)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LoginBroker]:
    with login_broker(tmp_path_factory.mktemp("logins")) as found:
        yield found


@dataclass(frozen=True)
class SinkProcess:
    """A sink as a process, with its Secrets in `folder`."""

    command: SinkCommand
    topics: Topics
    topic: str
    folder: Path
    group: str

    def start(self, *arguments: str, **env: str) -> Process:
        return self.command.start("run", *self.secrets, *arguments, env=env)

    @property
    def secrets(self) -> list[str]:
        return [word for folder in self.folder.iterdir() for word in ("--secret", f"{folder.name}={folder}")]

    def copies(self, count: int) -> bool:
        return self.topics.committed(self.group, self.topic) == {0: count}

    def outputs(self) -> str:
        """All that the processes have written: logs, manifests and files of the working directory."""
        files = [file for file in self.command.folder.rglob("*") if file.is_file()]
        return "\n".join(file.read_text(errors="replace") for file in files)


MakeSink = Callable[..., SinkProcess]


@pytest.fixture
def process(
    server: LoginBroker, s3: S3Server, bucket: str, topic: str, tmp_path: Path, sink_of: SinkFactory
) -> MakeSink:
    topics = Topics(server.broker.bootstrap)
    topics.create(topic)
    topics.produce_values(topic, VALUES)
    folder = tmp_path / "secrets"

    def make(kafka: Mapping[str, Any], **secret: str) -> SinkProcess:
        server.write_secrets(folder, **secret)
        spec = local_spec(
            bootstrap=server.broker.sasl_bootstrap,
            topics=[topic],
            endpoint=s3.endpoint,
            bucket=bucket,
            kafka={**kafka, "groupId": bucket},
            rotation={"flushSize": 10},
            rounds={"minBytes": 0, "maxDelay": "50ms"},
        )
        return SinkProcess(sink_of(manifest(bucket, spec)), topics, topic, folder, bucket)

    return make


def oauth(server: LoginBroker) -> dict[str, Any]:
    """Tokens are renewed as late as Kafka's client allows it."""
    ca = {"secret": "kafka-ca", "key": "ca.crt"}
    login = server.kafka("OAuth", tokenUrl=server.tokens.url, tokenCaSecret=ca, scope=SCOPE)
    renewal = {"sasl.login.refresh.min.period.seconds": "1", "sasl.login.refresh.buffer.seconds": "0"}
    return {**login, "properties": renewal}


def test_tokens_are_renewed_while_a_sink_runs(server: LoginBroker, process: MakeSink) -> None:
    sink = process(oauth(server), clientId=CLIENT, clientSecret=CLIENT_SECRET)
    tokens = server.tokens
    tokens.lifetime_s = 5
    running = sink.start()
    SinkCommand.wait_for(lambda: sink.copies(10), "the first records", running)
    expired = time.time() + tokens.lifetime_s + 2  # with the broker's tolerance
    SinkCommand.wait_for(lambda: tokens.renewed_since(expired), "renewed tokens", running)
    sink.topics.produce_values(sink.topic, VALUES)
    SinkCommand.wait_for(lambda: sink.copies(20), "records after the renewal", running)
    running.terminate(60)
    assert tokens.requests[0] == {"grant_type": "client_credentials", "scope": SCOPE}
    output = sink.outputs()
    assert not [secret for secret in (CLIENT_SECRET, *tokens.tokens) if secret in output]


def test_a_wrong_client_secret_ends_with_one_message_without_it(server: LoginBroker, process: MakeSink) -> None:
    sink = process(oauth(server), clientId=CLIENT, clientSecret="hush-hush-22")
    ended = sink.start("--until-caught-up")
    assert ended.wait(120) == 7, ended.log
    [message] = [line for line in ended.log.splitlines() if "InvalidCredentials" in line]
    assert "authentication failed: The response code 401" in message
    assert "(HttpAccessTokenRetriever.java" not in message
    sent = b64encode(f"{CLIENT}:hush-hush-22".encode()).decode()  # the server returns it
    assert not [secret for secret in ("hush-hush-22", sent) if secret in sink.outputs()]


def request(kafka: Mapping[str, Any], folder: Path) -> None:
    """A request of the admin client in a JVM of its own, as commands have it."""
    spec = KafkaSpec.model_validate({"topics": ["t"], **kafka})
    secrets = {path.name: path for path in folder.iterdir()} if folder.exists() else {}
    with admin(KafkaProperties.of(spec, secrets)) as client:
        client.cluster_id()


def test_a_token_endpoint_that_does_not_answer_is_tried_again_later(server: LoginBroker, tmp_path: Path) -> None:
    server.write_secrets(tmp_path, clientId=CLIENT, clientSecret=CLIENT_SECRET)
    kafka = oauth(server)
    kafka["login"]["tokenUrl"] = f"https://{LOOPBACK}:9/token"  # no process listens there
    kafka["properties"] = {"sasl.login.retry.backoff.max.ms": "200"}
    with pytest.raises(TransientError, match="the token endpoint does not answer"):
        request(kafka, tmp_path)


# -- IAM of Amazon MSK -----------------------------------------------------------------------------------------------

IAM = {"AWS_REGION": "eu-central-1", "AWS_EC2_METADATA_DISABLED": "true"}
ROLE = {"arn": "arn:aws:iam::123456789012:role/kafka", "externalId": "s3sink", "region": "eu-central-1"}


def iam(server: LoginBroker, **login: object) -> dict[str, Any]:
    return server.kafka("MskIam", credentials=None, **login)


def test_requests_of_a_sink_are_signed_with_the_keys_of_the_environment(server: LoginBroker, process: MakeSink) -> None:
    sink = process(iam(server))
    ended = sink.start("--until-caught-up", **IAM)
    assert ended.wait(120) == 0, ended.log
    assert sink.copies(10)


def test_a_sink_assumes_a_role_for_kafka(server: LoginBroker, process: MakeSink) -> None:
    sink = process(iam(server, assumeRole=ROLE))
    with sts_server() as sts:
        ended = sink.start("--until-caught-up", AWS_ENDPOINT_URL_STS=sts.url, **IAM)
        assert ended.wait(120) == 0, ended.log
    assert sink.copies(10)
    assert {(asked["RoleArn"], asked["ExternalId"], asked["RoleSessionName"]) for asked in sts.requests} == {
        (ROLE["arn"], "s3sink", "s3sink")
    }
    assert not [secret for secret in (ROLE_SECRET, ROLE_TOKEN) if secret in sink.outputs()]


@pytest.fixture
def profiles(tmp_path: Path, server: LoginBroker, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The Secrets of a command, beside the environment of AWS with a profile."""
    config = tmp_path / "aws"
    config.write_text("[msk]\naws_access_key_id = AKIAUNKNOWN\naws_secret_access_key = secret-of-nobody\n")
    for name, value in {**IAM, "AWS_SHARED_CREDENTIALS_FILE": str(config)}.items():
        monkeypatch.setenv(name, value)
    server.write_secrets(tmp_path / "secrets")
    return tmp_path / "secrets"


def test_a_profile_with_unknown_keys_is_one_message_without_them(server: LoginBroker, profiles: Path) -> None:
    with pytest.raises(InvalidCredentials, match="authentication failed: ") as error:
        request(iam(server, profile="msk"), profiles)
    assert error.value.exit_code == 7
    assert "secret-of-nobody" not in str(error.value)


def test_a_sink_without_credentials_for_iam_is_one_message(server: LoginBroker, profiles: Path) -> None:
    with pytest.raises(InvalidCredentials, match=r"Unable to load credentials.*for profile 'absent'") as error:
        request(iam(server, profile="absent"), profiles)
    assert error.value.exit_code == 7
