"""Resolves the schema ids that tasks have met: asks the registry, and puts the schemas into the ledger.

The driver resolves ids between two rounds. A task ends its range before a record with an id that is not resolved, and
reports the id; the next round decodes the record. Each driver process asks the registry once for each id, and compares
the answer with the ledger's copy, so a restored or re-created registry is noticed at the start.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from functools import partial
from itertools import islice, zip_longest
from operator import itemgetter
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

import msgspec

from sink_job.api.errors import RegistryChanged, SchemaNotFound
from sink_job.api.topic_partition import TopicPartition
from sink_job.connect.errors import UnknownSchema
from sink_job.connect.schema import RegisteredSchema, registry_schema_id, shown_schema_id
from sink_job.engine.thread_pools import pool
from sink_job.engine.types import Cancelled
from sink_job.ledger.files import MIN_LISTED
from sink_job.ledger.schemas.schema_store import SchemaStore
from sink_job.ledger.schemas.schema_table import KnownSchemas
from sink_job.registry.base import SchemaRegistry

PAUSES_S: Final = (2.0, 4.0, 8.0, 16.0, 30.0)
"""Pauses before the registry is asked again for ids that it did not know: a registry's replicas lag behind."""

UNKNOWN_TTL_S: Final = 60.0
"""Time for which the answer counts that the registry does not know an id. A later task that meets the id reports it
again, and the registry is asked again."""

MAX_IDS: Final = 1_000
"""Maximum number of ids that are resolved between two rounds. Records with arbitrary bytes contain arbitrary ids."""

MAX_CHANGED: Final = 50
"""Maximum number of further ids that a `RegistryChanged` names."""

MAX_WARNINGS: Final = 10
"""Maximum number of phrases in the warning about a schema."""

REQUESTS: Final = 8
"""Number of concurrent requests to the registry."""


A = TypeVar("A")
B = TypeVar("B")
_log = logging.getLogger(__name__)


class SchemaId(NamedTuple):
    """An id in the records of a topic."""

    topic: str
    id: str


class Provisional(NamedTuple):
    """The state of an id that the registry does not know. `at` is the end of its resolution in seconds. `reason` is
    the reason for the rejection of records with the id; None if the ledger has a copy of the schema from earlier."""

    reason: str | None
    at: float


class StoppedAt(NamedTuple):
    """The record at which the range of a task has ended. `how_to_skip`: what passes over it, for messages."""

    offset: int
    how_to_skip: str


class SchemaWarnings:
    """Logs the warnings about the schemas of a topic, each once. Thread-safe."""

    def __init__(self, warnings: Callable[[RegisteredSchema], tuple[str, ...]]) -> None:
        self._warnings = warnings
        self._logged: set[tuple[str, tuple[str, ...]]] = set()
        self._lock = threading.Lock()

    def log(self, topic: str, schema: RegisteredSchema) -> None:
        """Logs the warnings about a schema, unless an earlier one of the topic had the same."""
        warnings = self._warnings(schema)
        with self._lock:
            if not warnings or (topic, warnings) in self._logged:
                return
            self._logged.add((topic, warnings))
        others = f"; and {len(warnings) - MAX_WARNINGS:,} more" if len(warnings) > MAX_WARNINGS else ""
        _log.warning("topic %s: in the %s, %s%s", topic, schema.label, "; ".join(warnings[:MAX_WARNINGS]), others)


