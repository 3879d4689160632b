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

from sink_job.api.errors import ConfigurationError, LedgerFenced
from sink_job.rounds import history
from sink_job.rounds.pools import pool
from sink_job.rounds.state import FORMAT, PLAIN, Lost, NamedObject, Record, Rotation, State, apply, audited
from sink_job.s3 import S3, NotFound, PreconditionFailed

T = TypeVar("T", bound="_Versioned")

LOAD_ATTEMPTS = 20

READERS = 16
"""Claims that are read at a time."""


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
    format: int = PLAIN


class Written(NamedTuple):
    """An intent as it is in the store: `at` in ms, by the server's clock."""

    key: str
    at: int
    intent: Intent


class Audit(msgspec.Struct, frozen=True):
    """One line of the published list."""

    object: NamedObject | None = None
    rotation: Rotation | None = None
    lost: Lost | None = None


class Ledger:
    """The ledger of one sink. It keeps no state but the attempt id; what was decided is in the `State` it returns."""

    def __init__(self, s3: S3, root: str, attempt: str) -> None:
        """`root` ends with `/`; `attempt` is unique to this process (it tells our own records from others')."""
        self.s3 = s3
        self.root = root
        self.attempt = attempt

    @property
    def url(self) -> str:
        """Where it is."""
        return f"s3://{self.s3.bucket}/{self.root}"

    # -- reading -------------------------------------------------------------------------------------------------

    def load(self) -> State:
        """The newest state. Records and snapshots may be dropped while it reads: a missing number means list again."""
        for _ in range(LOAD_ATTEMPTS):
            chain = history.chain(self._numbers("ledger/"), self._numbers("snapshot/"))
            state = self._read(chain) if chain else None
            if state:
                return state
        raise ConfigurationError(
            f"the ledger s3://{self.s3.bucket}/{self.root} has a gap in its records: one was deleted by hand. "
            "Restore the missing ledger/ object (bucket versioning), or choose another sinkId, which starts from the "
            "group's offsets."
        )

    def _read(self, chain: history.Chain) -> State | None:
        try:
            state = self._get(f"snapshot/{chain.snapshot:020d}.json.gz", State) if chain.snapshot else State()
            for number in chain.records:
                state = apply(state, self.record(number))
        except NotFound:
            return None
        return state

    def record(self, number: int) -> Record:
        return self._get(self._record_name(number), Record)

    def claims(self, state: State) -> list[Record]:
        """Every claim up to the state, in order: none is ever dropped. One that was deleted by hand is left out."""
        with pool(READERS, "s3sink-claims") as readers:
            return [claim for claim in readers.map(self._claim, state.claims) if claim is not None]

    def _claim(self, number: int) -> Record | None:
        try:
            return self.record(number)
        except NotFound:
            return None

    def exists(self) -> bool:
        return next(iter(self.s3.list(f"{self.root}ledger/")), None) is not None

    # -- writing -------------------------------------------------------------------------------------------------

    def append(self, record: Record) -> None:
        """Writes the record under its number.

        Raises LedgerFenced when another driver's record stands there.
        """
        body = gzip.compress(msgspec.json.encode(record), 1, mtime=0)
        try:
            self.s3.put(self.root + self._record_name(record.number), body, only_if_absent=True)
        except PreconditionFailed:
            self._expect_own(record)

    def _expect_own(self, record: Record) -> None:
        try:
            stored = self.record(record.number)
        except NotFound:
            stored = None
        if stored != record:
            by = f" (attempt {stored.attempt}, epoch {stored.epoch})" if stored else ""
            raise LedgerFenced(
                f"another driver has written record {record.number} of s3://{self.s3.bucket}/{self.root}{by}; this one "
                f"(epoch {record.epoch}) stops. Run one driver per sink, or give the second sink its own sinkId."
            )

    def is_head(self, claim: int) -> bool:
        """Whether the claim just written is the head of the ledger; to be asked before anything is done on it."""
        return history.is_head(claim, self._numbers("ledger/"), self._numbers("snapshot/"))

    def check_head(self, state: State) -> None:
        """Raises LedgerFenced when there is a record above the state: claims are never dropped, so none is missed."""
        number = state.number + 1
        if self.s3.head(self.root + self._record_name(number)) is not None:
            raise LedgerFenced(
                f"another driver has taken over the ledger s3://{self.s3.bucket}/{self.root} "
                f"(record {number}{self._whose(number)}); this one stops."
            )

    def _whose(self, number: int) -> str:
        """Who wrote record `number`, and when by the writer's clock; nothing where it cannot be read any more."""
        try:
            record = self.record(number)
        except NotFound:
            return ""
        at = datetime.fromtimestamp(record.clock // 1000, UTC).isoformat().replace("+00:00", "Z")
        return f", epoch {record.epoch}, attempt {record.attempt}, of {at}"

    def snapshot(self, state: State) -> State:
        """Writes the published list, then the snapshot; then drops what two snapshots cover. Returns the state to go on
        with, its audit emptied."""
        name = f"published/{state.audited_to:020d}-{state.number:020d}.jsonl.gz"
        lines = _since_snapshot(state)
        body = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        self.s3.put(self.root + name, gzip.compress(body, 5, mtime=0))
        kept = audited(state)
        try:
            body = gzip.compress(msgspec.json.encode(kept), 1, mtime=0)
            self.s3.put(f"{self.root}snapshot/{state.number:020d}.json.gz", body, only_if_absent=True)
        except PreconditionFailed:
            pass  # our own, its reply lost: another driver would have claimed a number above ours first
        self._drop(kept)
        return kept

    def _drop(self, state: State) -> None:
        records, snapshots = self._numbers("ledger/"), self._numbers("snapshot/")
        unacknowledged = min((o.record for o in state.pending.values()), default=state.number + 1)
        names = [self._record_name(n) for n in history.droppable(records, snapshots, state.claims, unacknowledged)]
        names += [f"snapshot/{n:020d}.json.gz" for n in history.superseded(snapshots)]
        if names:
            self.s3.delete([self.root + name for name in names])

    # -- published list and intents --------------------------------------------------------------------------------

    def published(self, state: State) -> list[Audit]:
        """The whole audit: what the published files say, then what the state has since its snapshot."""
        lines: list[Audit] = []
        files = {}
        for listed in self.s3.list(f"{self.root}published/"):
            start, end = (int(n) for n in listed.key.rsplit("/", 1)[1].split(".")[0].split("-"))
            files[end] = (start, listed.key)
        end = state.audited_to
        while end:
            if end not in files:
                raise ConfigurationError(
                    f"the published list of s3://{self.s3.bucket}/{self.root} has no file that ends at record {end}"
                )
            start, key = files[end]
            decoded = [msgspec.json.decode(line, type=Audit) for line in gzip.decompress(self.s3.get(key)).splitlines()]
            lines[:0] = decoded
            end = start
        return [*lines, *_since_snapshot(state)]

    def intend(self, intent: Intent) -> None:
        """Writes the intent of the epoch's round under way; its ranges cover those of the epoch's earlier intents."""
        name = f"{self.root}intent/{intent.epoch:020d}-{intent.sequence:010d}.json.gz"
        self.s3.put(name, gzip.compress(msgspec.json.encode(intent), 1, mtime=0))

    def intents(self) -> tuple[list[Written], list[str]]:
        """The newest intent of each epoch, with the time at which the server wrote it; and the keys of the earlier
        ones, which it covers. One that another driver's clean-up removes meanwhile is left out."""
        listed = list(self.s3.list(f"{self.root}intent/"))
        newest = {each.key.rsplit("/", 1)[1].split("-")[0]: each for each in listed}  # listed in the order of keys
        superseded = [each.key for each in listed if each not in newest.values()]
        written = []
        for each in newest.values():
            with contextlib.suppress(NotFound):
                intent = self._get(each.key.removeprefix(self.root), Intent)
                written.append(Written(each.key, each.last_modified_ms, intent))
        return written, superseded

    # -- small things ------------------------------------------------------------------------------------------------

    @staticmethod
    def _record_name(number: int) -> str:
        return f"ledger/{number:020d}.json.gz"

    def claimed_at(self, number: int) -> int:
        """When the server wrote record `number`, by the server's clock (ms)."""
        head = self.s3.head(self.root + self._record_name(number))
        if head is None:
            raise LedgerFenced(
                f"record {number} of s3://{self.s3.bucket}/{self.root} is gone: a newer driver dropped it"
            )
        return head.last_modified_ms

    def _numbers(self, folder: str) -> set[int]:
        return {int(listed.key.rsplit("/", 1)[1].split(".")[0]) for listed in self.s3.list(self.root + folder)}

    def _get(self, name: str, kind: type[T]) -> T:
        value = msgspec.json.decode(gzip.decompress(self.s3.get(self.root + name)), type=kind)
        if value.format > FORMAT:
            raise ConfigurationError(
                f"s3://{self.s3.bucket}/{self.root}{name} has format {value.format}; this version reads {FORMAT}. "
                "Upgrade s3sink."
            )
        return value


def _since_snapshot(state: State) -> list[Audit]:
    """The lines of the published list that no file of it has yet."""
    lines = [Audit(object=o) for o in state.published]
    lines += [Audit(rotation=r) for r in state.rotations]
    return lines + [Audit(lost=each) for each in state.lost]
