"""Decides what a registration adds to a table, or why it stops. Pure.

The input is what was read once: the ledger, the memory of the last registration, and the metadata of the table. The
memory is read before the table, so the table is never behind it, unless another program has changed the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

import msgspec
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH, SnapshotRefType

from sink_job.api.enums import TablePartitioning
from sink_job.api.errors import (
    TableIncompatible,
    TableNotRegistered,
    TablePositionLower,
    TablePositionMissing,
    TableReplaced,
    TableRolledBack,
    TransientError,
)
from sink_job.ledger.schemas.field_ids import SeedTable
from sink_job.ledger.state import ClosedObject
from sink_job.tables.file_io import SCHEMES
from sink_job.tables.memory import Memory
from sink_job.tables.partitions.object_paths import PathLayout
from sink_job.tables.partitions.partition_specs import check_default_spec
from sink_job.tables.position import TablePosition, as_text, position_in, position_property

MAX_OBJECTS: Final = 5_000
"""Maximum number of objects of a commit, unless one record of the ledger acknowledges more."""
MAX_STATISTICS: Final = 50_000
"""Maximum number of statistics of columns in a commit, unless one record of the ledger acknowledges more. They take
about 1 KB each while they are read."""


_PLAIN_KEY: Final = re.compile(r"(?!(.*/)?\.{0,2}(/|$))[^?#\x00-\x1f]+|")
"""A key that all readers and stores read alike."""


AddedBy = Callable[[], Collection[int]]
"""The ids of the snapshots that have added the manifests of a branch."""


def _unknown() -> Collection[int]:
    return ()


class Acceptance(StrEnum):
    """A change of the table that the user accepts (`--accept`), by the reason of its error."""

    REPLACED = "TableReplaced"
    ROLLED_BACK = "TableRolledBack"
    POSITION_MISSING = "TablePositionMissing"
    POSITION_LOWER = "TablePositionLower"


@dataclass(frozen=True)
class LedgerView:
    """The ledger of a sink, as it was read.

    `identity` is the attempt of its first claim: another ledger at the same place has another one. `number` is its
    newest record when it was read, `resets` are the records of the offset resets, ascending. `copies` are those of them
    after which records are copied again, into a directory of their own. `copied_from`: the last one of `copies`, 0
    without one. Objects that were acknowledged before have records that are copied again. `layouts` are those of the
    paths of objects, by the number of the claim with their settings; `enveloped` are the claims with `format.envelope`.
    `claims` are the attempts of all claims by their numbers, empty for one that was deleted.
    """

    sink_id: str
    identity: str
    number: int
    resets: tuple[int, ...] = ()
    copied_from: int = 0
    copies: tuple[int, ...] = ()
    layouts: Mapping[int, PathLayout] = field(default_factory=dict)
    enveloped: frozenset[int] = frozenset()
    claims: Mapping[int, str] = field(default_factory=dict)

    def claim_of(self, record: int) -> str:
        """The attempt of the newest claim up to `record`; empty if it is not known. A ledger that was restored to an
        older state and has grown since has another one: its next record is a claim."""
        return self.claims[max(found)] if (found := [each for each in self.claims if each <= record]) else ""

    def is_restored(self, record: int, claim: str) -> bool:
        """Whether `record` is not the one that the ledger had when `claim` was the attempt of its claim."""
        return record <= self.number and "" not in (claim, known := self.claim_of(record)) and claim != known


@dataclass(frozen=True)
class Request:
    """What a user asks for. `from_beginning`: a table without a position gets all objects. `creates`: the same if there
    is no table, and no registration has created one; and if the table is one of `seeds`, which have given their field
    ids to the topic before its first object."""

    from_beginning: bool = False
    accepted: frozenset[Acceptance] = frozenset()
    creates: bool = False
    seeds: tuple[SeedTable, ...] = ()


@dataclass(frozen=True)
class Batch:
    """The objects of one commit, and the record up to which they are all that the ledger has acknowledged."""

    objects: Sequence[ClosedObject]
    record: int


def start_after(
    table: TableMetadata | None,
    memory: Memory | None,
    ledger: LedgerView,
    request: Request,
    branch: str = MAIN_BRANCH,
    added_by: AddedBy = _unknown,
) -> int:
    """The number of the record after which acknowledged objects are not in the branch of the table. `table`: None if
    there is none. `added_by`: see `is_rolled_back`.

    Raises TableNotRegistered, or the error of the change that was found.
    """
    accepted = request.accepted
    if table is None:
        if memory is None and request.creates:
            return ledger.copied_from
        if memory is not None and Acceptance.REPLACED not in accepted:
            raise TableReplaced(
                "the table does not exist any more, or uri or warehouse of spec.tables[].catalog are those of another "
                f"catalog. The last registration added {_up_to(memory)} to the table with the UUID {memory.uuid}. "
                f"Restore it, or fix the catalog; or --accept {Acceptance.REPLACED} --from-beginning creates a new one"
            )
        return _beginning(ledger, request)
    if memory is not None and memory.uuid != str(table.table_uuid):
        if Acceptance.REPLACED not in accepted:
            raise TableReplaced(
                f"the table has the UUID {table.table_uuid}, and the last registration added to {memory.uuid}: it was "
                f"dropped and created again, or the catalog is another one. --accept {Acceptance.REPLACED} continues "
                "with this table"
            )
        memory = None
    position = position_in(table.properties, ledger.sink_id)
    committed = last_committed(table, ledger.sink_id, branch)
    if position is None:
        return _without_position(table, memory, committed, ledger, request, branch, added_by)
    _check_ledger(position, memory, ledger)
    if committed is not None and committed.ledger == position.ledger and _is_newer(committed, position):
        raise TablePositionLower(
            f"the table has {position}, and its history has {committed}: the property "
            f"{position_property(ledger.sink_id)} has an older value. Set it to {as_text(committed)}"
        )
    _check_memory(table, position, memory, accepted, branch, added_by)
    return position.record


def continued_from(
    table: TableMetadata, memory: Memory | None, sink_id: str, branch: str = MAIN_BRANCH
) -> TablePosition | None:
    """The position of which `start_after` has returned the record; None for a table that begins."""
    is_same = memory is not None and memory.uuid == str(table.table_uuid)
    last = _last_known(memory if is_same else None, last_committed(table, sink_id, branch))
    return position_in(table.properties, sink_id) or last


def _is_newer(committed: TablePosition, position: TablePosition) -> bool:
    """By the sequence number, too: a commit that adds skipped objects leaves the record as it was."""
    return (committed.record, committed.sequence) > (position.record, position.sequence)


def next_batch(objects: Iterable[ClosedObject], after: int, end: int, limit: int = MAX_OBJECTS) -> Batch | None:
    """The next objects that were acknowledged after record `after`, up to record `end`; `objects` are in the order of
    these records. None if there are none. A record's objects are in one batch."""
    added: list[ClosedObject] = []
    for o in objects:
        if o.acknowledged <= after:
            continue
        if o.acknowledged > end:
            break
        if len(added) >= limit and o.acknowledged != added[-1].acknowledged:
            return Batch(added, added[-1].acknowledged)
        added.append(o)
    return Batch(added, end) if added else None