class SchemaResolver:
    """The resolved and the unknown ids of one driver process. Not thread-safe."""

    def __init__(
        self,
        registry: SchemaRegistry,
        store: SchemaStore,
        *,
        needs_version: bool,
        wait: Callable[[float], bool],
        clock: Callable[[], float],
        rejects_unknown: bool = False,
        reason_against: Callable[[RegisteredSchema], str | None] = lambda schema: None,
        warnings: Callable[[RegisteredSchema], tuple[str, ...]] = lambda schema: (),
    ) -> None:
        """`needs_version`: a schema in no version of its subject is unusable (schemaCompatibility Backward, Forward and
        Full). `rejects_unknown`: records with an id that the registry does not know are rejected; else the driver ends.
        `reason_against` returns why a schema cannot be compiled, None if it can, and `warnings` what is logged about
        one that can, once for each topic. `wait` pauses for a number of seconds and
        returns True if the driver has to stop. `clock` returns monotonic seconds.
        """
        self._registry = registry
        self._store = store
        self._needs_version = needs_version
        self._rejects_unknown = rejects_unknown
        self._reason_against = reason_against
        self._warnings = SchemaWarnings(warnings)
        self._not_found: set[SchemaId] = set()
        self._wait = wait
        self._clock = clock
        self._resolved: set[SchemaId] = set()
        self._provisional: dict[SchemaId, Provisional] = {}
        self._marked: set[SchemaId] = set()

    @property
    def resolved(self) -> Mapping[str, frozenset[str]]:
        """The ids whose schemas are in the ledger, by topic."""
        from_ledger = (each for each, state in self._fresh().items() if state.reason is None)
        return {topic: frozenset(ids) for topic, ids in _by_topic([*self._resolved, *from_ledger]).items()}

    @property
    def unknown(self) -> Mapping[str, Mapping[str, str]]:
        """The reason for each id that the registry did not know within the last `UNKNOWN_TTL_S`, by topic."""
        reasons = {each: state.reason for each, state in self._fresh().items() if state.reason is not None}
        topics = _by_topic(reasons)
        return {topic: {each: reasons[SchemaId(topic, each)] for each in ids} for topic, ids in topics.items()}

    @property
    def known(self) -> KnownSchemas:
        """Both, for the tasks of the next round."""
        return KnownSchemas(self.resolved, self.unknown)

    def resolve(
        self,
        reported: Mapping[TopicPartition, Sequence[str]],
        stopped_at: Mapping[TopicPartition, StoppedAt] = MappingProxyType({}),
    ) -> None:
        """Resolves the ids that the task of each topic-partition has reported; at most `MAX_IDS`, see `to_ask`.
        `stopped_at`: the record with the first id of a topic-partition, at which its range has ended.

        An id that neither the registry nor the ledger knows is asked for again after pauses, and then ends the driver,
        if it is the first one of a topic-partition. Otherwise there are records before the one with this id: it stays
        unresolved, and the next round writes these. With `rejects_unknown` it is asked for once more; then it is
        unknown, and the ledger has a marker of it. An id with an unusable schema is unknown at once, without a copy of
        the schema.

        Raises SchemaNotFound, RegistryChanged, the errors of the registry and of the store, and Cancelled if the driver
        has to stop.
        """
        answers = self._ask(to_ask(reported, {*self._resolved, *self._fresh()}))
        first = {SchemaId(tp.topic, ids[0]) for tp, ids in reported.items() if ids}
        for number, pause_s in enumerate(PAUSES_S[:1] if self._rejects_unknown else PAUSES_S):
            missing = [each for each, reason in answers.items() if reason is not None]
            if number:  # what the registry knows and cannot be used was asked for twice
                missing = [each for each in missing if each in self._not_found]
            if not self._rejects_unknown:
                missing = [each for each in missing if each in first or each not in self._not_found]
            if not missing:
                break
            if self._wait(pause_s):
                raise Cancelled("stopped while schema ids were not known to the registry")
            answers |= self._ask(missing)
        if not self._rejects_unknown:
            not_found = [each for each in answers if each in self._not_found]
            if stopping := [each for each in not_found if each in first]:
                raise self._schema_not_found(stopping[0], len(not_found) - 1, reported, stopped_at)
            answers = {each: reason for each, reason in answers.items() if each not in self._not_found}
        reasons = {each: reason for each, reason in answers.items() if reason is not None}
        self._each(self._mark, reasons.items())
        now = self._clock()  # one time for all: none of them expires before the next round
        self._provisional |= {
            each: Provisional(reason, now) for each, reason in answers.items() if each not in self._resolved
        }

    def _fresh(self) -> Mapping[SchemaId, Provisional]:
        self._provisional = fresh(self._provisional, self._clock())
        return self._provisional

    def _ask(self, ids: Sequence[SchemaId]) -> dict[SchemaId, str | None]:
        """Asks the registry for each id and puts the usable schemas into the ledger; returns the reason against each
        id, None if the ledger has its schema."""
        store = self._store
        if len(ids) >= MIN_LISTED:
            store = store.with_listing({each.topic for each in ids})
        changed: list[tuple[SchemaId, RegistryChanged]] = []
        reasons = self._each(partial(self._ask_or_note, store, changed), ids)
        if changed:
            raise all_changed(changed)
        return dict(zip(ids, reasons, strict=True))

    def _ask_or_note(
        self, store: SchemaStore, changed: list[tuple[SchemaId, RegistryChanged]], schema_id: SchemaId
    ) -> str | None:
        """The same for one id, which is added to `changed` if the ledger has another schema."""
        try:
            return self._ask_one(store, schema_id)
        except RegistryChanged as error:
            changed.append((schema_id, error))
            return None

    def _each(self, call: Callable[[A], B], arguments: Collection[A]) -> list[B]:
        """The results of concurrent calls. Raises Cancelled before the next one if the driver has to stop."""

        def unless_stopping(argument: A) -> B:
            if self._wait(0):
                raise Cancelled("stopped while schema ids were resolved")
            return call(argument)

        if not arguments:
            return []
        with pool(min(REQUESTS, len(arguments)), "s3sink-schemas") as requests:
            return [*requests.map(unless_stopping, arguments)]

    def _ask_one(self, store: SchemaStore, schema_id: SchemaId) -> str | None:
        """None if the id is resolved or the ledger's copy serves, else the reason against the schema."""
        text, is_key = registry_schema_id(schema_id.id)
        shown = shown_schema_id(schema_id.id)
        try:
            found = self._registry.fetch(schema_id.topic, text, is_key=is_key)
        except UnknownSchema as error:
            return self._from_ledger(schema_id, str(error))
        if found is None:
            reason = self._from_ledger(schema_id, f"the schema registry does not know the schema id {shown}")
            if reason is not None:
                self._not_found.add(schema_id)
            return reason
        self._not_found.discard(schema_id)
        if is_key:
            found = msgspec.structs.replace(found, id=schema_id.id)
        reason = version_missing(schema_id, found, needs_version=self._needs_version)
        if reason is None:
            reason = self._reason_against(found)
        if reason is None:
            needs_version = self._needs_version and not is_key
            stored = store.put(schema_id.topic, found, self._registry.url, needs_version=needs_version)
            reason = version_missing(schema_id, stored, needs_version=self._needs_version)
        if reason is None:
            self._resolved.add(schema_id)
            if not is_key:
                self._warnings.log(schema_id.topic, stored)
        return reason

    def _schema_not_found(
        self,
        schema_id: SchemaId,
        others: int,
        reported: Mapping[TopicPartition, Sequence[str]],
        stopped_at: Mapping[TopicPartition, StoppedAt],
    ) -> SchemaNotFound:
        """The error for the first id of a topic-partition. `others`: the number of further ids that are not found."""
        tp = next(tp for tp, ids in reported.items() if SchemaId(tp.topic, ids[0]) == schema_id)
        at = stopped_at.get(tp)
        where = f"a record of {tp}" if at is None else f"the record at {tp} offset {at.offset}"
        skip = "" if at is None else f". {at.how_to_skip}"
        more = f" and {others} other {'id' if others == 1 else 'ids'}" if others else ""
        return SchemaNotFound(
            f"the schema registry {self._registry.url} does not know the schema id {shown_schema_id(schema_id.id)} of "
            f"{where}{more}, also after {sum(PAUSES_S):.0f} s. No record was dropped. Register the schema, or "
            "correct spec.format.registry; the next run asks again. If such records are invalid, also because a value "
            "that begins with the byte 0 only looks like one with an id, set spec.format.registry.unknownIds: Reject: "
            f"then they are data errors, which errors.tolerance: All drops{skip}"
        )

    def _mark(self, unknown: tuple[SchemaId, str]) -> None:
        """Puts the marker of an unknown id into the ledger, once for each process."""
        schema_id, reason = unknown
        if schema_id not in self._marked:
            self._store.put_unknown(schema_id.topic, schema_id.id, reason)
            self._marked.add(schema_id)

    def _from_ledger(self, schema_id: SchemaId, unknown: str) -> str | None:
        """The registry has lost the id, or never had it: for the reason `unknown`. Records that were produced before
        decode with the ledger's copy, until the registry assigns the id to another schema."""
        stored = self._store.get(schema_id.topic, schema_id.id)
        if stored is None:
            return unknown
        reason = version_missing(schema_id, stored, needs_version=self._needs_version)
        if reason is None:
            _log.warning(
                "the schema registry %s no longer knows the schema id %s of topic %s: the copy in the ledger is used",
                self._registry.url,
                shown_schema_id(schema_id.id),
                schema_id.topic,
            )
        return reason


