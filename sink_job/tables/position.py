"""The position of a sink in a table: up to which record of the ledger its objects are in the table.

The position is a property of the table. The commit that adds objects sets it, so both change together or not at all.
Its copy in the ledger's folder (`sink_job.tables.memory`) only serves to find out that a table was changed by others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

import msgspec
from pyiceberg.table.refs import MAIN_BRANCH

from sink_job.api.enums import TablePartitioning
from sink_job.api.errors import TableNotRegistered
from sink_job.tables.missing.skipped import Skipped

_PREFIX: Final = "s3sink."
_SUFFIX: Final = ".position"
_MAX_LENGTH: Final = 4096
_Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]


class TablePosition(msgspec.Struct, frozen=True, omit_defaults=True):
    """Every object that the ledger has acknowledged up to `record` is in the table, or is one of `skipped`.

    `ledger` identifies the ledger (`LedgerView.identity`), `generation` is that of `record`. `snapshot` is the snapshot
    that was committed with this position. `claim` is the attempt of the newest claim up to `record`: it identifies the
    record (`LedgerView.claim_of`).
    """

    ledger: str
    generation: _Number
    record: _Number
    snapshot: _Number
    sequence: _Number = 0
    branch: str = MAIN_BRANCH
    partitioning: TablePartitioning = TablePartitioning.NONE
    skipped: Skipped | None = None
    claim: str = ""

    def __str__(self) -> str:
        return f"record {self.record:,} of generation {self.generation}"


def position_property(sink_id: str) -> str:
    """The name of the table property with the position of a sink."""
    return f"{_PREFIX}{sink_id}{_SUFFIX}"


def as_text(position: TablePosition) -> str:
    """The value of the property."""
    return msgspec.json.encode(position).decode()


def position_in(properties: Mapping[str, str], sink_id: str) -> TablePosition | None:
    """The position in the properties of a table; None if there is none. Raises TableNotRegistered for a text that no
    registration has written."""
    text = properties.get(position_property(sink_id))
    if text is None:
        return None
    try:
        if len(text) > _MAX_LENGTH:
            raise msgspec.DecodeError(f"it has {len(text):,} characters")
        return msgspec.json.decode(text, type=TablePosition)
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise TableNotRegistered(
            f"the table property {position_property(sink_id)} is no position ({error}): restore the value that "
            "s3sink register had set"
        ) from None


def other_positions(properties: Mapping[str, str], sink_id: str) -> Sequence[TablePosition]:
    """The positions of other sinks in the same table. Raises TableNotRegistered as `position_in`."""
    names = (name for name in properties if name.startswith(_PREFIX) and name.endswith(_SUFFIX))
    ids = (name.removeprefix(_PREFIX).removesuffix(_SUFFIX) for name in names)
    found = (position_in(properties, each) for each in ids if each != sink_id)
    return [each for each in found if each is not None]
