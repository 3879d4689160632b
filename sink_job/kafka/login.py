"""Expands `spec.kafka.login` to properties of the Kafka client.

The driver reads the Secret and sends the properties to its executors with each task, so executors mount nothing.
Certificates and keys are passed as PEM in properties, without files.
"""

from __future__ import annotations

import re
import unicodedata
from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote_plus

from sink_job.api.enums import LoginType
from sink_job.api.errors import InvalidCredentials, SecretNotFound
from sink_job.engine.secret_files import current_version, read_key

if TYPE_CHECKING:
    from sink_job.api.sections.login_section import LoginSpec
    from sink_job.api.sections.secret_refs import SecretKey

_HERE: Final = "spec.kafka.login"
_MODULES: Final = "org.apache.kafka.common.security"
_SCRAM: Final = f"{_MODULES}.scram.ScramLoginModule"
_PASSWORDS: Final[Mapping[LoginType, tuple[str, str]]] = {
    LoginType.SCRAM_512: ("SCRAM-SHA-512", _SCRAM),
    LoginType.SCRAM_256: ("SCRAM-SHA-256", _SCRAM),
    LoginType.PLAIN: ("PLAIN", f"{_MODULES}.plain.PlainLoginModule"),
}
"""Mechanism and login module of the types with a password."""
_BEARER: Final = f"{_MODULES}.oauthbearer"
_ALLOWED_URLS: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
_EXTENSIONS: Final = {"logicalCluster": "logicalCluster", "identityPool": "identityPoolId"}
"""SASL extensions of Confluent Cloud by the key of the Secret."""
_IAM: Final = "software.amazon.msk.auth.iam"
_IAM_MECHANISM: Final = "AWS_MSK_IAM"
_CERTIFICATES: Final = (("tls.crt", "tls.key"), ("user.crt", "user.key"))  # of cert-manager; of Strimzi
_PKCS8: Final = "-----BEGIN (ENCRYPTED )?PRIVATE KEY-----"
_MIN_LINE: Final = 16  # shorter lines of a key occur in messages by chance


@dataclass(frozen=True, repr=False)
class Login:
    """The properties of a login. `secrets`: texts that must not be in any output. `java_options`: options of each JVM
    that logs in."""

    properties: Mapping[str, str]
    secrets: tuple[str, ...] = ()
    java_options: tuple[str, ...] = ()

    @classmethod
    def of(cls, login: LoginSpec, secret_dirs: Mapping[str, Path]) -> Login:
        """Reads the Secrets. `secret_dirs` maps the name of each Secret to its mount path.

        Raises SecretNotFound with the names of the field, the Secret and the key, and InvalidCredentials for a value
        that cannot be sent.
        """
        found = _LoginReader(login, secret_dirs)
        return cls({**found.protocol(), **found.credentials()}, tuple(found.secrets), _java_options(login))


def _java_options(login: LoginSpec) -> tuple[str, ...]:
    """Kafka's client sends a request to no other token endpoint than those of a system property."""
    return () if login.token_url is None else (f"-D{_ALLOWED_URLS}={login.token_url}",)


def login_secrets(login: LoginSpec, secret_dirs: Mapping[str, Path]) -> tuple[str, ...]:
    """The texts of the login that must not be in any output; those that can be read."""
    try:
        return Login.of(login, secret_dirs).secrets
    except (InvalidCredentials, SecretNotFound):
        return ()


