"""Reads what registrations need of a ledger: its identity, its resets, and the published objects of each topic.

Each file of the published log has the objects that a range of records has acknowledged, and never changes. So a
registration reads the files after the position of its table alone, one at a time, and memory does not depend on the
number of objects. What a file has of each topic is remembered: a driver reads each file once to find out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

import msgspec

from sink_job.api.enums import OnExisting
from sink_job.api.errors import ConfigurationError
from sink_job.api.spec import ObjectSettings
from sink_job.ledger import files
from sink_job.ledger.state import ClosedObject, LedgerState, Record
from sink_job.ledger.store import AuditEntry, Ledger, PublishedFile
from sink_job.records.batch import DEAD_LETTERS
from sink_job.s3 import NotFound
from sink_job.tables.partitions.object_paths import layout_of
from sink_job.tables.plan import LedgerView


class ObjectLog(Protocol):
    """Acknowledged objects of a topic, in the order of the records that acknowledge them."""

    def after(self, record: int) -> Iterator[ClosedObject]:
        """Those that later records than `record` have acknowledged."""
        ...


class _Named(msgspec.Struct):
    """What is counted of an object."""

    topic: str
    path: str


class _Counted(msgspec.Struct):
    object: _Named | None = None


class KnownFiles:
    """The number of objects by topic in each file of a published log that was read, by its key and content. The same
    key may be that of a ledger that was created again, or restored to an older state."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str], Mapping[str, int]] = {}

    def of(self, ledger: Ledger, file: PublishedFile) -> Mapping[str, int]:
        """Reads the file once."""
        name = (ledger.s3.url_of(file.key), file.etag)
        if name not in self._counts:
            lines = files.read_lines(ledger.s3, file.key, _Counted)
            objects = (each.object for each in lines)
            self._counts[name] = Counter(o.topic for o in objects if o is not None and o.path != DEAD_LETTERS)
        return self._counts[name]

    def keep(self, ledger: Ledger, listed: Sequence[PublishedFile]) -> None:
        """Forgets the files that are not listed any more."""
        names = {(ledger.s3.url_of(each.key), each.etag) for each in listed}
        self._counts = {name: counts for name, counts in self._counts.items() if name in names}


class TopicObjects:
    """The acknowledged objects of a topic when the state of the ledger was read. Iterating reads all of them."""

    def __init__(self, log: PublishedLog, topic: str) -> None:
        self._log = log
        self._topic = topic

    def __iter__(self) -> Iterator[ClosedObject]:
        return self.after(0)

    def after(self, record: int) -> Iterator[ClosedObject]:
        """Those that later records than `record` have acknowledged, in their order. Raises as `Ledger.published`."""
        for file in self._log.files:
            if file.end > record and self._log.counts(file).get(self._topic):
                yield from self._of(self._log.objects(file), record)
        yield from self._of(self._log.newest, record)

    def count_after(self, record: int) -> int:
        """Their number. Reads at most one file that was not read before."""
        whole = [file for file in self._log.files if file.start >= record]
        parts = [file for file in self._log.files if file.start < record < file.end]
        newest = sum(1 for _ in self._of(self._log.newest, record))
        return (
            newest
            + sum(self._log.counts(file).get(self._topic, 0) for file in whole)
            + sum(1 for file in parts for _ in self._of(self._log.objects(file), record))
        )

    def _of(self, objects: Sequence[ClosedObject], record: int) -> Iterator[ClosedObject]:
        mine = [o for o in objects if o.topic == self._topic and o.path != DEAD_LETTERS and o.acknowledged > record]
        yield from sorted(mine, key=lambda o: (o.acknowledged, o.key))


class PublishedLog:
    """The published log of a ledger up to a state. `newest` are the objects that no file has yet."""

    def __init__(self, ledger: Ledger, state: LedgerState, known: KnownFiles) -> None:
        """Lists the files. Raises as `Ledger.published_files`."""
        self._ledger = ledger
        self._known = known
        self.files = ledger.published_files(state)
        known.keep(ledger, self.files)
        self.newest: Sequence[ClosedObject] = state.published

    def counts(self, file: PublishedFile) -> Mapping[str, int]:
        """The number of objects by topic."""
        return self._known.of(self._ledger, file)

    def objects(self, file: PublishedFile) -> Sequence[ClosedObject]:
        """All objects of a file."""
        entries = files.read_lines(self._ledger.s3, file.key, AuditEntry)
        return [each.object for each in entries if each.object is not None]

    def by_topic(self) -> Mapping[str, TopicObjects]:
        """The objects of each topic that has some. Reads files that were not read before, one after the other."""
        topics = {topic for file in self.files for topic in self.counts(file)}
        topics |= {o.topic for o in self.newest if o.path != DEAD_LETTERS}
        return {topic: TopicObjects(self, topic) for topic in sorted(topics)}


def read_ledger(
    ledger: Ledger, sink_id: str, known: KnownFiles | None = None
) -> tuple[LedgerView, Mapping[str, TopicObjects]]:
    """The view of a ledger, which a driver may be writing, and the acknowledged objects by topic, in the order of the
    records that acknowledge them. Dead-letter objects are left out. `known`: what an earlier call has read.

    Raises ConfigurationError if there is no ledger, or if its first claim was deleted.
    """
    state = ledger.load()
    if not state.number:
        raise ConfigurationError(
            f"there is no ledger below {ledger.url}: sink {sink_id} has not written anything yet, or spec.s3.topicsDir "
            "or spec.sinkId was changed"
        )
    log = PublishedLog(ledger, state, known or KnownFiles())
    return _view(ledger, state, sink_id), log.by_topic()


def _view(ledger: Ledger, state: LedgerState, sink_id: str) -> LedgerView:
    claims = ledger.claims(state)
    resets = [claim for claim in claims if claim.reset is not None]
    settings = {claim.number: claim.settings for claim in claims if claim.settings is not None}
    texts = {**state.settings, **settings}
    parsed = {text: ObjectSettings.model_validate_json(text) for text in set(texts.values())}
    layouts = {text: layout_of(each) for text, each in parsed.items()}
    return LedgerView(
        sink_id=sink_id,
        identity=_first_claim(ledger, state).attempt,
        number=state.number,
        resets=tuple(claim.number for claim in resets),
        copied_from=max((claim.number for claim in resets if _copies_again(claim)), default=0),
        copies=tuple(claim.number for claim in resets if _copies_again(claim)),
        layouts={number: layouts[text] for number, text in texts.items()},
        enveloped=frozenset(number for number, text in texts.items() if parsed[text].format.envelope),
        claims={**dict.fromkeys(state.claims, ""), **{claim.number: claim.attempt for claim in claims}},
    )


def _copies_again(claim: Record) -> bool:
    return claim.reset is not None and claim.reset.on_existing != OnExisting.FAIL


def _first_claim(ledger: Ledger, state: LedgerState) -> Record:
    try:
        return ledger.record(min(state.claims))
    except NotFound:
        raise ConfigurationError(
            f"the first claim of the ledger {ledger.url} was deleted: a table cannot be compared with the ledger. "
            "Restore that object (bucket versioning)"
        ) from None
