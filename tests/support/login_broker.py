"""A broker that knows every kind of login of `spec.kafka.login`, and the Secrets for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from devtools.certificates import Certificate, self_signed
from devtools.kafka import KafkaBroker, kafka_broker
from devtools.s3 import ACCESS_KEY, SECRET_KEY
from sink_job.kafka.java_classes import class_jar
from sink_job.kafka.jvm import plain_jvm
from sink_job.spark.jars import client_jars
from tests.support.sts_server import ROLE_KEY, ROLE_SECRET, ROLE_TOKEN
from tests.support.token_server import AUDIENCE, TokenServer, token_server

USER, PASSWORD = "alice", 'wonder"land\\ of 1865'
_LISTENER = "listener.name.sasl_ssl"
_IAM = "s3sink.tests.MskIamServer"
_SCRAM = {"scram-sha-256": ScramMechanism.SCRAM_SHA_256, "scram-sha-512": ScramMechanism.SCRAM_SHA_512}


@dataclass(frozen=True)
class LoginBroker:
    """The broker, its certificate, that of its one client, and the token endpoint, which has the broker's."""

    broker: KafkaBroker
    certificate: Certificate
    client: Certificate
    tokens: TokenServer

    def kafka(self, kind: str, **login: Any) -> dict[str, Any]:
        """The section `spec.kafka` of a manifest with a login, for the listener of its type."""
        bootstrap = self.broker.tls_bootstrap if kind == "Certificate" else self.broker.sasl_bootstrap
        given = {"type": kind, "credentials": {"secret": "login"}, "caSecret": {"secret": "kafka-ca", "key": "ca.crt"}}
        return {"bootstrapServers": bootstrap, "login": {**given, **login}}

    def write_secrets(self, folder: Path, **keys: str | bytes) -> None:
        """Writes the Secrets `kafka-ca`, and `login` with `keys`, as directories."""
        write_secret(folder / "kafka-ca", {"ca.crt": self.certificate.certificate.read_bytes()})
        write_secret(folder / "login", keys)


def write_secret(folder: Path, keys: Mapping[str, str | bytes]) -> None:
    """Writes a Secret as a directory; keys that it had are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.iterdir():
        file.unlink()
    for name, value in keys.items():
        (folder / name).write_bytes(value if isinstance(value, bytes) else value.encode())


@contextmanager
def login_broker(folder: Path) -> Iterator[LoginBroker]:
    """The broker of a module of tests. `folder` is for its certificates."""
    certificate, client = (self_signed(_made(folder / name)) for name in ("broker", "client"))
    with ExitStack() as stack:
        tokens = stack.enter_context(token_server(certificate))
        broker = stack.enter_context(
            kafka_broker(
                settings=_settings(tokens),
                users={USER: "unused"},
                certificate=certificate,
                clients=client.certificate,
                classes=[_iam_classes(folder)],
                jvm=[f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={tokens.keys_url}"],
            )
        )
        _create_scram_users(broker)
        yield LoginBroker(broker, certificate, client, tokens)


def _iam_classes(folder: Path) -> Path:
    """A jar with the broker's side of AWS_MSK_IAM."""
    sources = Path(__file__).parent
    gateway = plain_jvm(client_jars())
    try:
        others = [sources / "MskIamServerFactory.java"]
        return class_jar(gateway, sources / "MskIamServer.java", _IAM, *others, folder=folder)
    finally:
        gateway.shutdown()


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True)
    return folder


def _settings(tokens: TokenServer) -> dict[str, str]:
    escaped = PASSWORD.replace("\\", "\\\\").replace('"', '\\"').replace("\\", "\\\\")  # of JAAS in a properties file
    modules = "org.apache.kafka.common.security"
    plain = f'{modules}.plain.PlainLoginModule required user_{USER}="{escaped}";'
    scram = f"{modules}.scram.ScramLoginModule required;"
    return {
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512,OAUTHBEARER,AWS_MSK_IAM",
        f"{_LISTENER}.plain.sasl.jaas.config": plain,
        **{f"{_LISTENER}.{mechanism}.sasl.jaas.config": scram for mechanism in _SCRAM},
        f"{_LISTENER}.oauthbearer.sasl.jaas.config": f"{modules}.oauthbearer.OAuthBearerLoginModule required;",
        f"{_LISTENER}.oauthbearer.sasl.server.callback.handler.class": (
            f"{modules}.oauthbearer.OAuthBearerValidatorCallbackHandler"
        ),
        # A session ends with its token: the broker closes a connection that has not logged in again.
        f"{_LISTENER}.oauthbearer.connections.max.reauth.ms": "3600000",
        f"{_LISTENER}.aws_msk_iam.sasl.jaas.config": (
            f'{_IAM} required user_{ACCESS_KEY}="{SECRET_KEY}" user_{ROLE_KEY}="{ROLE_SECRET}" token="{ROLE_TOKEN}";'
        ),
        "sasl.oauthbearer.jwks.endpoint.url": tokens.keys_url,
        "sasl.oauthbearer.expected.audience": AUDIENCE,
        "sasl.oauthbearer.clock.skew.seconds": "1",
    }


def _create_scram_users(broker: KafkaBroker) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for mechanism in _SCRAM.values():  # a request changes a user once
        change = UserScramCredentialUpsertion(USER, ScramCredentialInfo(mechanism, 4096), PASSWORD.encode())
        for done in admin.alter_user_scram_credentials([change]).values():
            done.result(30)
