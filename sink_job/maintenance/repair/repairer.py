"""`s3sink repair`: restores missing and damaged objects. The sink may be running: no claim is needed, because no object
gets other bytes than the ledger records (docs/adr/0050). To record losses, the ledger is claimed.

For each object: what is at its key is compared with the ledger; its recorded bytes are uploaded from an older version,
else from Kafka; the upload is completed on the condition that the key is as it was read. A condition that fails, or an
upload that another process has aborted, starts this again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from msgspec import UNSET

from sink_job.api.errors import ConfigurationError, TransientError, UnsupportedStore
from sink_job.ledger.first_claim.ledger_place import home_of
from sink_job.ledger.store import Ledger
from sink_job.maintenance.repair.accepted_loss import AcceptedLosses
from sink_job.maintenance.repair.damage import Suspect, Suspects, published, suspects
from sink_job.maintenance.repair.inspection import StoredState, inspect
from sink_job.maintenance.repair.kafka_source import KafkaReader, KafkaSource
from sink_job.maintenance.repair.kept_bytes import kept
from sink_job.maintenance.repair.replacement import RecordedBytes, complete
from sink_job.maintenance.repair.results import RepairOutcome, RepairReport, RepairResults, Source
from sink_job.maintenance.repair.run_marks import FOLDER, RunMarks
from sink_job.maintenance.repair.version_source import VersionSource
from sink_job.s3 import S3Client, S3Outcome, has_default_retention, probe_replacement

MAX_ATTEMPTS = 5
"""Attempts to restore an object that other processes change meanwhile."""


@dataclass(frozen=True, kw_only=True)
class RepairRequest:
    """What to repair. `keys`: only these objects. With `dry_run` nothing is written. `probes`: the store is tried
    before the first damaged object is replaced. `accept_loss` claims the ledger and records that objects are lost; None
    if losses are not accepted."""

    keys: Collection[str] = ()
    dry_run: bool = False
    probes: bool = True
    accept_loss: Callable[[Sequence[Suspect]], AcceptedLosses] | None = None


class Repairer:
    """Repairs the objects of one ledger."""

    def __init__(
        self,
        s3: S3Client,
        source: KafkaSource,
        attempt: str,
        *,
        connect: Callable[[], KafkaReader],
        request: RepairRequest,
    ) -> None:
        """`attempt` is unique to this run. `connect` returns what reads from Kafka; it is called only if it is needed,
        at each attempt."""
        self._s3 = s3
        self._source = source
        root = source.evidence.root
        self._versions = VersionSource(s3)
        self._marks = RunMarks(s3, root, attempt)
        self._ledger = Ledger(s3, root, attempt)
        self._state = source.evidence.current.state
        self._connect = connect
        self._request = request
        self._results = RepairResults()
        self._probed = not request.probes
        self._rejected: ConfigurationError | None = None

    def run(self, sink_id: str) -> RepairReport:
        """Repairs the damaged objects. Raises ConfigurationError for a key that the ledger does not list,
        TransientError if other processes change an object at each attempt, and the errors of Kafka and the store."""
        evidence = self._source.evidence
        found = suspects(evidence, self._s3.bucket, self._request.keys)
        damaged = [s for s in found.objects if self._is_damaged(s)]
        if self._request.dry_run:
            self._plan(damaged)
        else:
            self._repair(damaged)
            self._accept_losses()
        return self._report(sink_id, found)

    def _report(self, sink_id: str, found: Suspects) -> RepairReport:
        place = self._s3.settings.ledger
        return RepairReport(
            sink_id=sink_id,
            bucket=self._s3.bucket,
            kept_bucket=UNSET if place is None else place.settings.bucket,
            dry_run=self._request.dry_run,
            objects=tuple(self._results.done[s.o.key] for s in found.objects if s.o.key in self._results.done),
            removed=found.removed,
            pending=found.pending,
            notes=() if self._versions.note is None else (self._versions.note,),
            accepted=found.accepted,
            record=self._results.record,
        )

    def _is_damaged(self, suspect: Suspect) -> bool:
        if suspect.replaced_by_later:
            self._results.damaged(suspect.o.key, "a later generation has its own object at this key")
            return True
        damage = inspect(self._s3, suspect.o).damage
        if damage is not None:
            self._results.damaged(suspect.o.key, damage)
        return damage is not None

    def _plan(self, damaged: Sequence[Suspect]) -> None:
        left = [s for s in damaged if not self._not_mine(s)]
        for suspect in left:
            if self._versions.holds(suspect.o):
                self._results.finish(suspect.o, RepairOutcome.RESTORABLE, Source.VERSION)
        left = [s for s in left if s.o.key not in self._results.done]
        reasons = {}
        if left:
            reasons = self._source.reasons(self._connect().admin, left)
        for suspect in left:
            reason = reasons.get(suspect.o.key)
            if reason is None:
                self._results.finish(suspect.o, RepairOutcome.RESTORABLE, Source.KAFKA)
            else:
                self._results.finish(suspect.o, RepairOutcome.NOT_RESTORABLE, message=reason)

    def _repair(self, damaged: Sequence[Suspect]) -> None:
        """Restores the objects. Uploads of runs that were killed are aborted first; their objects get the tags with
        offsets, which come after the completion."""
        unfinished = self._marks.unfinished()
        left = [s for s in damaged if not self._not_mine(s)]
        keys = {s.o.key for s in left}
        if not keys | unfinished.keys and not unfinished.expired:
            return
        self._marks.abort_uploads(keys | unfinished.keys, self._state.uploads())
        for o in published(self._source.evidence, unfinished.keys - keys):
            self._s3.tag_offsets(o.key, o.first, o.last, o.offsets.count)
        if left:
            self._marks.write(keys)
        for _ in range(MAX_ATTEMPTS):
            left = self._attempt(left) if left else []
        self._marks.delete(unfinished.expired)
        if left:
            raise self._rejected or TransientError(
                f"{self._s3.url_of(left[0].o.key)}: other processes have changed this object, or aborted its "
                f"upload, {MAX_ATTEMPTS} times in a row. Find out which program writes below spec.s3.topicsDir, then "
                "repeat this command"
            )

    def _not_mine(self, suspect: Suspect) -> bool:
        if suspect.replaced_by_later:
            message = "the object of the ended generation cannot be restored at this key. Nothing is to be done"
            self._results.finish(suspect.o, RepairOutcome.NOT_RESTORABLE, message=message)
        return suspect.replaced_by_later

    def _attempt(self, todo: Sequence[Suspect]) -> list[Suspect]:
        """Tries each object once; returns the ones to try again."""
        for_kafka: list[Suspect] = []
        again: list[Suspect] = []
        for suspect in todo:
            stored = self._inspected(suspect)
            if stored is None:
                continue
            try:
                content = self._versions.upload(suspect.o)
            except S3Outcome:
                again.append(suspect)
                continue
            if content is None:
                for_kafka.append(suspect)
            elif not self._complete(suspect, stored, content, Source.VERSION):
                again.append(suspect)
        return [*again, *(self._from_kafka(for_kafka) if for_kafka else ())]

    def _from_kafka(self, todo: Sequence[Suspect]) -> list[Suspect]:
        found = self._source.upload(self._connect(), todo)
        again: list[Suspect] = []
        for suspect in todo:
            o = suspect.o
            if (content := found.content.get(o.key)) is not None:
                stored = self._inspected(suspect)
                if stored is None:
                    self._s3.abort(o.key, content.upload)
                elif not self._complete(suspect, stored, content, Source.KAFKA):
                    again.append(suspect)
            elif o.key in found.reasons:
                self._results.finish(o, RepairOutcome.NOT_RESTORABLE, message=found.reasons[o.key])
                self._results.lost.append(suspect)
            else:
                again.append(suspect)
        return again

    def _accept_losses(self) -> None:
        """Records the objects without a source of their bytes as lost, if the request accepts it."""
        if self._request.accept_loss is not None and self._results.lost:
            self._results.accept(self._request.accept_loss(self._results.lost))

    def _inspected(self, suspect: Suspect) -> StoredState | None:
        """What is at the key; None if it is the recorded object, which another run has restored."""
        stored = inspect(self._s3, suspect.o)
        if stored.damage is None:
            self._results.finish(suspect.o, RepairOutcome.RESTORED, Source.ANOTHER_RUN)
            return None
        return stored

    def _complete(self, suspect: Suspect, stored: StoredState, content: RecordedBytes, source: Source) -> bool:
        """Completes the upload; False if the object has to be tried again."""
        o = suspect.o
        try:
            self._check_generation()
            if stored.etag is not None and not self._probed:
                self._check_replacement()
                self._probed = True
        except UnsupportedStore as ignored:
            self._s3.abort(o.key, content.upload)
            self._results.finish(o, RepairOutcome.NOT_RESTORABLE, message=str(ignored))
            return True
        except S3Outcome:  # another command has aborted the upload of the probe
            self._s3.abort(o.key, content.upload)
            return False
        replaced = complete(self._s3, self._ledger.root, o, stored, content)
        self._rejected = replaced.rejected
        self._results.kept(o.key, replaced.kept)
        if replaced.is_right:
            self._s3.tag_offsets(o.key, o.first, o.last, o.offsets.count)
            self._results.finish(o, RepairOutcome.RESTORED, source)
        return replaced.is_right

    def _check_replacement(self) -> None:
        """Checks that the store of the objects honours If-Match, in a bucket that may lock what is written."""
        if self._s3.settings.ledger is not None and has_default_retention(self._s3):
            return  # each version is kept, so a replacement loses nothing
        probe_replacement(self._s3, f"{home_of(self._s3, self._ledger.root)}{FOLDER}")

    def _check_generation(self) -> None:
        """Raises TransientError after an offset reset: the records of the object may be copied again."""
        generation = self._state.generation
        self._state = self._ledger.catch_up(self._state)
        if self._state.generation != generation:
            raise TransientError(
                f"{self._ledger.url}: an offset reset has started generation {self._state.generation} meanwhile. "
                "Repeat this command: it examines the objects of the ended generation by the new state"
            )


def discard_damaged(s3: S3Client, root: str, keys: Collection[str] = (), *, dry_run: bool = False) -> tuple[int, int]:
    """Deletes the copies of damaged bytes, or with `dry_run` none; returns their number and their size in bytes."""
    found = list(kept(s3, root, keys))
    if found and not dry_run:
        s3.delete(key for key, _ in found)
    return len(found), sum(size for _, size in found)