def all_changed(found: Iterable[tuple[SchemaId, RegistryChanged]]) -> RegistryChanged:
    """One error for all ids whose schemas have changed, so that all of their copies are deleted in one pass."""
    (_, first), *others = sorted(found, key=itemgetter(0))
    if not others:
        return first
    ids = [f"{shown_schema_id(each.id)} of topic {each.topic}" for each, _ in others[:MAX_CHANGED]]
    more = f"; and {len(others) - MAX_CHANGED:,} more" if len(others) > MAX_CHANGED else ""
    return RegistryChanged(f"{first} The same applies to these ids: {'; '.join(ids)}{more}")


def to_ask(reported: Mapping[TopicPartition, Sequence[str]], known: Set[SchemaId]) -> Sequence[SchemaId]:
    """The ids to ask the registry for: those that are not known, at most `MAX_IDS`. First the first one of each
    topic-partition, then the second one of each, and so on, so that a topic-partition with arbitrary ids does not delay
    the others."""
    queues = (
        [each for each in (SchemaId(tp.topic, schema_id) for schema_id in ids) if each not in known]
        for tp, ids in reported.items()
    )
    in_turn = dict.fromkeys(each for turn in zip_longest(*queues) for each in turn if each is not None)
    return list(islice(in_turn, MAX_IDS))


def fresh(states: Mapping[SchemaId, Provisional], now: float) -> dict[SchemaId, Provisional]:
    """The states that are not older than `UNKNOWN_TTL_S`. `now` is in seconds."""
    return {each: state for each, state in states.items() if now - state.at < UNKNOWN_TTL_S}


def version_missing(schema_id: SchemaId, schema: RegisteredSchema, *, needs_version: bool) -> str | None:
    """The reason for the rejection of records with this id; None if `schema` decodes them. The schema of a key needs no
    version: objects do not depend on it."""
    text, is_key = registry_schema_id(schema_id.id)
    if needs_version and not is_key and schema.version is None:
        return f"the schema with the id {text} is in no version of the subject {schema.subject or '(no name)'}"
    return None


def _by_topic(ids: Iterable[SchemaId]) -> dict[str, list[str]]:
    topics: dict[str, list[str]] = {}
    for topic, each in ids:
        topics.setdefault(topic, []).append(each)
    return topics
