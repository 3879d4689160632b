"""The name of the table of each topic."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final

from sink_job.api.errors import InvalidSpec

_NOT_PLAIN: Final = re.compile(r"[^a-z0-9_]")
TOPIC: Final = "{topic}"


def table_names(pattern: str, topics: Iterable[str]) -> dict[str, str]:
    """The table of each topic: `pattern` with the topic in lower case, and `_` for characters that not all engines
    allow. Raises InvalidSpec if two topics have the same table."""
    found: dict[str, str] = {}
    owners: dict[str, str] = {}
    for topic in sorted(topics):
        name = pattern.replace(TOPIC, _NOT_PLAIN.sub("_", topic.lower()))
        if name in owners:
            raise InvalidSpec(
                [
                    f"spec.tables: the topics {owners[name]} and {topic} have the same table {name}: use a sink for "
                    f"each, or a name with {TOPIC} if it has none"
                ]
            )
        owners[name] = topic
        found[topic] = name
    return found


def check_chosen(names: Collection[str], chosen: Collection[str]) -> None:
    """Raises InvalidSpec for a chosen table that is not one of `names`."""
    if unknown := sorted(set(chosen) - set(names)):
        known = ", ".join(sorted(names)[:10]) or "none, as nothing was published yet"
        raise InvalidSpec([f"--table {unknown[0]} is no table of this sink. Its tables: {known}"])
