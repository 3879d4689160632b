"""The ledger on S3: writes records and snapshots by conditional PUTs, and reads them as a state.

`<topicsDir>/_s3sink/<sink id>/` contains
    ledger/<20 digits>.json.gz      the records; the number is the lock (P4)
    snapshot/<20 digits>.json.gz    the whole state after that record
    published/<from>-<to>.jsonl.gz  the published log: acknowledged objects, rotation ranges and lost records of the
                                    records after <from>, up to <to>
    intent/<epoch>-<sequence>.json.gz  the offsets at which an epoch's rounds may have opened objects (P10)
    staging/…                       staged remainders of open objects (P6)
    schemas/<topic>/…               copies of a registry's schemas (`sink_job.ledger.schemas.schema_store`)
    object-schemas/<id>.json        the schemas that records are projected to (`sink_job.ledger.schemas.object_schemas`)
    field-ids/<topic>/<id>.json     the field ids of Parquet (`sink_job.ledger.schemas.field_ids`)
    tables/<table>.json             what the last registration left in a table (`sink_job.tables.memory`)
The content of a record does not change between attempts: a 412 response and a record with this process's attempt id
mean that the response to the first attempt was lost.
"""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from sink_job.api.errors import ConfigurationError, LedgerFenced, LedgerUnreadable, TransientError
from sink_job.engine.thread_pools import pool
from sink_job.ledger import files, sequence
from sink_job.ledger.state import (
    FORMAT,
    ClosedObject,
    LedgerState,
    LostObject,
    Record,
    RotationRange,
    without_audit,
)
from sink_job.ledger.transitions import apply
from sink_job.s3 import Conflict, Listed, NotFound, PreconditionFailed, S3Client

T = TypeVar("T", bound="_HasFormat")
N = TypeVar("N", Record, LedgerState)

LOAD_ATTEMPTS = 20

READERS = 16
"""Number of concurrent reads of records."""


class _HasFormat(Protocol):
    @property
    def format(self) -> int: ...


class Intent(msgspec.Struct, frozen=True):
    """The objects that the rounds of an epoch may open: per topic-partition the offset range `[start, end)`, and the
    settings (JSON) that determine the keys.

    `sequence` numbers the intents of the epoch from 1; each covers its predecessors. Each intent has its own key: a
    delayed PUT replaces no other intent. `clock` is in ms.
    """

    epoch: int
    sequence: int
    round: int
    clock: int
    ranges: dict[str, tuple[int, int]]
    settings: tuple[str, ...] = ()
    format: int = msgspec.field(default_factory=lambda: FORMAT)


class StoredIntent(NamedTuple):
    """An intent in the store. `at` is the time of its PUT in ms, by the store's clock."""

    key: str
    at: int
    intent: Intent


class AuditEntry(msgspec.Struct, frozen=True):
    """One line of the published log."""

    object: ClosedObject | None = None
    rotation: RotationRange | None = None
    lost: LostObject | None = None


class PublishedFile(NamedTuple):
    """A file of the published log, with the entries of the records `(start, end]`. `etag` is that of its content."""

    start: int
    end: int
    key: str
    etag: str = ""


def record_name(number: int) -> str:
    """The name of record `number` below the root of the ledger."""
    return f"ledger/{number:020d}.json.gz"


def _snapshot_name(number: int) -> str:
    return f"snapshot/{number:020d}.json.gz"


