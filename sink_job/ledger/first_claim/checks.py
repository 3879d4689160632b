"""The first start of a sink that continues another writer, such as a connector of Kafka Connect (P5).

The objects of that writer were compared with Kafka before the claim. Between the comparison and the claim, and until
this driver has aborted the unfinished uploads at keys of this form, a task of the writer that was not stopped may
make another object visible. So the objects are listed once more after the claim, before anything is read: by every
driver, until one of them has recorded the check.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping

from sink_job.api.errors import AccessDenied, ConfigurationError, LedgerLost
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.first_claim.previous_writer import PreviousWriter
from sink_job.ledger.state import LedgerState, PartitionState, Record
from sink_job.ledger.store import Ledger
from sink_job.partitioning.object_keys import is_internal, listing_prefixes, parse_key
from sink_job.s3 import Listed, S3Client, Upload

MAX_REPORTED = 3
"""Maximum number of objects in a message."""

_log = logging.getLogger(__name__)


def continued(
    partitions: Mapping[TopicPartition, PartitionState],
    previous: PreviousWriter,
    committed: Mapping[TopicPartition, int],
) -> dict[TopicPartition, PartitionState]:
    """The start of each topic-partition: behind the accepted objects. `committed` are the group's present offsets.

    Raises ConfigurationError if they are not those of the comparison.
    """
    present = {str(tp): offset for tp, offset in committed.items() if tp in partitions}
    if present != previous.offsets:
        raise ConfigurationError(
            f"the offsets of consumer group {previous.group} have changed since the objects were compared: they were "
            f"{_offsets(previous.offsets)} and are {_offsets(present)}. No ledger was created. Check that the "
            "connector is stopped, and start again."
        )
    starts = previous.starts
    return {tp: PartitionState.start(starts[str(tp)]) if str(tp) in starts else p for tp, p in partitions.items()}


def unchecked_claim(ledger: Ledger, state: LedgerState) -> Record | None:
    """The first claim, if it continues another writer and the ledger has nothing but claims; None otherwise."""
    if state.number != len(state.claims) or state.generation > 1:
        return None
    first = next(iter(ledger.claims(state)), None)
    return None if first is None or first.previous is None else first


def check_first_start(ledger: Ledger, state: LedgerState) -> None:
    """Raises ConfigurationError for a ledger whose first claim continues another writer, before a driver has recorded
    that its objects are still the accepted ones: after another record no driver would check it."""
    if unchecked_claim(ledger, state) is not None:
        raise ConfigurationError(
            f"the sink has not completed its first start in the place of another writer: {ledger.url} has nothing but "
            "its claim. Start the sink once, then repeat this command."
        )


def check_objects(
    s3: S3Client, settings: ObjectSettings, previous: PreviousWriter, starts: Mapping[TopicPartition, int], advice: str
) -> None:
    """Raises LedgerLost unless the objects from the committed offsets on are exactly the accepted ones. `starts` are
    the start offsets of the sink, `advice` what to do about an accepted object that has changed."""
    accepted = {each.key: each for each in previous.objects}
    lowest = {tp: previous.checked_from(tp, start) for tp, start in starts.items()}
    found = {each.key: each for tp, first, each in objects_of(s3, settings, starts) if first >= lowest[tp]}
    if others := sorted(found.keys() - accepted.keys()):
        raise LedgerLost(
            f"{_some(s3, others)} appeared after the objects of consumer group {previous.group} were compared: a task "
            "of the connector was still running. Nothing was copied. Check that the connector is stopped, move "
            f"{'it' if len(others) == 1 else 'them'} away and start again: the records are read from Kafka."
        )
    changed = [
        each.key
        for each in previous.objects
        if each.key not in found or (found[each.key].etag, found[each.key].size) != (each.etag, each.bytes)
    ]
    if changed:
        raise LedgerLost(
            f"{_some(s3, changed)} was deleted or changed after it was compared with Kafka. Nothing was copied. "
            f"{advice}"
        )


def abort_uploads(
    ledger: Ledger, state: LedgerState, settings: ObjectSettings, partitions: Collection[TopicPartition]
) -> int:
    """Aborts the unfinished uploads at keys of this sink; returns their number. The driver has claimed the ledger and
    has started none itself. A later driver starts its uploads after its claim: so the uploads are listed first, and the
    head of the ledger is checked before the first of them is aborted.

    Raises LedgerFenced when another driver has claimed the ledger.
    """
    uploads = [upload for _, upload in uploads_of(ledger.s3, settings, partitions)]
    if uploads:
        ledger.check_head(state)
    aborted = 0
    for upload in uploads:
        try:
            aborted += ledger.s3.abort(upload.key, upload.upload_id)
        except AccessDenied as denied:
            _log.warning("an unfinished upload of the previous writer is left: %s", denied)
    return aborted


def uploads_of(
    s3: S3Client, settings: ObjectSettings, partitions: Collection[TopicPartition]
) -> Iterator[tuple[TopicPartition, Upload]]:
    """The unfinished uploads at keys of this sink."""
    for prefix in _prefixes(settings, partitions):
        for upload in s3.list_uploads(prefix):
            parsed = None if is_internal(settings, upload.key) else parse_key(settings, upload.key)
            if parsed is None:
                continue
            tp = TopicPartition(parsed.topic, parsed.partition)
            if tp in partitions:
                yield tp, upload


def objects_of(
    s3: S3Client, settings: ObjectSettings, partitions: Collection[TopicPartition]
) -> Iterator[tuple[TopicPartition, int, Listed]]:
    """The objects at keys of this sink: topic-partition, first offset by the key, and the object."""
    for prefix in _prefixes(settings, partitions):
        for listed in s3.list(prefix):
            parsed = None if is_internal(settings, listed.key) else parse_key(settings, listed.key)
            if parsed is None:
                continue
            tp = TopicPartition(parsed.topic, parsed.partition)
            if tp in partitions:
                yield tp, parsed.first, listed


def _prefixes(settings: ObjectSettings, partitions: Collection[TopicPartition]) -> list[str]:
    """The prefixes of the topics, each key below one alone."""
    return listing_prefixes([settings], {tp.topic for tp in partitions})


def _offsets(offsets: Mapping[str, int]) -> str:
    shown = [f"{name} at {offset}" for name, offset in sorted(offsets.items())]
    return ", ".join(shown[:MAX_REPORTED]) + (" …" if len(shown) > MAX_REPORTED else "") if shown else "absent"


def _some(s3: S3Client, keys: list[str]) -> str:
    named = ", ".join(f"{s3.url_of(key)}" for key in keys[:MAX_REPORTED])
    return named if len(keys) <= MAX_REPORTED else f"{named} and {len(keys) - MAX_REPORTED:,} more objects"
