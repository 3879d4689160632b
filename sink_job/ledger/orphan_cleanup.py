"""Removes orphaned uploads, staging objects and intents of crashed rounds (P10)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from sink_job.api.errors import AccessDenied
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.first_claim.ledger_place import home_of, owner_file
from sink_job.ledger.staging import is_expired, staged_dead_letters
from sink_job.ledger.state import LedgerState
from sink_job.ledger.store import Intent, Ledger, StoredIntent
from sink_job.partitioning.object_keys import parse_key, upload_prefixes, without_nested
from sink_job.s3 import S3Client

INTENT_RETENTION_MS = 24 * 3_600_000
"""Retention of the intents of previous epochs, in ms. Uploads that late tasks of these epochs start are aborted within
this time."""

_log = logging.getLogger(__name__)


class OrphanCleaner:
    """Removes the orphans of one ledger. Uploads and objects of other programs are not touched (P10)."""

    def __init__(self, s3: S3Client, ledger: Ledger, epoch: int) -> None:
        self.s3 = s3
        self.ledger = ledger
        self.epoch = epoch

    def run(self, state: LedgerState, recorded: int) -> int:
        """Aborts uploads and deletes staging objects that the state does not refer to; returns their number.

        `recorded` is the number of the claim or of the last round. Uploads that started after the store wrote that
        record are kept.
        """
        before = self.ledger.record_time(recorded)
        intents, superseded = self.ledger.intents()
        removed = self._abort_uploads(state, [each.intent for each in intents], before)
        removed += self._delete_staging(state)
        self._delete_produced(state, before)
        self._clear_probes(before)
        self._expire_intents(intents, before)
        self.s3.delete(superseded)
        return removed

    def _abort_uploads(self, state: LedgerState, intents: Iterable[Intent], before: int) -> int:
        referenced = state.uploads()
        texts = {*state.settings.values(), *(text for intent in intents for text in intent.settings)}
        settings_of_claims = [ObjectSettings.model_validate_json(text) for text in sorted(texts)]
        ranges = _ranges(intents)
        topics = {tp.topic for tp in ranges}
        prefixes = {
            prefix
            for object_settings in settings_of_claims
            for topic in topics
            for prefix in upload_prefixes(object_settings, topic)
        }
        removed = 0
        for prefix in without_nested(prefixes):
            for upload in self.s3.list_uploads(prefix):
                if upload.upload_id in referenced or upload.initiated_ms >= before:
                    continue
                if any(_could_open(object_settings, upload.key, ranges) for object_settings in settings_of_claims):
                    removed += self._aborted(upload.key, upload.upload_id)
        if removed:
            _log.info("aborted %d orphaned uploads of previous rounds", removed)
        return removed

    def _delete_staging(self, state: LedgerState) -> int:
        prefix = f"{self.ledger.root}staging/"
        referenced = state.staged()
        orphaned = [
            listed.key
            for listed in self.s3.list(prefix)
            if listed.key not in referenced and is_expired(listed.key.removeprefix(prefix), self.epoch, state.number)
        ]
        self.s3.delete(orphaned)
        return len(orphaned)

    def _aborted(self, key: str, upload_id: str) -> bool:
        """Whether an upload could be aborted. With `s3.assumeRole`, a key below an earlier prefix may not be changed:
        the start has tested the permissions for the present ones."""
        try:
            self.s3.abort(key, upload_id)
        except AccessDenied as denied:
            _log.warning("an unfinished upload below an earlier prefix is left: %s", denied)
            return False
        return True

    def _delete_produced(self, state: LedgerState, before: int) -> None:
        """Deletes dead-letter objects in the ledger's folder whose records are in their topic: the state does not list
        them. An object that is younger than `before` may be of a later driver."""
        prefix = staged_dead_letters(self.ledger.root)
        self.s3.delete(
            [old.key for old in self.s3.list(prefix) if old.key not in state.pending and old.last_modified_ms < before]
        )

    def _clear_probes(self, before: int) -> None:
        """Removes uploads and objects of a store probe that did not complete."""
        prefixes = dict.fromkeys(f"{each}probe/" for each in (self.ledger.root, home_of(self.s3, self.ledger.root)))
        over = [] if len(prefixes) == 1 else [owner_file(self.s3, self.ledger.root)]  # as `probe_existing`
        for prefix in (*prefixes, *over):
            for upload in self.s3.list_uploads(prefix):
                if upload.initiated_ms < before:
                    self.s3.abort(upload.key, upload.upload_id)
        for prefix in prefixes:
            self.s3.delete([old.key for old in self.s3.list(prefix) if old.last_modified_ms < before])

    def _expire_intents(self, intents: Iterable[StoredIntent], before: int) -> None:
        """Deletes expired intents of previous epochs by the store's clock: the host's clock may be wrong, and only an
        intent leads to its uploads."""
        expired = before - INTENT_RETENTION_MS
        self.s3.delete([each.key for each in intents if each.intent.epoch < self.epoch and each.at < expired])


def _ranges(intents: Iterable[Intent]) -> dict[TopicPartition, list[tuple[int, int]]]:
    ranges: dict[TopicPartition, list[tuple[int, int]]] = {}
    for intent in intents:
        for name, (start, end) in intent.ranges.items():
            ranges.setdefault(TopicPartition.parse(name), []).append((start, end))
    return ranges


def _could_open(
    object_settings: ObjectSettings, key: str, ranges: Mapping[TopicPartition, list[tuple[int, int]]]
) -> bool:
    """Whether a round with these ranges could have opened an object at `key`."""
    parsed = parse_key(object_settings, key)
    if parsed is None:
        return False
    mine = ranges.get(TopicPartition(parsed.topic, parsed.partition), ())
    return any(start <= parsed.first < end for start, end in mine)
