"""Generates the tables of docs/migrating.md from the table of keys:

    python -m sink_job.migrate.reference docs/migrating.md

It replaces what is between `<!-- table: NAME -->` and `<!-- end of table -->`. A test checks that the page is up to
date.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from sink_job.migrate.converters import PREFIX
from sink_job.migrate.table import KeyOwner, KeyRow, Treatment, key_table

_MARKED = re.compile(r"(<!-- table: ([a-z-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)


def with_tables(page: str) -> str:
    """The page with its present tables. Raises KeyError for an unknown name of a table."""
    return _MARKED.sub(lambda match: f"{match[1]}{TABLES[match[2]]()}{match[3]}", page)


def settings() -> str:
    """Keys that become fields."""
    rows = [row for row in key_table().rows if row.treatment is Treatment.FIELD]
    fields = {row.field for row in rows if row.owner in (KeyOwner.CONNECTOR, KeyOwner.CONFLUENT)}
    shown = [row for row in rows if row.owner in (KeyOwner.CONNECTOR, KeyOwner.CONFLUENT) or row.field not in fields]
    return _table(("connector key", "field below `spec`"), shown)


def without_effect() -> str:
    """Keys of the connector without which objects are the same."""
    return _table(("connector key", "why"), _of(Treatment.NO_EFFECT))


def not_supported() -> str:
    """Keys of the connector without a counterpart."""
    return _table(("connector", "here"), [*_of(Treatment.DIFFERENT), *_of(Treatment.IMPOSSIBLE)])


def converters() -> str:
    """Settings of converters without a field."""
    tables = []
    for owner, name in _CONVERTERS.items():
        rows = [row for row in key_table().rows if row.owner is owner and row.treatment is not Treatment.FIELD]
        tables.append(_table((f"setting of {name}", "here"), rows))
    return "\n".join(tables)


_CONVERTERS: Final = {
    KeyOwner.CONFLUENT: "Confluent's converters",
    KeyOwner.JSON_CONVERTER: "JsonConverter",
    KeyOwner.STRING_CONVERTER: "StringConverter, ByteArrayConverter",
}


def _of_owner(owner: KeyOwner) -> Callable[[], str]:
    return lambda: _table(("setting", "here"), [row for row in key_table().rows if row.owner is owner], bare=True)


TABLES: Final[Mapping[str, Callable[[], str]]] = {
    "settings": settings,
    "without-effect": without_effect,
    "not-supported": not_supported,
    "converters": converters,
    "apicurio": _of_owner(KeyOwner.APICURIO),
    "glue": _of_owner(KeyOwner.GLUE),
}


def _of(treatment: Treatment) -> list[KeyRow]:
    return [row for row in key_table().rows if row.treatment is treatment and row.owner is KeyOwner.CONNECTOR]


def _table(heads: tuple[str, str], rows: Iterable[KeyRow], *, bare: bool = False) -> str:
    """A table of Markdown. Keys with the same field and note share a row. `bare`: no prefix before settings."""
    merged: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        has_prefix = row.owner is not KeyOwner.CONNECTOR and row.treatment is Treatment.FIELD and not bare
        key = f"`{PREFIX if has_prefix else ''}{row.key}`"
        keys = merged.setdefault((row.field, row.note, row.link), [])
        if key not in keys:
            keys.append(key)
    lines = [f"| {' | '.join(heads)} |", "|---|---|"]
    lines += [f"| {', '.join(keys)} | {_cell(*cell)} |" for cell, keys in merged.items()]
    return "".join(f"{line}\n" for line in lines)


def _cell(field: str, note: str, link: str) -> str:
    text = ": ".join(part for part in (f"`{field}`" if field else "", note) if part)
    return f"{text} {link}".strip()


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(with_tables(Path(name).read_text(encoding="utf-8")), encoding="utf-8")
