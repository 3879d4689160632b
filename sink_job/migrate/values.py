"""The values of a connector's configuration, parsed as Kafka's ConfigDef does."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

from sink_job.api.field_errors import in_a_line
from sink_job.api.rules.reserved_properties import HIDDEN, looks_secret

_INTEGER = re.compile(r"[+-]?[0-9]{1,19}")
_MAX_LONG = 2**63 - 1
PLACEHOLDER = re.compile(r"\$\{([^:}]+):([^}]*)\}")
"""A reference to a configuration provider of Kafka: `${provider:path:key}` or `${provider:key}`."""
STRIMZI_SECRET = re.compile(r"\$\{secrets:(?:([^/:}]+)/)?([^:}]+):([^}]+)\}")
"""A reference to a Kubernetes Secret by Strimzi's provider: namespace (optional), name and key."""


def parse_number(text: str) -> int:
    """A whole number of 64 bits. Raises ValueError with what is wrong."""
    if not _INTEGER.fullmatch(text) or abs(int(text)) > _MAX_LONG:
        raise ValueError("is not a whole number")
    return int(text)


def parse_boolean(text: str) -> bool:
    """`true` or `false`, in any case. Raises ValueError."""
    if text.lower() not in ("true", "false"):
        raise ValueError("is not true or false")
    return text.lower() == "true"


def parse_list(text: str) -> list[str]:
    """The texts between commas, without blanks around them and without empty ones."""
    return [each.strip() for each in text.split(",") if each.strip()]


def parse_choice(text: str, choices: Mapping[str, str]) -> str:
    """The value of the manifest for a text of the connector, in any case. Raises ValueError with all texts."""
    found = choices.get(text.lower())
    if found is None:
        raise ValueError(f"is not one of {', '.join(choices)}")
    return found


def nearest_key(key: str, known: Iterable[str]) -> str | None:
    """The known key that is most like `key`; None if none is."""
    near = difflib.get_close_matches(key[:200].lower(), list(known), n=1, cutoff=0.8)
    return near[0] if near else None


def simple_name(class_name: str) -> str:
    """The name of a class without its package and its outer class."""
    return class_name.rpartition(".")[2].rpartition("$")[2]


def shown(key: str, value: str) -> str:
    """`key=value` for a message. A value that looks like a secret is hidden."""
    if looks_secret(value):
        return f"{in_a_line(key)}={HIDDEN}"
    return f"{in_a_line(key)}={in_a_line(value) if value else ''}"