class _LoginReader:
    """Reads the Secrets of one login."""

    def __init__(self, login: LoginSpec, secret_dirs: Mapping[str, Path]) -> None:
        self._login = login
        self._secret_dirs = secret_dirs
        self.secrets: list[str] = []

    def protocol(self) -> dict[str, str]:
        """The properties of the connection: with TLS unless `insecure`."""
        login = self._login
        protocol = "SSL" if login.type is LoginType.CERTIFICATE else "SASL_PLAINTEXT" if login.insecure else "SASL_SSL"
        return {"security.protocol": protocol, **self._authorities(login.ca_secret, "caSecret")}

    def credentials(self) -> dict[str, str]:
        """The properties of the type."""
        if self._login.type is LoginType.CERTIFICATE:
            return self._certificate()
        if self._login.type is LoginType.OAUTH:
            return self._tokens()
        if self._login.type is LoginType.MSK_IAM:
            return self._iam()
        mechanism, module = _PASSWORDS[self._login.type]
        values = {"username": self._login.username or self._required("username"), "password": self._secret("password")}
        return {"sasl.mechanism": mechanism, "sasl.jaas.config": jaas(module, values)}

    def _tokens(self) -> dict[str, str]:
        login = self._login
        client = login.client_id or self._printable("clientId", self._required("clientId"))
        secret = self._secret("clientSecret")
        # A server can return the header of a request in its message.
        self.secrets += [b64encode(f"{client}:{text}".encode()).decode() for text in (secret, quote_plus(secret))]
        options = {
            "clientId": client,
            "clientSecret": secret,
            **({"scope": login.scope} if login.scope else {}),
            **self._authorities(login.token_ca_secret, "tokenCaSecret"),
        }
        for key, name in _EXTENSIONS.items():
            if value := self._key(key):
                options[f"extension_{name}"] = self._printable(key, value)
        return {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.callback.handler.class": f"{_BEARER}.OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.token.endpoint.url": str(login.token_url),
            "sasl.jaas.config": jaas(f"{_BEARER}.OAuthBearerLoginModule", options),
        }

    def _iam(self) -> dict[str, str]:
        role, options = self._login.assume_role, {}
        if role is not None:
            options = {"awsRoleArn": role.arn, "awsRoleSessionName": role.session_name}
            options |= {"awsRoleExternalId": role.external_id} if role.external_id else {}
            options |= {"awsStsRegion": role.region} if role.region else {}
        elif self._login.profile is not None:
            options = {"awsProfileName": self._login.profile}
        if options:  # else a login with a role that cannot be assumed would continue with the credential chain
            options["awsAddDefaultProviders"] = "false"
        return {
            "sasl.mechanism": _IAM_MECHANISM,
            "sasl.client.callback.handler.class": f"{_IAM}.IAMClientCallbackHandler",
            "sasl.jaas.config": jaas(f"{_IAM}.IAMLoginModule", options),
        }

    def _certificate(self) -> dict[str, str]:
        names = next((pair for pair in _CERTIFICATES if self._key(pair[1])), _CERTIFICATES[0])
        chain, key = self._required(names[0]), self._required(names[1])
        self.secrets += [key, *(line for line in key.splitlines() if len(line) >= _MIN_LINE and "-----" not in line)]
        if not re.search(_PKCS8, key):
            raise InvalidCredentials(
                f"{self._where(names[1])} is not a private key that Kafka's client reads, which begins with "
                "-----BEGIN PRIVATE KEY-----: convert it with `openssl pkcs8 -topk8 -nocrypt`; for a Certificate of "
                "cert-manager set privateKey.encoding: PKCS8"
            )
        store = {"type": "PEM", "certificate.chain": chain, "key": key}
        return {f"ssl.keystore.{name}": value for name, value in store.items()}

    def _authorities(self, reference: SecretKey | None, field: str) -> dict[str, str]:
        """The trust store with the certificates of the field `field`, as properties or as options of a login module."""
        if reference is None:
            return {}
        directory = self._directory(reference.secret, field)
        certificates = read_key(directory / reference.key, f"{_HERE}.{field}")
        if not certificates:
            raise SecretNotFound(
                f"{_HERE}.{field}: the Secret {reference.secret} has no key {reference.key} (no "
                f"{directory / reference.key})"
            )
        return {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": certificates}

    def _secret(self, key: str) -> str:
        value = self._required(key)
        self.secrets += {value, _escaped(value)}
        return self._printable(key, value)

    def _required(self, key: str) -> str:
        value = self._key(key)
        if not value:
            raise SecretNotFound(
                f"{_HERE}.credentials: the Secret {self._name} has no key {key}, which the type {self._login.type} "
                f"needs (no {self._files / key})"
            )
        return value

    def _key(self, key: str) -> str:
        return read_key(self._files / key, f"{_HERE}.credentials")

    def _printable(self, key: str, value: str) -> str:
        if any(unicodedata.category(character) == "Cc" for character in value):
            raise InvalidCredentials(f"{self._where(key)} contains a line break or another control character")
        return value

    def _where(self, key: str) -> str:
        return f"{_HERE}.credentials: the key {key} of the Secret {self._name}"

    @property
    def _name(self) -> str:
        assert self._login.credentials is not None  # checked by the rules of the manifest
        return self._login.credentials.secret

    @property
    def _files(self) -> Path:
        return current_version(self._directory(self._name, "credentials"))

    def _directory(self, secret: str, field: str) -> Path:
        if secret not in self._secret_dirs:
            raise SecretNotFound(
                f"{_HERE}.{field}: the Secret {secret} is not mounted. In Kubernetes, check that it exists in the "
                f"sink's namespace; elsewhere use --secret {secret}=DIRECTORY, with one file for each of its keys."
            )
        return self._secret_dirs[secret]


def needs_msk_iam(properties: Mapping[str, str]) -> bool:
    """Whether properties of Kafka's client, of a login or of the manifest, name classes of aws-msk-iam-auth."""
    return any(value.lstrip().startswith(_IAM) for value in properties.values())


def jaas(module: str, options: Mapping[str, str]) -> str:
    """A login of JAAS as text: `module required name="value" …;`."""
    return f"{' '.join([module, 'required', *_options(options)])};"


def _options(options: Mapping[str, str]) -> Iterator[str]:
    """Java's StreamTokenizer reads them: a quoted text ends with the line, and a backslash escapes."""
    for name, value in options.items():
        yield f'{name}="{_escaped(value)}"'


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
