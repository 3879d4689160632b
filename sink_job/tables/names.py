"""The name of the table of each topic."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from sink_job.api.errors import InvalidSpec, TableNotRegistered
from sink_job.tables.successors.continuation import MAX_TABLES, successor_name

_NOT_PLAIN: Final = re.compile(r"[^a-z0-9_]")
TOPIC: Final = "{topic}"


def table_names(pattern: str, topics: Iterable[str]) -> dict[str, str]:
    """The table of each topic: `pattern` with the topic in lower case, and `_` for characters that not all engines
    allow. Topics may have the same one, see `check_owner`."""
    return {topic: pattern.replace(TOPIC, _NOT_PLAIN.sub("_", topic.lower())) for topic in sorted(topics)}


def check_owner(names: Mapping[str, str], table: str) -> None:
    """Raises TableNotRegistered if several topics have `table`; `names` are the tables by topic. The others are not
    concerned."""
    owners = sorted(topic for topic, name in names.items() if name == table)
    if len(owners) > 1:
        raise TableNotRegistered(
            f"spec.tables: the topics {', '.join(owners[:-1])} and {owners[-1]} have the same table {table}: use a "
            f"sink for each, or a name with {TOPIC} if it has none"
        )


def check_successors(names: Collection[str], continued: Iterable[str]) -> None:
    """Raises TableNotRegistered if a successor of one of the `continued` tables would have one of the `names`."""
    for each in sorted(continued):
        for number in range(2, MAX_TABLES + 1):
            if (successor := successor_name(each, number)) in names:
                raise TableNotRegistered(
                    f"spec.tables: with NewTable {each} may be continued in {successor}, which is the table of another "
                    "topic or entry: use onReset: Stop and onIncompatible: Stop, another name such as "
                    f"{TOPIC}_t, or a sink for each"
                )


def check_chosen(names: Collection[str], chosen: Collection[str]) -> None:
    """Raises InvalidSpec for a chosen table that is not one of `names`."""
    if unknown := sorted(set(chosen) - set(names)):
        known = ", ".join(sorted(names)[:10]) or "none, as nothing was published yet"
        raise InvalidSpec([f"--table {unknown[0]} is no table of this sink. Its tables: {known}"])
