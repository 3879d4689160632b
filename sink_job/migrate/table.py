"""The table of the connector's keys: what becomes of each in an S3Sink.

`KEYS` has a row for every key of the connector's releases 12.x, of Kafka Connect for sinks, and of the converters.
docs/migrating.md is generated from it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from typing import Final

from sink_job.migrate.values import nearest_key


class Treatment(Enum):
    """What becomes of a key."""

    FIELD = auto()
    """It becomes a field of the S3Sink."""
    NO_EFFECT = auto()
    """The objects are the same without it."""
    DIFFERENT = auto()
    """It has no counterpart: a value other than the default is reported."""
    IMPOSSIBLE = auto()
    """A connector with it cannot be converted."""


class KeyOwner(Enum):
    """What a key configures."""

    CONNECTOR = auto()
    JSON_CONVERTER = auto()
    STRING_CONVERTER = auto()
    CONFLUENT = auto()
    APICURIO = auto()
    GLUE = auto()


class ValueForm(Enum):
    """How the value of a key becomes the value of a field."""

    TEXT = auto()
    """The same text."""
    NUMBER = auto()
    OPTIONAL_NUMBER = auto()
    """A number; below 1: off."""
    BOOLEAN = auto()
    DURATION = auto()
    """Milliseconds; below 1: off."""
    SIZE = auto()
    """Bytes."""
    CHOICE = auto()
    """One of the values of an enumeration."""
    CLASS = auto()
    """The name of a class."""
    LIST = auto()
    """Texts, separated by commas."""
    SECRET = auto()
    """A reference to a Secret. The value is never printed."""
    SPECIAL = auto()
    """Depends on other keys."""


@dataclass(frozen=True, slots=True)
class KeyRow:
    """One key of a connector. A key that ends with `*` is for all that begin with the text before it.

    `field` is the path below `spec`. `note` is a sentence for the manifest and for docs/migrating.md, `link` an
    addition for the latter. `default` is the value with which a key of the treatment DIFFERENT is not reported, besides
    an empty one.
    """

    key: str
    treatment: Treatment
    field: str = ""
    form: ValueForm = ValueForm.TEXT
    note: str = ""
    link: str = ""
    default: str = ""
    owner: KeyOwner = KeyOwner.CONNECTOR

    @property
    def sentence(self) -> str:
        """The note as part of a finding, without the marks of Markdown."""
        text = self.note.removeprefix("none: ").replace("`", "")
        return "it has no counterpart" if text == "none" else text

    @property
    def is_secret(self) -> bool:
        """True if no value of the key is printed."""
        return self.form is ValueForm.SECRET


def field(key: str, path: str, form: ValueForm = ValueForm.TEXT, note: str = "", link: str = "") -> KeyRow:
    """A row of a key of the connector that becomes a field."""
    return KeyRow(key, Treatment.FIELD, path, form, note, link)


def without_effect(keys: str, note: str) -> Iterable[KeyRow]:
    """Rows of keys, separated by blanks, without which the objects are the same."""
    return [KeyRow(key, Treatment.NO_EFFECT, note=note) for key in keys.split()]


def different(keys: str, note: str, *, default: str = "", link: str = "", secret: bool = False) -> Iterable[KeyRow]:
    """Rows of keys, separated by blanks, without a counterpart."""
    form = ValueForm.SECRET if secret else ValueForm.TEXT
    return [KeyRow(key, Treatment.DIFFERENT, form=form, note=note, link=link, default=default) for key in keys.split()]


_MISNAMED: Final = {
    "aws.secret.key.id": "aws.secret.access.key",
    "aws.s3.bucket.name": "s3.bucket.name",
    "aws.s3.endpoint": "store.url",
    "aws.s3.region": "s3.region",
    "path.style.access": "s3.path.style.access.enabled",
    "rotate.interval": "rotate.interval.ms",
    "s3.endpoint": "store.url",
    "s3.endpoint.url": "store.url",
    "s3.path.style.access": "s3.path.style.access.enabled",
}
"""Keys of public configurations that the connector ignores, and the keys that were meant."""


class KeyTable:
    """Finds rows by key."""

    def __init__(self, rows: Iterable[KeyRow]) -> None:
        self.rows: Final = tuple(rows)
        self._exact = {(row.owner, row.key): row for row in self.rows if not row.key.endswith("*")}
        starts = [row for row in self.rows if row.key.endswith("*")]
        self._starts = sorted(starts, key=lambda row: -len(row.key))

    def row(self, key: str, owner: KeyOwner = KeyOwner.CONNECTOR) -> KeyRow | None:
        """The row of `key`; None for an unknown key. An exact row precedes one for several keys."""
        found = self._exact.get((owner, key))
        if found is not None:
            return found
        return next((row for row in self._starts if row.owner is owner and key.startswith(row.key[:-1])), None)

    def nearest(self, key: str, owner: KeyOwner = KeyOwner.CONNECTOR) -> str | None:
        """The known key that is most like `key`; None if none is."""
        if owner is KeyOwner.CONNECTOR and key in _MISNAMED:
            return _MISNAMED[key]
        known = [row.key for row in self.rows if row.owner is owner and not row.key.endswith("*")]
        return nearest_key(key, known)


@cache
def key_table() -> KeyTable:
    """The table of all keys."""
    from sink_job.migrate.connector_keys import CONNECTOR_KEYS
    from sink_job.migrate.converter_keys import CONVERTER_KEYS

    return KeyTable([*CONNECTOR_KEYS, *CONVERTER_KEYS])
