"""The ledger on S3: records and snapshots written by conditional puts, read back as a state.

`<topicsDir>/_s3sink/<sink id>/` holds
    ledger/<20 digits>.json.gz      the records; the number is the lock (P4)
    snapshot/<20 digits>.json.gz    the whole state after that record
    published/<from>-<to>.jsonl.gz  what was acknowledged, and given up, in the records from … to
    intent/<epoch>-<sequence>.json.gz  the offsets at which an epoch's rounds may have opened objects (P10)
    staging/…                       leftovers of open objects (P6)
The body of a record is frozen before the first try: a 412 on our own attempt id means that the reply was lost.
"""

from __future__ import annotations

import contextlib
import gzip
from datetime import UTC, datetime
from typing import NamedTuple, Protocol, TypeVar

import msgspec

from sink_job.api.errors import ConfigurationError, LedgerFenced, TransientError
from sink_job.engine.thread_pools import pool
from sink_job.ledger import files, sequence
from sink_job.ledger.state import (
    FORMAT,
    ClosedObject,
    LedgerState,
    LostObject,
    Record,
    RotationRange,
    apply,
    without_audit,
)
from sink_job.s3 import Conflict, NotFound, PreconditionFailed, S3Client

T = TypeVar("T", bound="_Versioned")
N = TypeVar("N", Record, LedgerState)

LOAD_ATTEMPTS = 20

READERS = 16
"""Records that are read at a time."""


class _Versioned(Protocol):
    @property
    def format(self) -> int: ...


class Intent(msgspec.Struct, frozen=True):
    """What the rounds of an epoch may have opened: per topic-partition the offsets `[start, end)` they were given, and
    the settings (JSON) that their keys are made by.

    `sequence` counts the intents of the epoch from 1; each covers the ones before it. Each has a key of its own, so a
    put that reaches the store late replaces nothing.
    """

    epoch: int
    sequence: int
    round: int
    clock: int
    ranges: dict[str, tuple[int, int]]
    settings: tuple[str, ...] = ()
    format: int = msgspec.field(default_factory=lambda: FORMAT)


class StoredIntent(NamedTuple):
    """An intent as it is in the store: `at` in ms, by the server's clock."""

    key: str
    at: int
    intent: Intent


class AuditEntry(msgspec.Struct, frozen=True):
    """One line of the published list."""

    object: ClosedObject | None = None
    rotation: RotationRange | None = None
    lost: LostObject | None = None


