"""The user's Kafka client properties, shared by the reader and the admin client.

So each authentication method works for both. Values can be secret. They leave this module only as the configuration of
a client: `repr` shows names only, and `redact` removes secret values from messages of clients.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sink_job.api.errors import SecretNotFound
from sink_job.kafka.login import Login, needs_msk_iam

if TYPE_CHECKING:
    from sink_job.api.sections.job_sections import KafkaSpec

_SECRET_NAME = re.compile(
    r"password|secret|jaas|token|\.key$|credential|keystore\.certificate|user\.info", re.IGNORECASE
)
_QUOTED = re.compile(r"""=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))""")
_MIN_SECRET_LENGTH = 4  # shorter texts occur in messages by chance
_HIDDEN = "[hidden]"


class KafkaProperties:
    """The connection properties of one cluster, without those that Spark or the sink set (deserializers, group, fetch
    sizes)."""

    def __init__(
        self, properties: Mapping[str, str], secrets: frozenset[str] = frozenset(), *, login: Login | None = None
    ) -> None:
        """`secrets`: names of properties with secret values, in addition to names that indicate a secret. `login`: more
        properties; `java_options` are those that it needs in each JVM with a client."""
        self._properties = {**properties, **(login.properties if login else {})}
        secret = {k: v for k, v in properties.items() if k in secrets or _SECRET_NAME.search(k)}
        self._hidden = _hidden(secret, login.secrets if login else ())
        self.java_options = login.java_options if login else ()
        self.needs_msk_iam = needs_msk_iam(self._properties)

    @classmethod
    def of(cls, kafka: KafkaSpec, secret_dirs: Mapping[str, Path]) -> KafkaProperties:
        """The properties of a manifest's `spec.kafka`. `secret_dirs` maps the name of each Secret to its mount path.

        A property from a Secret overrides one in the manifest. A newline at its end is removed. Raises SecretNotFound
        with the names of the property and the file, and the errors of `Login.of`.
        """
        properties = {
            "bootstrap.servers": kafka.bootstrap_servers,
            "isolation.level": _ISOLATION[kafka.isolation_level.value],
            **kafka.properties,
        }
        for secret in kafka.property_secrets:
            properties[secret.name] = _read(secret.name, secret.secret, secret.key, secret_dirs)
        login = Login.of(kafka.login, secret_dirs) if kafka.login else None
        return cls(properties, frozenset(secret.name for secret in kafka.property_secrets), login=login)

    @property
    def bootstrap_servers(self) -> str:
        """The bootstrap servers as in the manifest."""
        return self._properties["bootstrap.servers"]

    def client(self) -> dict[str, str]:
        """All properties, for the configuration of a client only: secret values are in plain text."""
        return dict(self._properties)

    def reader(self) -> dict[str, str]:
        """The properties as options of Spark's Kafka source, which have a prefix."""
        return {f"kafka.{name}": value for name, value in self._properties.items()}

    def redact(self, text: str) -> str:
        """`text` without secret values. For messages of clients, which sometimes contain their configuration."""
        for value in self._hidden:
            text = text.replace(value, _HIDDEN)
        return text

    def __repr__(self) -> str:
        return f"KafkaProperties({', '.join(sorted(self._properties))})"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("Kafka properties contain secrets and cannot be pickled")


_ISOLATION = {"ReadCommitted": "read_committed", "ReadUncommitted": "read_uncommitted"}


def _read(name: str, secret: str, key: str, secret_dirs: Mapping[str, Path]) -> str:
    where = f"spec.kafka.propertySecrets, {name}"
    if secret not in secret_dirs:
        raise SecretNotFound(
            f"{where}: the Secret {secret} is not mounted. In Kubernetes, check that it exists in the sink's "
            f"namespace; elsewhere use --secret {secret}=DIRECTORY, with one file for each of its keys."
        )
    try:
        return (secret_dirs[secret] / key).read_text(encoding="utf-8").removesuffix("\n")
    except FileNotFoundError:
        raise SecretNotFound(
            f"{where}: the secret {secret} has no key {key} (no {secret_dirs[secret] / key})"
        ) from None
    except (OSError, UnicodeDecodeError):
        raise SecretNotFound(f"{where}: {secret_dirs[secret] / key} cannot be read as text") from None


def _hidden(values: Mapping[str, str], more: Iterable[str]) -> list[str]:
    """The texts to remove from messages, longest first: values, those in a JAAS configuration, and `more`."""
    texts = {*values.values(), *more}
    for name, value in values.items():
        if "jaas" in name.lower():
            texts.update(quoted for match in _QUOTED.finditer(value) for quoted in match.groups() if quoted)
    return sorted((text for text in texts if len(text) >= _MIN_SECRET_LENGTH), key=len, reverse=True)