def shortened(batch: Batch, columns: int) -> Batch:
    """The batch, or its first part whose statistics fit in memory; `columns` are those of its objects."""
    most = max(1, MAX_STATISTICS // max(1, columns))
    return batch if len(batch.objects) <= most else next_batch(batch.objects, 0, batch.record, most) or batch


def dropped_columns(table: TableMetadata) -> Collection[int]:
    """The ids of the columns that the table had and does not have any more."""
    ids = {number for schema in table.schemas for number in schema.field_ids}
    return ids - table.schema().field_ids


def check_layout(table: TableMetadata, partitioning: TablePartitioning, position: TablePosition | None) -> None:
    """Raises TableIncompatible for a table that these files cannot be added to. `position`: that of the sink."""
    if table.format_version < 2:
        raise TableIncompatible("the table has format version 1: upgrade it to 2")
    if table.format_version > 2:
        raise TableIncompatible(
            f"the table has format version {table.format_version}, and only 2 is supported: use another name in "
            "spec.tables. A table cannot be set back to version 2"
        )
    check_default_spec(table, partitioning)
    before = partitioning if position is None else position.partitioning
    if before is not partitioning and TablePartitioning.PATH in (before, partitioning):
        raise TableIncompatible(
            f"the objects in the table were registered with partitioning {before}, and spec.tables has {partitioning}: "
            "the columns of paths would be null in the rows of either. Use that partitioning, or another name for a "
            "new table with all objects"
        )


def check_branch(table: TableMetadata, branch: str) -> None:
    """Raises TableIncompatible if nothing can be added to the branch."""
    found = table.refs.get(branch)
    if found is not None and found.snapshot_ref_type is not SnapshotRefType.BRANCH:
        raise TableIncompatible(f"{branch} is a tag of the table: spec.tables[].branch needs a branch")
    if branch != MAIN_BRANCH and not table.snapshots:
        raise TableIncompatible(
            f"the table has no snapshot, so not all catalogs create a branch {branch} in it: append to main first, or "
            "let the registration create the table"
        )


def locations_of(table: TableMetadata) -> list[str]:
    """Where files of the table are written: its location, and those that its properties name."""
    named = (table.properties.get(name) for name in ("write.metadata.path", "write.data.path"))
    return [table.location, *(each for each in named if each is not None)]


def check_location(location: str, bucket: str, prefixes: Collection[str]) -> None:
    """Raises TableIncompatible if the folder of a table and the prefixes of the sink's keys lie in each other: the
    removal of orphan files would delete the ledger, or the sink would find files of the table."""
    scheme, _, rest = location.partition("://")
    place, _, key = rest.rstrip("/").partition("/")
    if scheme not in SCHEMES or not place or not _PLAIN_KEY.fullmatch(key):
        raise TableIncompatible(
            f"the table is in {location[:300]!r}: use a location s3://bucket/folder without empty elements, . and .., "
            "? and #"
        )
    if place != bucket:
        return
    key = f"{key}/" if key else ""
    for prefix in prefixes:
        if key.startswith(prefix) or prefix.startswith(key):
            raise TableIncompatible(
                f"the table is in {location}, and the sink writes below s3://{bucket}/{prefix}: one lies in the other. "
                "The removal of orphan files of the table would delete objects and the ledger. Use a warehouse outside "
                "of spec.s3.topicsDir, or another bucket"
            )


def _beginning(ledger: LedgerView, request: Request) -> int:
    if not request.from_beginning:
        raise TableNotRegistered(
            "the table has no position of this sink yet. --from-beginning adds everything that the sink has "
            f"published, up to record {ledger.number:,} of the ledger"
        )
    return ledger.copied_from


def head_of(table: TableMetadata, branch: str) -> int | None:
    """The head of a branch; that of main for one that does not exist yet, since it begins there. None without a
    snapshot."""
    found = table.refs.get(branch) or table.refs.get(MAIN_BRANCH)
    return None if found is None else found.snapshot_id


def last_committed(table: TableMetadata, sink_id: str, branch: str = MAIN_BRANCH) -> TablePosition | None:
    """The newest position in the summaries of the head of the branch and its ancestors; None if there is none any more:
    snapshots expire. It only shows that the property was changed."""
    known = {each.snapshot_id: each for each in table.snapshots}
    at = head_of(table, branch)
    while at is not None and at in known:
        summary = known[at].summary
        found = None if summary is None else position_in(summary.additional_properties, sink_id)
        if found is not None:
            return found
        at = known[at].parent_snapshot_id
    return None


def _without_position(
    table: TableMetadata,
    memory: Memory | None,
    committed: TablePosition | None,
    ledger: LedgerView,
    request: Request,
    branch: str,
    added_by: AddedBy,
) -> int:
    last = _last_known(memory, committed)
    if last is None:
        return ledger.copied_from if _is_unused(table, request.seeds) else _beginning(ledger, request)
    if Acceptance.POSITION_MISSING not in request.accepted:
        raise TablePositionMissing(
            f"the table has no property {position_property(ledger.sink_id)} any more. The last registration added "
            f"{_up_to(last)}. Restore the property; or --accept {Acceptance.POSITION_MISSING} continues after that "
            "record"
        )
    _check_ledger(last, memory, ledger)
    _check_memory(table, last, memory, request.accepted, branch, added_by)
    return last.record


def _is_unused(table: TableMetadata, seeds: Iterable[SeedTable]) -> bool:
    """Whether no object of the topic was ever added to a table whose history has no position: the table has given its
    field ids to the topic before its first object, and has all snapshots since then. Those that expire leave a gap in
    the sequence numbers."""
    since = [each.sequence for each in seeds if each.uuid == str(table.table_uuid)]
    known = {each.sequence_number for each in table.snapshots}
    last = 0 if table.format_version == 1 else table.last_sequence_number
    return bool(since) and all(number in known for number in range(since[0] + 1, last + 1))


def _last_known(memory: Memory | None, committed: TablePosition | None) -> TablePosition | None:
    """The position of a table without the property."""
    known = [each for each in (committed, _remembered(memory)) if each is not None]
    return max(known, key=lambda each: each.record, default=None)


def _remembered(memory: Memory | None) -> TablePosition | None:
    if memory is None:
        return None
    return TablePosition(
        memory.ledger,
        memory.generation,
        memory.record,
        memory.snapshot,
        memory.sequence,
        memory.branch,
        skipped=memory.skipped,
        claim=memory.claim,
    )


def _check_ledger(position: TablePosition, memory: Memory | None, ledger: LedgerView) -> None:
    """A position beyond the ledger is only that of another registration, which has read more of it, if the memory
    confirms it."""
    if position.ledger != ledger.identity:
        raise other_ledger(position.ledger, ledger)
    is_confirmed = memory is not None and memory.ledger == position.ledger and memory.record >= position.record
    if position.record > ledger.number and not is_confirmed:
        raise beyond(position.record, ledger)
    if ledger.is_restored(position.record, position.claim):
        raise TableNotRegistered(
            f"the table has {position}, and this record of the ledger is another one now: the ledger was restored to "
            "an older state, and has grown since. The table has objects that it does not know, and lacks others. Use "
            "another name in spec.tables"
        )
    if position.record < ledger.copied_from:
        raise TableNotRegistered(
            f"record {ledger.copied_from:,} of the ledger is an offset reset into a directory of its own, and the "
            f"table has objects up to {position}. Later objects have the same records again. Use another name in "
            "spec.tables: a new table gets the objects of the new generation alone"
        )


def beyond(record: int, ledger: LedgerView) -> TransientError:
    """The error of a position that is newer than the ledger as it was read. Another registration may have read more of
    it, so it is one that is tried again."""
    return TransientError(
        f"the table has the position {record:,}, and the ledger ends at record {ledger.number:,}: the position was set "
        "by hand, the ledger was restored to an older state, or another registration runs. Register again: if this "
        "repeats, restore the position or the ledger, or use another name in spec.tables"
    )


def other_ledger(found: str, ledger: LedgerView) -> TableNotRegistered:
    return TableNotRegistered(
        f"the table has objects of the ledger {found}, and the one of this sink is {ledger.identity}, with "
        f"{ledger.number:,} records: the ledger was deleted, or another sink has the same sinkId. Use another name in "
        "spec.tables"
    )


def _check_memory(
    table: TableMetadata,
    position: TablePosition,
    memory: Memory | None,
    accepted: Collection[Acceptance],
    branch: str,
    added_by: AddedBy,
) -> None:
    is_lower = memory is not None and memory.ledger == position.ledger and position.record < memory.record
    if memory is not None and is_lower and Acceptance.POSITION_LOWER not in accepted:
        raise TablePositionLower(
            f"the table has {position}, and the last registration added {_up_to(memory)}: an older state of the table "
            f"was restored. --accept {Acceptance.POSITION_LOWER} continues at the position of the table, which adds "
            "the later objects again"
        )
    is_known = (
        memory is not None
        and (memory.accepted, memory.branch) == (position.snapshot, branch)
        and not _is_behind(table, memory, position, branch, added_by)
    )
    if is_rolled_back(table, position, branch, added_by) and not is_known and Acceptance.ROLLED_BACK not in accepted:
        if position.branch != branch:
            raise TableRolledBack(
                f"the table has {position} on the branch {position.branch}, and the branch {branch} does not have the "
                f"snapshot {position.snapshot} that added it. Fast-forward {branch} to {position.branch}, or set "
                f"spec.tables[].branch back; or --accept {Acceptance.ROLLED_BACK} continues after that record, and "
                f"what {branch} lacks stays out of it"
            )
        raise TableRolledBack(
            f"the table was rolled back or replaced: snapshot {position.snapshot}, which added {position}, is not in "
            f"the history of the present one. Roll forward to it; or --accept {Acceptance.ROLLED_BACK} continues after "
            "that record, and what the table lacks stays out of it"
        )


def _is_behind(table: TableMetadata, memory: Memory, position: TablePosition, branch: str, added_by: AddedBy) -> bool:
    """Whether the branch was rolled back further than the user has accepted."""
    accepted = msgspec.structs.replace(
        position, snapshot=memory.accepted_head, sequence=memory.accepted_sequence, branch=branch
    )
    return memory.accepted_head != 0 and is_rolled_back(table, accepted, branch, added_by)


def is_rolled_back(
    table: TableMetadata, position: TablePosition, branch: str = MAIN_BRANCH, added_by: AddedBy = _unknown
) -> bool:
    """Whether the snapshot of `position` is not in the history of the branch.

    The history may end at an expired snapshot, and may look as if it began after it. Then it decides only if it reaches
    the sequence number of the position. Otherwise a position of the same branch counts as in it if its snapshot has
    expired, too, and one of another branch does not. If a tag keeps the snapshot of the position, `added_by` decides,
    the snapshots that have added the present manifests of the branch. It is called in this case alone.
    """
    known = {each.snapshot_id: each for each in table.snapshots}
    snapshot = known.get(position.snapshot)
    sequence = position.sequence if snapshot is None else snapshot.sequence_number or 0
    at = head = head_of(table, branch)
    while at is not None and at in known:
        if at == position.snapshot:
            return False
        if (known[at].sequence_number or 0) <= sequence:
            return True
        at = known[at].parent_snapshot_id
    if head is None or position.branch != branch:
        return True
    return snapshot is not None and position.snapshot not in added_by()


def _up_to(last: Memory | TablePosition) -> str:
    return f"record {last.record:,} of generation {last.generation}"
