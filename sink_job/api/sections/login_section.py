"""The section of a manifest for the login to Kafka (`spec.kafka.login`)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import StrictBool

from sink_job.api.aws_types import ExternalId, RoleArn, SessionName
from sink_job.api.base_model import SpecModel, description
from sink_job.api.enums import LoginType
from sink_job.api.field_types import Region, TextValidator
from sink_job.api.sections.secret_refs import SecretKey, SecretRef


def check_login_name(text: str) -> None:
    """Checks the name of a Kafka user, or another text that a login sends."""
    if not text:
        raise ValueError("is empty")
    if len(text) > _MAX_NAME:
        raise ValueError(f"is longer than {_MAX_NAME} characters")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in text):
        raise ValueError("contains control characters")


def check_token_url(text: str) -> None:
    """Checks the URL of an OAuth token endpoint. It gets into a list of URLs, and into the command line of a JVM."""
    message = "is not the URL of a token endpoint: use https://host/path"
    if len(text) > _MAX_NAME:
        raise ValueError(f"is longer than {_MAX_NAME} characters")
    try:
        url = urlsplit(text)
        port = url.port
    except ValueError:
        raise ValueError(message) from None
    if not text.startswith(("http://", "https://")) or not url.hostname or port == 0 or url.fragment:
        raise ValueError(message)
    if url.query:
        raise ValueError(f"{message}, without a query: it is visible in the command line of the JVM")
    if url.username is not None or url.password is not None:
        raise ValueError("contains credentials: put them into the Secret of spec.kafka.login.credentials")
    if not re.fullmatch(_URL, text):
        raise ValueError(f"{message}, without blanks, commas, quotes, backslashes, $ and braces")


_MAX_NAME: Final = 512
_URL: Final = r"https?://[!#%&(-+\x2d-[\]-z|~]+"
LoginName = Annotated[str, TextValidator(check_login_name, {"minLength": 1, "maxLength": _MAX_NAME})]
TokenUrl = Annotated[str, TextValidator(check_token_url, {"pattern": "^https?://", "maxLength": _MAX_NAME})]

_SASL: Final = ("sasl.jaas.config", "sasl.mechanism", "security.protocol")
_KEY_STORE: Final = ("certificate.chain", "key", "location", "password", "type")
_SETS: Final[Mapping[LoginType, tuple[str, ...]]] = {
    LoginType.SCRAM_512: _SASL,
    LoginType.SCRAM_256: _SASL,
    LoginType.PLAIN: _SASL,
    LoginType.OAUTH: ("sasl.oauthbearer.token.endpoint.url", "sasl.login.callback.handler.class", *_SASL),
    LoginType.MSK_IAM: ("sasl.client.callback.handler.class", *_SASL),
    LoginType.CERTIFICATE: ("security.protocol", *(f"ssl.keystore.{name}" for name in _KEY_STORE)),
}
_TRUST_STORE: Final = ("certificates", "location", "password", "type")
AUTHORITY_PROPERTIES: Final = tuple(f"ssl.truststore.{name}" for name in _TRUST_STORE)
"""The Kafka properties that `caSecret` replaces."""


class LoginRoleSpec(SpecModel):
    """An IAM role that drivers and executors assume with the credential chain of AWS. Its credentials are renewed."""

    arn: Annotated[RoleArn, description(example="arn:aws:iam::123456789012:role/kafka")]
    """ARN of the role. The identity of the pods needs sts:AssumeRole for it."""
    external_id: Annotated[ExternalId | None, description(example="s3sink")] = None
    """External id that the role's trust policy requires."""
    session_name: SessionName = "s3sink"
    """Name of the session, as AWS CloudTrail shows it."""
    region: Annotated[Region | None, description(example="eu-central-1")] = None
    """Region of AWS STS. Default: its global endpoint, which China and GovCloud do not have."""


class LoginSpec(SpecModel):
    """A login to Kafka. It replaces properties of the Kafka client, which must not be set beside it."""

    type: LoginType
    """Kind of login. Scram512, Scram256 and Plain: user and password. Certificate: mutual TLS. OAuth: tokens for client
    credentials. MskIam: IAM of Amazon MSK, with the credential chain of AWS."""
    credentials: Annotated[SecretRef | None, description(example={"secret": "kafka-login"})] = None
    """Secret with the keys of the type. Scram512, Scram256, Plain: username and password. Certificate: tls.crt and
    tls.key, or user.crt and user.key (PEM, the key as PKCS 8). OAuth: clientId and clientSecret; logicalCluster and
    identityPool are for Confluent Cloud."""
    username: Annotated[LoginName | None, description(example="s3sink")] = None
    """User of the types Scram512, Scram256 and Plain. Default: the key username of the Secret."""
    client_id: Annotated[LoginName | None, description(example="s3sink")] = None
    """Client of the type OAuth. Default: the key clientId of the Secret."""
    token_url: Annotated[TokenUrl | None, description(example="https://login.example.com/oauth2/token")] = None
    """URL of the token endpoint of the type OAuth. http:// needs insecure: true, except on loopback."""
    scope: Annotated[LoginName | None, description(example="kafka")] = None
    """Scope of the tokens of the type OAuth. Default: none is requested."""
    token_ca_secret: Annotated[SecretKey | None, description(example={"secret": "login-ca", "key": "ca.crt"})] = None
    """CA certificates (PEM) to verify the certificate of the token endpoint. Default: those that Java trusts."""
    assume_role: LoginRoleSpec | None = None
    """IAM role of the type MskIam, for example of another account."""
    profile: Annotated[LoginName | None, description(example="msk")] = None
    """Profile of the AWS configuration files, instead of the credential chain, for the type MskIam."""
    ca_secret: Annotated[SecretKey | None, description(example={"secret": "kafka-ca", "key": "ca.crt"})] = None
    """CA certificates (PEM) to verify the certificates of the brokers. Default: those that Java trusts."""
    insecure: StrictBool = False
    """Connect to the brokers without TLS, and allow a token endpoint without it. Records, and passwords and tokens of
    the types Plain and OAuth, are then not encrypted."""

    def properties(self) -> Iterator[str]:
        """The names of the Kafka properties that this login sets, or that mean the same."""
        yield from login_properties(self.type)
        if self.ca_secret is not None:
            yield from AUTHORITY_PROPERTIES


def login_properties(kind: LoginType) -> tuple[str, ...]:
    """The names of the Kafka properties that a login of this type sets, or that mean the same."""
    return _SETS[kind]
