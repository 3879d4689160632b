"""Where the objects after those of a table are: the properties of a table and of its successor. Pure.

A table that is continued has the property `s3sink.<sinkId>.continued`, which the commit with its last objects sets, and
nothing is added to it any more. Its successor has `s3sink.<sinkId>.continues` from its first commit on.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, TypeVar

import msgspec

from sink_job.api.errors import TableNotRegistered
from sink_job.ledger.state import ClosedObject

MAX_TABLES: Final = 9
"""Maximum number of tables of a topic. Two schemas by turns that do not fit each other would make one at each turn."""
_T = TypeVar("_T")
_Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class Continuation(msgspec.Struct, frozen=True, omit_defaults=True):
    """The objects that record `record` of the ledger and those before have acknowledged are in the table or in one
    before it, and those of record + 1 with a bit in `done`. All others are in `table` or in one after it.

    `done` is a number in hexadecimal digits: bit n is that of the object n of the topic, by key. `ledger` is
    `LedgerView.identity`, and `claim` the attempt of the newest claim up to the last object, empty if it is not known.
    """

    table: str
    ledger: str
    record: _Number
    done: str = ""
    claim: str = ""

    def remaining(self, objects: Iterable[ClosedObject]) -> Iterable[ClosedObject]:
        """Without those that are in the table. `objects` are those after `record`, in the order of their records."""
        if not self.done:
            yield from objects
            return
        bits, number, split = int(self.done, 16), 0, self.record + 1
        for o in objects:  # those of a record are in the order of their keys
            if o.acknowledged == split:
                number += 1
                if bits >> (number - 1) & 1:
                    continue
            yield o


class Predecessor(msgspec.Struct, frozen=True):
    """The table before."""

    table: str
    uuid: str


@dataclass(frozen=True)
class Successors:
    """Whether a table is continued in a new one, and which of the tables of its topic it is.

    `base` is the name of the first table, `number` is 1 for it. `start` is what the tables before have, and
    `predecessor` is the table before: None for the first table.
    """

    on_reset: bool = False
    on_incompatible: bool = False
    base: str = ""
    number: int = 1
    start: Continuation | None = None
    predecessor: Predecessor | None = None

    @property
    def continues_after_reset(self) -> bool:
        """Whether the objects after an offset reset are in a further table."""
        return self.on_reset and self.may_follow

    @property
    def may_follow(self) -> bool:
        """Whether a further table may be created."""
        return self.number < MAX_TABLES

    @property
    def next_table(self) -> str:
        """The name of the successor."""
        return successor_name(self.base, self.number + 1)


def successor_name(base: str, number: int) -> str:
    """The name of a table of a topic; `number` is 1 for the first."""
    return base if number == 1 else f"{base}_{number}"


def done_bits(objects: Sequence[ClosedObject], done: Iterable[str]) -> str:
    """`Continuation.done`; `objects` are all of a record and a topic by key, `done` are the keys of those in the table
    or before it."""
    keys = set(done)
    bits = sum(1 << number for number, o in enumerate(objects) if o.key in keys)
    return f"{bits:x}" if bits else ""


def continued_property(sink_id: str) -> str:
    """The name of the table property with the continuation."""
    return f"s3sink.{sink_id}.continued"


def continues_property(sink_id: str) -> str:
    """The name of the table property of a successor, with the table before."""
    return f"s3sink.{sink_id}.continues"


def continuation_in(properties: Mapping[str, str], sink_id: str) -> Continuation | None:
    """The continuation in the properties of a table; None if there is none. Raises TableNotRegistered for a text that
    no registration has written."""
    return _decoded(properties, continued_property(sink_id), Continuation)


def predecessor_in(properties: Mapping[str, str], sink_id: str) -> Predecessor | None:
    """The table before, in the properties of a successor; None if there is none. Raises as `continuation_in`."""
    return _decoded(properties, continues_property(sink_id), Predecessor)


def encoded(value: Continuation | Predecessor) -> str:
    """The value of a property."""
    return msgspec.json.encode(value).decode()


def _decoded(properties: Mapping[str, str], name: str, kind: type[_T]) -> _T | None:
    text = properties.get(name)
    if text is None:
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise TableNotRegistered(
            f"the table property {name} is not one that s3sink register has written ({error}): restore its value"
        ) from None
