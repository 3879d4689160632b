"""The user's Kafka properties, once, for the reader and the admin client alike.

Every way to authenticate that works in one therefore works in the other. Values may be secret: they leave this module
only into a client's configuration; `repr` shows names, and `redact` takes them out of other people's messages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sink_job.api.errors import SecretNotFound

if TYPE_CHECKING:
    from sink_job.api.spec import KafkaSpec

_SECRET_NAME = re.compile(
    r"password|secret|jaas|token|\.key$|credential|keystore\.certificate|user\.info", re.IGNORECASE
)
_QUOTED = re.compile(r"""=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))""")
_SHORT = 4  # a shorter text is found by chance in any message
_HIDDEN = "[hidden]"


class KafkaProperties:
    """How to reach one cluster. What Spark or the sink own (deserializers, group, fetch sizes) is not in it."""

    def __init__(self, properties: Mapping[str, str], secrets: frozenset[str] = frozenset()) -> None:
        """`secrets`: the names whose values are secret, beside those whose names say so."""
        self._properties = dict(properties)
        self._hidden = _hidden({k: v for k, v in properties.items() if k in secrets or _SECRET_NAME.search(k)})

    @classmethod
    def of(cls, kafka: KafkaSpec, secret_dirs: Mapping[str, Path]) -> KafkaProperties:
        """The properties of a manifest's `spec.kafka`; `secret_dirs` tells where each secret is mounted, by its name.

        A property taken from a secret wins over one written in the manifest; a newline at its end is not part of it.
        Raises SecretNotFound, naming the property and the file.
        """
        properties = {
            "bootstrap.servers": kafka.bootstrap_servers,
            "isolation.level": _ISOLATION[kafka.isolation_level.value],
            **kafka.properties,
        }
        for secret in kafka.property_secrets:
            properties[secret.name] = _read(secret.name, secret.secret, secret.key, secret_dirs)
        return cls(properties, frozenset(secret.name for secret in kafka.property_secrets))

    @property
    def bootstrap_servers(self) -> str:
        """Brokers to ask first, as the user wrote them."""
        return self._properties["bootstrap.servers"]

    def client(self) -> dict[str, str]:
        """All of them, for a client's configuration and nothing else: values are in clear."""
        return dict(self._properties)

    def reader(self) -> dict[str, str]:
        """The same as options of Spark's Kafka source, which spells them with a prefix."""
        return {f"kafka.{name}": value for name, value in self._properties.items()}

    def redact(self, text: str) -> str:
        """`text` without any secret value: for messages of clients, which quote their configuration now and then."""
        for value in self._hidden:
            text = text.replace(value, _HIDDEN)
        return text

    def __repr__(self) -> str:
        return f"KafkaProperties({', '.join(sorted(self._properties))})"

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("Kafka properties hold secrets and do not travel")


_ISOLATION = {"ReadCommitted": "read_committed", "ReadUncommitted": "read_uncommitted"}


def _read(name: str, secret: str, key: str, secret_dirs: Mapping[str, Path]) -> str:
    where = f"spec.kafka.propertySecrets, {name}"
    if secret not in secret_dirs:
        raise SecretNotFound(f"{where}: {secret} has no directory here; on a laptop give --secret {secret}=DIRECTORY")
    try:
        return (secret_dirs[secret] / key).read_text(encoding="utf-8").removesuffix("\n")
    except FileNotFoundError:
        raise SecretNotFound(
            f"{where}: the secret {secret} has no key {key} (no {secret_dirs[secret] / key})"
        ) from None
    except (OSError, UnicodeDecodeError):
        raise SecretNotFound(f"{where}: {secret_dirs[secret] / key} cannot be read as text") from None


def _hidden(values: Mapping[str, str]) -> list[str]:
    """The texts to take out of messages, longest first: whole values, and each value within a JAAS line."""
    texts = set(values.values())
    for name, value in values.items():
        if "jaas" in name.lower():
            texts.update(quoted for match in _QUOTED.finditer(value) for quoted in match.groups() if quoted)
    return sorted((text for text in texts if len(text) >= _SHORT), key=len, reverse=True)
