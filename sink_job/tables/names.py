"""The name of the table of each topic."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
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


def chosen_tables(names: Mapping[str, str], chosen: Collection[str]) -> dict[str, str]:
    """The topics and tables of `names` whose table is one of `chosen`; all if it is empty. Raises InvalidSpec for a
    table that no topic has."""
    if unknown := sorted(set(chosen) - set(names.values())):
        known = ", ".join(sorted(names.values())[:10]) or "none, as nothing was published yet"
        raise InvalidSpec([f"--table {unknown[0]} is no table of this sink. Its tables: {known}"])
    return {topic: name for topic, name in names.items() if not chosen or name in chosen}