class Ledger:
    """The ledger of one sink. It holds no state except the attempt id; its methods return a `LedgerState`."""

    def __init__(self, s3: S3Client, root: str, attempt: str) -> None:
        """`root` ends with `/`. `attempt` is unique to this process and marks its records."""
        self.s3 = s3
        self.root = root
        self.attempt = attempt
        self._folders = files.Folders(s3, root)

    @property
    def url(self) -> str:
        """The URL of the ledger: `s3://bucket/root`."""
        return f"{self.s3.url_of(self.root)}"

    # -- reading -------------------------------------------------------------------------------------------------

    def load(self) -> LedgerState:
        """The newest state. Another driver may delete records and snapshots meanwhile: after a missing number it lists
        again.

        Raises ConfigurationError when a record stays missing, and what `read` of `files` raises.
        """
        for _ in range(LOAD_ATTEMPTS):
            chain = sequence.chain(self._numbers("ledger/"), self._numbers("snapshot/"))
            state = self._read(chain) if chain else None
            if state:
                return state
        raise ConfigurationError(
            f"the ledger {self.s3.url_of(self.root)} has a gap: a record of the ledger was deleted. Restore the "
            "missing object below ledger/ (bucket versioning), or choose another sinkId and topicsDir; that sink "
            "starts at the offsets of its consumer group, or as spec.kafka.startingOffsets says."
        )

    def _read(self, chain: sequence.Chain) -> LedgerState | None:
        try:
            state = self._snapshot(chain.snapshot) if chain.snapshot else LedgerState()
            with pool(READERS, "s3sink-records") as readers:
                for record in readers.map(self.record, chain.records):
                    state = self._apply(state, record)
        except (NotFound, KeyError):  # deleted meanwhile, or replaced by a claim of another driver
            return None
        return state

    def catch_up(self, state: LedgerState) -> LedgerState:
        """The state after the records that follow `state`. Reads them one by one: during a listing a running driver
        would append the next one.

        The result may be out of date. It may include a claim that took the number of a deleted record. A claim on it
        must be confirmed (`is_head`).
        """
        start = state.number
        try:
            while True:
                state = self._apply(state, self.record(state.number + 1))
        except NotFound:
            return state if state.number > start else self.load()
        except KeyError:
            return self.load()

    def _apply(self, state: LedgerState, record: Record) -> LedgerState:
        try:
            return apply(state, record)
        except ValueError:
            raise files.unreadable(self.s3, self.key_of(record.number), "it does not fit the previous one") from None

    def record(self, number: int) -> Record:
        """Record `number`. Raises NotFound, LedgerUnreadable and ConfigurationError (format)."""
        return self._numbered(self._get(record_name(number), Record), number, record_name(number))

    def _snapshot(self, number: int) -> LedgerState:
        name = _snapshot_name(number)
        return self._numbered(self._get(name, LedgerState), number, name)

    def _numbered(self, value: N, number: int, name: str) -> N:
        if value.number != number:
            raise files.unreadable(self.s3, self.root + name, f"it contains number {value.number}")
        return value

    def claims(self, state: LedgerState) -> list[Record]:
        """All claims up to the state, in order. Drivers never delete claims; claims that a user has deleted are
        omitted."""
        with pool(READERS, "s3sink-claims") as readers:
            return [claim for claim in readers.map(self._claim, state.claims) if claim is not None]

    def _claim(self, number: int) -> Record | None:
        try:
            return self.record(number)
        except NotFound:
            return None

    def exists(self) -> bool:
        """Whether the ledger has a record."""
        return next(self._folders.files("ledger/"), None) is not None

    # -- writing -------------------------------------------------------------------------------------------------

    def append(self, record: Record) -> None:
        """Writes the record under its number.

        Raises LedgerFenced when another driver has written this number, TransientError when the store responds 409
        repeatedly and the record does not exist.
        """
        content = gzip.compress(msgspec.json.encode(record), 1, mtime=0)
        key = self.root + record_name(record.number)
        try:
            self.s3.put(key, content, only_if_absent=True)
        except PreconditionFailed:
            self._check_own(record)
        except Conflict as conflict:
            if self.s3.head(key) is None:
                raise TransientError(str(conflict)) from conflict
            self._check_own(record)

    def _check_own(self, record: Record) -> None:
        stored = self._stored(record.number)
        if stored != record:
            by = f" (attempt {stored.attempt}, epoch {stored.epoch})" if stored else ""
            raise LedgerFenced(
                f"another driver has written record {record.number} of {self.s3.url_of(self.root)}{by}; this one "
                f"(epoch {record.epoch}) stops. Run one driver per sink, or give the second sink its own sinkId."
            )

    def is_head(self, claim: int, state: LedgerState) -> bool:
        """Whether the claim that was just written after `state` is the head of the ledger, and `state` its predecessor.
        The claim is valid only if so."""
        return sequence.is_head(claim, self._numbers("ledger/"), self._numbers("snapshot/"), state.audited_to)

    def check_head(self, state: LedgerState) -> None:
        """Raises LedgerFenced when another driver has written the number after the state. It reads the record: one
        request, while after a HEAD of a missing record a listing has to confirm the bucket."""
        if self._stored(state.number + 1) is not None:
            self.check_owner(state)

    def check_owner(self, state: LedgerState) -> None:
        """Raises LedgerFenced when a record of another attempt follows the state. Claims are never deleted, so every
        claim is found. A record of this attempt is one whose PUT response was lost; the next driver completes it."""
        for number in sorted(number for number in self._numbers("ledger/") if number > state.number):
            record = self._stored(number)
            if record is None or record.attempt != self.attempt:
                raise LedgerFenced(
                    f"another driver has taken over the ledger {self.s3.url_of(self.root)} "
                    f"(record {number}{_describe_writer(record)}); this one stops. "
                    "If this repeats, another deployment uses the same bucket, topicsDir and sinkId: stop one of the "
                    "two."
                )

    def _stored(self, number: int) -> Record | None:
        """Record `number`; None if another driver has deleted it. Raises LedgerFenced for a record of another format,
        which another version of s3sink has written, and LedgerUnreadable."""
        try:
            return self._get(record_name(number), Record)
        except NotFound:
            return None
        except LedgerUnreadable:
            raise
        except ConfigurationError as other_format:
            raise LedgerFenced(f"another version of s3sink has taken over the ledger: {other_format}") from None

    def snapshot(self, state: LedgerState) -> LedgerState:
        """Writes the published log, then the snapshot; then deletes the records that two snapshots cover.

        Returns the state without its audit log. Raises TransientError when the store does not write the snapshot.
        """
        name = f"published/{state.audited_to:020d}-{state.number:020d}.jsonl.gz"
        lines = _since_snapshot(state)
        content = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        self.s3.put(self.root + name, gzip.compress(content, 5, mtime=0))
        kept = without_audit(state)
        name = _snapshot_name(state.number)
        try:
            content = gzip.compress(msgspec.json.encode(kept), 1, mtime=0)
            self.s3.put(self.root + name, content, only_if_absent=True)
        except (PreconditionFailed, Conflict) as rejected:
            # An existing snapshot is this driver's own, and the response was lost: another driver would first have
            # claimed a higher number.
            if self.s3.head(self.root + name) is None:
                raise TransientError(str(rejected)) from rejected
        self._delete_covered(kept)
        return kept

    def _delete_covered(self, state: LedgerState) -> None:
        records, snapshots = self._numbers("ledger/"), self._numbers("snapshot/")
        unacknowledged = min((o.record for o in state.pending.values()), default=state.number + 1)
        names = [record_name(n) for n in sequence.droppable(records, snapshots, state.claims, unacknowledged)]
        names += [_snapshot_name(n) for n in sequence.superseded_snapshots(snapshots)]
        if names:
            self.s3.delete([self.root + name for name in names])

    # -- published log and intents ---------------------------------------------------------------------------------

    def published(self, state: LedgerState) -> list[AuditEntry]:
        """The complete published log: its files, then the audit log in the state.

        Raises ConfigurationError when a file is missing, LedgerUnreadable when one cannot be read.
        """
        read = (files.read_lines(self.s3, each.key, AuditEntry) for each in self.published_files(state))
        entries = [entry for lines in read for entry in lines]
        return [*entries, *_since_snapshot(state)]

    def published_files(self, state: LedgerState) -> list[PublishedFile]:
        """The files of the published log up to the state, in order. Raises ConfigurationError when one is missing."""
        found = {each.end: each for each in _published(self._folders.files("published/"))}
        return _chain(found, state.audited_to, f"{self.url}published/")

    def write_intent(self, intent: Intent) -> None:
        """Writes the intent of a round. Its ranges cover those of the epoch's previous intents."""
        name = f"{self.root}intent/{intent.epoch:020d}-{intent.sequence:010d}.json.gz"
        self.s3.put(name, gzip.compress(msgspec.json.encode(intent), 1, mtime=0))

    def intents(self) -> tuple[list[StoredIntent], list[str]]:
        """The newest intent of each epoch, and the keys of the previous ones, which it covers. An intent that another
        driver deletes meanwhile is omitted."""
        listed = list(self._folders.files("intent/"))
        newest = {each.key.rsplit("/", 1)[1].split("-")[0]: each for each in listed}  # listings are in key order
        superseded = [each.key for each in listed if each not in newest.values()]
        stored = []
        for each in newest.values():
            with contextlib.suppress(NotFound):
                intent = self._get(each.key.removeprefix(self.root), Intent)
                stored.append(StoredIntent(each.key, each.last_modified_ms, intent))
        return stored, superseded

    # -- names and times ---------------------------------------------------------------------------------------------

    def key_of(self, number: int) -> str:
        """The key of record `number`."""
        return self.root + record_name(number)

    def record_time(self, number: int) -> int:
        """The time in ms at which the store wrote record `number`, by the store's clock. Raises LedgerFenced when it is
        missing."""
        head = self.s3.head(self.root + record_name(number))
        if head is None:
            raise LedgerFenced(
                f"record {number} of {self.s3.url_of(self.root)} was deleted: a newer driver has taken over "
                "the ledger. This one stops."
            )
        return head.last_modified_ms

    def _numbers(self, folder: str) -> set[int]:
        return {int(listed.key.rsplit("/", 1)[1].split(".")[0]) for listed in self._folders.files(folder)}

    def _get(self, name: str, kind: type[T]) -> T:
        return files.read(self.s3, self.root + name, kind, expected_format=FORMAT)


