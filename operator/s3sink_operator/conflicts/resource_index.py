"""The index of the resources of all sinks: a reconcile pass compares its sink only with those that may overlap.

Each topic of a sink is an entry, so the entries of one namespace are limited: who may write S3Sinks in one namespace
must not use up the memory of the operator. The topics of a sink above the limit have no entries; its ledger, its
consumer group and its pattern still have.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from s3sink_operator.types import SinkResources

MAX_INDEXED_TOPICS: Final = 100_000
"""Topics of the sinks of one namespace that have entries. An entry takes about 100 bytes."""

_SinkName = tuple[str, str]
_Place = tuple[str | None, str, str]
_Key = tuple[str | None, ...]
_Entry = _SinkName | set[_SinkName]


@dataclass
class ResourceIndex:
    """The resources of all sinks by namespace and name. `max_topics`: entries of topics of one namespace.

    The entry of a topic is the name of its sink; a set of names only for a topic of several sinks.
    """

    max_topics: int = MAX_INDEXED_TOPICS
    _resources: dict[_SinkName, SinkResources] = field(default_factory=dict)
    _by_key: dict[_Key, set[_SinkName]] = field(default_factory=dict)
    _by_topic: dict[_Place, dict[str, _Entry]] = field(default_factory=dict)
    _counts: Counter[str] = field(default_factory=Counter)
    _waiting: dict[str, dict[_SinkName, None]] = field(default_factory=dict)

    def put(self, namespace: str, name: str, claim: SinkResources | None) -> None:
        """Sets the resources of a sink; None removes them."""
        sink = namespace, name
        known = self._resources.get(sink)
        if known is not None and claim is not None and _indexed_part(known) == _indexed_part(claim):
            self._resources[sink] = claim
            return
        if known is not None:
            self._remove(sink, known)
        if claim is not None:
            self._resources[sink] = claim
            for key in _index_keys(claim):
                self._by_key.setdefault(key, set()).add(sink)
            if not self._index_topics(sink, claim):
                self._waiting.setdefault(namespace, {})[sink] = None
        self._index_waiting(namespace)

    def has_indexed_topics(self, namespace: str, name: str) -> bool:
        """Whether the topics of a sink have entries."""
        return (namespace, name) not in self._waiting.get(namespace, ())

    def competitors(self, namespace: str, name: str) -> Sequence[SinkResources]:
        """The resources of other sinks that may overlap with those of this one."""
        sink = namespace, name
        mine = self._resources.get(sink)
        if mine is None:
            return ()
        names: dict[_SinkName, None] = {}
        for key in _lookup_keys(mine):
            names.update(dict.fromkeys(self._by_key.get(key, ())))
        if self.has_indexed_topics(namespace, name):
            entries = self._by_topic.get(mine.place, {})
            for topic in mine.known_topics:
                names.update(dict.fromkeys(_names(entries.get(topic))))
        names.pop(sink, None)
        return tuple(self._resources[each] for each in names)

    @property
    def number_of_entries(self) -> int:
        """The number of topics with an entry."""
        return sum(map(len, self._by_topic.values()))

    def _remove(self, sink: _SinkName, claim: SinkResources) -> None:
        del self._resources[sink]
        for key in _index_keys(claim):
            self._by_key[key].discard(sink)
            if not self._by_key[key]:
                del self._by_key[key]
        waiting = self._waiting.get(claim.namespace, {})
        if sink in waiting:
            del waiting[sink]
        else:
            self._remove_topics(sink, claim)

    def _index_topics(self, sink: _SinkName, claim: SinkResources) -> bool:
        """Adds the entries of the topics, unless they exceed the limit of the namespace."""
        topics = set(claim.known_topics)
        if self._counts[claim.namespace] + len(topics) > self.max_topics:
            return False
        self._counts[claim.namespace] += len(topics)
        if not topics:
            return True
        entries = self._by_topic.setdefault(claim.place, {})
        for topic in topics:
            entry = entries.setdefault(topic, sink)
            if isinstance(entry, set):
                entry.add(sink)
            elif entry != sink:
                entries[topic] = {entry, sink}
        return True

    def _remove_topics(self, sink: _SinkName, claim: SinkResources) -> None:
        topics = set(claim.known_topics)
        self._counts[claim.namespace] -= len(topics)
        if not topics:
            return
        entries = self._by_topic[claim.place]
        for topic in topics:
            entry = entries[topic]
            if isinstance(entry, set):
                entry.discard(sink)
            if entry == sink or not entry:
                del entries[topic]
        if not entries:
            del self._by_topic[claim.place]

    def _index_waiting(self, namespace: str) -> None:
        """Adds the entries of the sinks above the limit, the first one first, as far as there is room now."""
        waiting = self._waiting.get(namespace, {})
        while waiting and self._index_topics(first := next(iter(waiting)), self._resources[first]):
            del waiting[first]
        if not waiting:
            self._waiting.pop(namespace, None)


def _names(entry: _Entry | None) -> Iterator[_SinkName]:
    if isinstance(entry, set):
        yield from entry
    elif entry is not None:
        yield entry


def _indexed_part(claim: SinkResources) -> tuple[object, ...]:
    return _index_keys(claim), claim.place, claim.dead_letters, claim.known_topics


def _index_keys(claim: SinkResources) -> set[_Key]:
    """The keys of the resources of a sink, without its topics."""
    patterns = {("pattern", *claim.place)} if claim.pattern is not None else set()
    dead_letters = {("dead letters", *claim.place[:2])} if claim.dead_letters is not None else set()
    names = {("names", *claim.place[:2])} if claim.key_names is not None else set()
    places = {("place", *claim.place), ("bucket", *claim.place[:2])}
    return {*places, *_exclusive_keys(claim), *patterns, *dead_letters, *names}


def _lookup_keys(claim: SinkResources) -> set[_Key]:
    """The keys of all resources that may overlap. A pattern may match any topic of its prefix. Dead letters, and
    objects with `s3.prefixes` or `topicInPath: false`, may be in the directory of any sink of the bucket."""
    is_anywhere = claim.dead_letters is not None or claim.key_names is not None
    kinds = ("bucket",) if is_anywhere else ("dead letters", "names")
    of_bucket = {(kind, *claim.place[:2]) for kind in kinds}
    return {("pattern" if claim.pattern is None else "place", *claim.place), *_exclusive_keys(claim), *of_bucket}


def _exclusive_keys(claim: SinkResources) -> Iterator[_Key]:
    """The ledger and the consumer group, which only one sink may have."""
    yield "ledger", *claim.place, claim.sink_id
    yield "group", claim.brokers, claim.group
