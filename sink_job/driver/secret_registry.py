"""Keeps secrets out of whatever a person reads: log lines, the screen, the last words of a failed command.

Domain errors carry no secrets by promise; this is the net under the rest, the words of the JVM and of libraries among
it, which quote a configuration now and then. It knows the secrets of the manifest by value, and others by what stands
before them (`sink_job.api.redaction`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sink_job.api.redaction import named_secrets, redacted
from sink_job.api.reserved_properties import HIDDEN, is_secret

if TYPE_CHECKING:
    from sink_job.api.spec import Sink

_SHORT = 4  # a shorter text is found by chance in any line
_AWS = ("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


class Redactor:
    """Takes secrets out of texts. Learns at any time, from any thread."""

    def __init__(self) -> None:
        self._values: tuple[str, ...] = ()

    def hide(self, values: Iterable[str]) -> None:
        """These texts are secret from now on; texts of fewer than four characters are left alone."""
        known = {value.strip() for value in values}.union(self._values)
        self._values = tuple(sorted((v for v in known if len(v) >= _SHORT), key=len, reverse=True))

    def __call__(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, HIDDEN)
        return redacted(text)


SECRETS = Redactor()
"""The secrets of this process: its output is one, so its secrets are."""


def secrets_of(sink: Sink, directories: Mapping[str, Path], environ: Mapping[str, str]) -> list[str]:
    """The secret texts that running this sink can lay hands on, as far as they can be read.

    `directories` tells where each secret of the manifest is, by its name.
    """
    kafka, s3 = sink.spec.kafka, sink.spec.s3
    found = [environ[name] for name in _AWS if environ.get(name)]
    for name, value in [*kafka.properties.items(), *sink.spec.spark_conf.items()]:
        found += _secret_parts(name, value, is_secret(name))
    for secret in kafka.property_secrets:
        value = _text(directories, secret.secret, secret.key)
        found += _secret_parts(secret.name, value, True)
    if s3.credentials is not None:
        found += [_text(directories, s3.credentials.secret, key) for key in _AWS]
    return [text for text in found if text]


def _secret_parts(name: str, value: str, whole: bool) -> Iterator[str]:
    """The secrets in a property's value: of a JAAS line its passwords, else all of it when the property is a secret."""
    if name.endswith("jaas.config"):
        yield from named_secrets(value)
    elif whole:
        yield value


def _text(directories: Mapping[str, Path], secret: str, key: str) -> str:
    try:
        return (directories[secret] / key).read_text(encoding="utf-8").strip()
    except (KeyError, OSError, UnicodeDecodeError):
        return ""