class Ledger:
    """The ledger of one sink. It keeps no state but the attempt id; what was decided is in the `State` it returns."""

    def __init__(self, s3: S3Client, root: str, attempt: str) -> None:
        """`root` ends with `/`; `attempt` is unique to this process (it tells our own records from others')."""
        self.s3 = s3
        self.root = root
        self.attempt = attempt
        self._folders = files.Folders(s3, root)

    @property
    def url(self) -> str:
        """Where it is."""
        return f"s3://{self.s3.bucket}/{self.root}"

    # -- reading -------------------------------------------------------------------------------------------------

    def load(self) -> LedgerState:
        """The newest state. Records and snapshots may be dropped while it reads: a missing number means list again."""
        for _ in range(LOAD_ATTEMPTS):
            chain = sequence.chain(self._numbers("ledger/"), self._numbers("snapshot/"))
            state = self._read(chain) if chain else None
            if state:
                return state
        raise ConfigurationError(
            f"the ledger s3://{self.s3.bucket}/{self.root} has a gap in its records: one was deleted by hand. "
            "Restore the missing ledger/ object (bucket versioning), or choose another sinkId, which starts from the "
            "group's offsets."
        )

    def _read(self, chain: sequence.Chain) -> LedgerState | None:
        try:
            state = self._snapshot(chain.snapshot) if chain.snapshot else LedgerState()
            with pool(READERS, "s3sink-records") as readers:
                for record in readers.map(self.record, chain.records):
                    state = apply(state, record)
        except (NotFound, KeyError):  # dropped meanwhile, or another's claim read in the place of a dropped record
            return None
        return state

    def catch_up(self, state: LedgerState) -> LedgerState:
        """The state after the records that follow it, read one by one without a listing: a driver that is at work
        writes another one while all is listed and read. What it gives may be out of date, as a listing may, and a claim
        that fell into a dropped number may have been read for a record: a claim on it has to be confirmed
        (`is_head`)."""
        begun = state.number
        try:
            while True:
                state = apply(state, self.record(state.number + 1))
        except NotFound:
            return state if state.number > begun else self.load()
        except KeyError:
            return self.load()

    def record(self, number: int) -> Record:
        return self._numbered(self._get(self._record_name(number), Record), number, self._record_name(number))

    def _snapshot(self, number: int) -> LedgerState:
        name = self._snapshot_name(number)
        return self._numbered(self._get(name, LedgerState), number, name)

    def _numbered(self, value: N, number: int, name: str) -> N:
        if value.number != number:
            raise files.unreadable(self.s3, self.root + name, f"it holds number {value.number}")
        return value

    def claims(self, state: LedgerState) -> list[Record]:
        """Every claim up to the state, in order: none is ever dropped. One that was deleted by hand is left out."""
        with pool(READERS, "s3sink-claims") as readers:
            return [claim for claim in readers.map(self._claim, state.claims) if claim is not None]

    def _claim(self, number: int) -> Record | None:
        try:
            return self.record(number)
        except NotFound:
            return None

    def exists(self) -> bool:
        return next(self._folders.files("ledger/"), None) is not None

    # -- writing -------------------------------------------------------------------------------------------------

    def append(self, record: Record) -> None:
        """Writes the record under its number.

        Raises LedgerFenced when another driver's record is there, TransientError when the store keeps answering 409 and
        nothing is there.
        """
        body = gzip.compress(msgspec.json.encode(record), 1, mtime=0)
        key = self.root + self._record_name(record.number)
        try:
            self.s3.put(key, body, only_if_absent=True)
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
                f"another driver has written record {record.number} of s3://{self.s3.bucket}/{self.root}{by}; this one "
                f"(epoch {record.epoch}) stops. Run one driver per sink, or give the second sink its own sinkId."
            )

    def is_head(self, claim: int, state: LedgerState) -> bool:
        """Whether the claim just written on `state` is the head of the ledger, and `state` what the ledger has decided;
        to be asked before anything is done on it."""
        return sequence.is_head(claim, self._numbers("ledger/"), self._numbers("snapshot/"), state.audited_to)

    def check_head(self, state: LedgerState) -> None:
        """Raises LedgerFenced when another driver has taken the number after the state."""
        if self.s3.head(self.root + self._record_name(state.number + 1)) is not None:
            self.check_owner(state)

    def check_owner(self, state: LedgerState) -> None:
        """Raises LedgerFenced when there is a record of another attempt above the state: claims are never dropped, so
        none is missed. One of this attempt was put and its reply lost; the next driver finishes it."""
        for number in sorted(number for number in self._numbers("ledger/") if number > state.number):
            record = self._stored(number)
            if record is None or record.attempt != self.attempt:
                raise LedgerFenced(
                    f"another driver has taken over the ledger s3://{self.s3.bucket}/{self.root} "
                    f"(record {number}{self._describe_writer(record)}); this one stops."
                )

    def _stored(self, number: int) -> Record | None:
        """Record `number` of whatever format; None where it was dropped, which another driver did."""
        try:
            return files.read(self.s3, self.root + self._record_name(number), Record)
        except NotFound:
            return None

    @staticmethod
    def _describe_writer(record: Record | None) -> str:
        """Who wrote the record, and when by the writer's clock; nothing where it cannot be read any more."""
        if record is None:
            return ""
        at = datetime.fromtimestamp(record.clock // 1000, UTC).isoformat().replace("+00:00", "Z")
        return f", epoch {record.epoch}, attempt {record.attempt}, of {at}"

    def snapshot(self, state: LedgerState) -> LedgerState:
        """Writes the published list, then the snapshot; then drops what two snapshots cover. Returns the state to go on
        with, its audit emptied."""
        name = f"published/{state.audited_to:020d}-{state.number:020d}.jsonl.gz"
        lines = _since_snapshot(state)
        body = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        self.s3.put(self.root + name, gzip.compress(body, 5, mtime=0))
        kept = without_audit(state)
        name = self._snapshot_name(state.number)
        try:
            body = gzip.compress(msgspec.json.encode(kept), 1, mtime=0)
            self.s3.put(self.root + name, body, only_if_absent=True)
        except (PreconditionFailed, Conflict) as refused:
            # Our own, its reply lost: another driver would have claimed a number above ours first.
            if self.s3.head(self.root + name) is None:
                raise TransientError(str(refused)) from refused
        self._drop(kept)
        return kept

    def _drop(self, state: LedgerState) -> None:
        records, snapshots = self._numbers("ledger/"), self._numbers("snapshot/")
        unacknowledged = min((o.record for o in state.pending.values()), default=state.number + 1)
        names = [self._record_name(n) for n in sequence.droppable(records, snapshots, state.claims, unacknowledged)]
        names += [self._snapshot_name(n) for n in sequence.superseded_snapshots(snapshots)]
        if names:
            self.s3.delete([self.root + name for name in names])

    # -- published list and intents --------------------------------------------------------------------------------

    def published(self, state: LedgerState) -> list[AuditEntry]:
        """The whole audit: what the published files say, then what the state has since its snapshot."""
        lines: list[AuditEntry] = []
        found = {}
        for listed in self._folders.files("published/"):
            start, end = (int(n) for n in listed.key.rsplit("/", 1)[1].split(".")[0].split("-"))
            found[end] = (start, listed.key)
        end = state.audited_to
        while end:
            if end not in found:
                raise ConfigurationError(
                    f"the published list of s3://{self.s3.bucket}/{self.root} has no file that ends at record {end}"
                )
            start, key = found[end]
            lines[:0] = files.read_lines(self.s3, key, AuditEntry)
            end = start
        return [*lines, *_since_snapshot(state)]

    def write_intent(self, intent: Intent) -> None:
        """Writes the intent of the epoch's round under way; its ranges cover those of the epoch's earlier intents."""
        name = f"{self.root}intent/{intent.epoch:020d}-{intent.sequence:010d}.json.gz"
        self.s3.put(name, gzip.compress(msgspec.json.encode(intent), 1, mtime=0))

    def intents(self) -> tuple[list[StoredIntent], list[str]]:
        """The newest intent of each epoch, with the time at which the server wrote it; and the keys of the earlier
        ones, which it covers. One that another driver's clean-up removes meanwhile is left out."""
        listed = list(self._folders.files("intent/"))
        newest = {each.key.rsplit("/", 1)[1].split("-")[0]: each for each in listed}  # listed in the order of keys
        superseded = [each.key for each in listed if each not in newest.values()]
        written = []
        for each in newest.values():
            with contextlib.suppress(NotFound):
                intent = self._get(each.key.removeprefix(self.root), Intent)
                written.append(StoredIntent(each.key, each.last_modified_ms, intent))
        return written, superseded

    # -- small things ------------------------------------------------------------------------------------------------

    @staticmethod
    def _record_name(number: int) -> str:
        return f"ledger/{number:020d}.json.gz"

    @staticmethod
    def _snapshot_name(number: int) -> str:
        return f"snapshot/{number:020d}.json.gz"

    def key_of(self, number: int) -> str:
        """The key of record `number`."""
        return self.root + self._record_name(number)

    def record_time(self, number: int) -> int:
        """When the server wrote record `number`, by the server's clock (ms)."""
        head = self.s3.head(self.root + self._record_name(number))
        if head is None:
            raise LedgerFenced(
                f"record {number} of s3://{self.s3.bucket}/{self.root} is gone: a newer driver dropped it"
            )
        return head.last_modified_ms

    def _numbers(self, folder: str) -> set[int]:
        return {int(listed.key.rsplit("/", 1)[1].split(".")[0]) for listed in self._folders.files(folder)}

    def _get(self, name: str, kind: type[T]) -> T:
        return files.read(self.s3, self.root + name, kind, expected_format=FORMAT)


def _since_snapshot(state: LedgerState) -> list[AuditEntry]:
    """The lines of the published list that no file of it has yet."""
    lines = [AuditEntry(object=o) for o in state.published]
    lines += [AuditEntry(rotation=r) for r in state.rotations]
    return lines + [AuditEntry(lost=each) for each in state.lost]