def _chain(found: Mapping[int, PublishedFile], end: int, folder: str) -> list[PublishedFile]:
    """The files up to record `end`, by which they are `found`. Raises ConfigurationError when one is missing."""
    chain: list[PublishedFile] = []
    while end:
        if end not in found:
            raise ConfigurationError(
                f"the published log {folder} has no file that ends at record {end}. Restore that object (an earlier "
                "version of it, or a backup)."
            )
        chain.append(found[end])
        end = found[end].start
    return chain[::-1]


def _published(listed: Iterable[Listed]) -> Iterator[PublishedFile]:
    """The files of the published log."""
    for each in listed:
        start, end = (int(n) for n in each.key.rsplit("/", 1)[1].split(".")[0].split("-"))
        yield PublishedFile(start, end, each.key, each.etag)


def published_times(s3: S3Client, root: str) -> dict[int, int]:
    """When each file of the published log was written, in ms by the store's clock, by the number of its last record."""
    listed = list(files.Folders(s3, root).files("published/"))
    at = {each.key: each.last_modified_ms for each in listed}
    return {each.end: at[each.key] for each in _published(listed)}


def _describe_writer(record: Record | None) -> str:
    """Epoch, attempt and time (the writer's clock) of the record, as text; empty if it was deleted."""
    if record is None:
        return ""
    at = datetime.fromtimestamp(record.clock // 1000, UTC).isoformat().replace("+00:00", "Z")
    return f", epoch {record.epoch}, attempt {record.attempt}, of {at}"


def _since_snapshot(state: LedgerState) -> list[AuditEntry]:
    """The lines that no file of the published log contains yet."""
    lines = [AuditEntry(object=o) for o in state.published]
    lines += [AuditEntry(rotation=r) for r in state.rotations]
    return lines + [AuditEntry(lost=each) for each in state.lost]
