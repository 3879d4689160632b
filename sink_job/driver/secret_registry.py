"""Redacts secrets in all output: log lines, the live console, error messages.

Domain errors never contain secrets. Messages of the JVM and of libraries can, because they may quote a configuration.
This module redacts the values of the manifest's secrets, and other secrets by pattern (`sink_job.api.redaction`).
"""

from __future__ import annotations

import threading
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from sink_job.api.redaction import named_secrets, redacted
from sink_job.api.report_access import REPORT_TOKEN_VARIABLE
from sink_job.api.rules.reserved_properties import HIDDEN, is_secret
from sink_job.kafka.login import login_secrets

if TYPE_CHECKING:
    from sink_job.api.spec import Sink

_MIN_LENGTH = 4  # shorter texts occur in ordinary lines
_AWS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
_REGISTRY = ("password", "token", "clientSecret")
_VARIABLES = (*_AWS, REPORT_TOKEN_VARIABLE)


class Redactor:
    """Redacts known secrets. Thread-safe."""

    def __init__(self) -> None:
        self._values: tuple[str, ...] = ()
        self._lock = threading.Lock()

    def hide(self, values: Iterable[str]) -> None:
        """Adds secrets. Texts of fewer than four characters are ignored."""
        with self._lock:
            known = {value.strip() for value in values}.union(self._values)
            self._values = tuple(sorted((v for v in known if len(v) >= _MIN_LENGTH), key=len, reverse=True))

    def __call__(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, HIDDEN)
        return redacted(text)


SECRETS = Redactor()
"""The secrets of this process, for all of its output."""


def secrets_of(sink: Sink, directories: Mapping[str, Path], environ: Mapping[str, str]) -> list[str]:
    """The readable secrets of a sink: in the manifest, in its secret directories and in the environment.

    `directories` maps the names of secrets to their directories.
    """
    kafka, s3 = sink.spec.kafka, sink.spec.s3
    found = [environ[name] for name in _VARIABLES if environ.get(name)]
    for name, value in [*kafka.properties.items(), *sink.spec.spark_conf.items()]:
        found += _secret_parts(name, value, is_secret(name))
    for secret in kafka.property_secrets:
        value = _text(directories, secret.secret, secret.key)
        found += _secret_parts(secret.name, value, True)
    if kafka.login is not None:
        found += login_secrets(kafka.login, directories)
    for keys_of_bucket in (s3.credentials, None if s3.ledger is None else s3.ledger.credentials):
        if keys_of_bucket is not None:
            found += [_text(directories, keys_of_bucket.secret, key) for key in _AWS]
    if s3.proxy is not None and s3.proxy.credentials is not None:
        found += _of_proxy(*(_text(directories, s3.proxy.credentials.secret, key) for key in ("username", "password")))
    if s3.encryption is not None:
        keys = [s3.encryption.customer_key, *s3.encryption.previous_keys]
        found += [_text(directories, each.secret, each.key) for each in keys if each is not None]
    registry = sink.spec.format.registry
    if registry is not None and registry.credentials is not None:
        found += [_text(directories, registry.credentials.secret, key) for key in (*_REGISTRY, *_AWS)]
    for table in sink.spec.tables:
        if table.catalog.credentials is not None:
            found += _of_catalog(directories, table.catalog.credentials.secret)
    return [text for text in found if text]


def _of_catalog(directories: Mapping[str, Path], secret: str) -> Iterator[str]:
    """The secrets of a catalog, also as the header of a login."""
    for key in (*_REGISTRY, *_AWS):
        yield _text(directories, secret, key)
    password = _text(directories, secret, "password")
    if password:
        yield b64encode(f"{_text(directories, secret, 'username')}:{password}".encode()).decode()


def _of_proxy(user: str, password: str) -> Iterator[str]:
    """The password of a proxy, as it is, in its URL and in its header: libraries quote both."""
    yield from (password, quote(password, safe=""))
    if password:
        yield b64encode(f"{user}:{password}".encode()).decode()


def _secret_parts(name: str, value: str, whole: bool) -> Iterator[str]:
    """The secrets in the value of a property: the passwords of a JAAS login, or the value of a secret property."""
    if name.endswith("jaas.config"):
        yield from named_secrets(value)
    elif whole:
        yield value


def _text(directories: Mapping[str, Path], secret: str, key: str) -> str:
    try:
        return (directories[secret] / key).read_text(encoding="utf-8").strip()
    except (KeyError, OSError, UnicodeDecodeError):
        return ""
