"""What a sink claims for itself, and which of two sinks that claim the same must yield: the younger one.

Two sinks must not write the same topic under one place in a bucket, keep one ledger, or commit for one group. Whether
two patterns can match the same topic cannot be told in general: they collide for certain where they are equal or where
a topic that one of them copies matches the other; else it is said to be possible, and the ledger's own claims decide.
So it is where a pattern is too hard to match here (`matching`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from s3sink_operator.topic_pattern import matches
from s3sink_operator.types import Json, SinkResources
from sink_job.api.spec import Sink

MAX_OBSERVED_TOPICS = 100
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, kw_only=True)
class SinkConflict:
    """Two sinks that want the same. `certain`: else they may, depending on topics that are not known."""

    owner: SinkResources
    resource: str
    certain: bool = True


def resources_of(sink: Sink, document: Json) -> SinkResources:
    """What `sink` takes; `document` is the object it was read from, for its age and the topics it has found."""
    spec = sink.spec
    return SinkResources(
        namespace=sink.namespace,
        name=sink.name,
        creation_time=str(document.get("metadata", {}).get("creationTimestamp", "")),
        bucket=spec.s3.bucket,
        topics_dir=spec.s3.topics_dir,
        topics=None if spec.kafka.topics is None else tuple(spec.kafka.topics),
        pattern=spec.kafka.topics_pattern,
        group=sink.group_id,
        sink_id=sink.sink_id,
        endpoint=None if spec.s3.endpoint is None else _normalized_endpoint(spec.s3.endpoint),
        brokers=_normalized_brokers(spec.kafka.bootstrap_servers),
        observed_topics=_observed_topics(document.get("status")),
    )


def _normalized_endpoint(endpoint: str) -> str:
    """An endpoint in one of its spellings: host in lower case, always with a port, no slash behind it."""
    url = urlsplit(endpoint)
    return f"{url.scheme}://{url.hostname}:{url.port or _PORTS[url.scheme]}"


def _normalized_brokers(brokers: str) -> str:
    """The brokers in one order. That two lists of others are of one cluster cannot be told."""
    return ",".join(sorted({each.strip().lower() for each in brokers.split(",")}))


def find_conflict(mine: SinkResources, others: Iterable[SinkResources]) -> SinkConflict | None:
    """Why `mine` must yield, certain reasons first; None if nothing collides, or only with younger ones."""
    found = [reason for other in others if (reason := find_overlap(mine, other)) and _age(other) < _age(mine)]
    return min(found, key=lambda one: (not one.certain, _age(one.owner)), default=None)


def find_overlap(mine: SinkResources, other: SinkResources) -> SinkConflict | None:
    """What both of two sinks claim."""
    if (mine.namespace, mine.name) == (other.namespace, other.name):
        return None
    same_place = (mine.endpoint, mine.bucket, mine.topics_dir) == (other.endpoint, other.bucket, other.topics_dir)
    if same_place and mine.sink_id == other.sink_id:
        return SinkConflict(owner=other, resource=f"the ledger {mine.sink_id} in bucket {mine.bucket}")
    if mine.group == other.group and mine.brokers == other.brokers:
        return SinkConflict(owner=other, resource=f"the consumer group {mine.group}")
    if not same_place:
        return None
    place = f"under {mine.topics_dir or 'the root'} in bucket {mine.bucket}"
    shared, perhaps = _shared_topics(mine, other)
    if shared:
        return SinkConflict(owner=other, resource=f"the topic {shared[0]} {place}")
    if mine.pattern is not None and mine.pattern == other.pattern:
        return SinkConflict(owner=other, resource=f"the topics {mine.pattern} {place}")
    if mine.pattern is not None and other.pattern is not None:
        return SinkConflict(
            owner=other, resource=f"topics that match {mine.pattern} and {other.pattern} {place}", certain=False
        )
    if perhaps:
        return SinkConflict(owner=other, resource=f"the topic {perhaps[0]} {place}", certain=False)
    return None


@dataclass
class ResourceIndex:
    """The claims of all sinks, found by what they take: of a thousand sinks, a look reads those that could collide."""

    _resources: dict[tuple[str, str], SinkResources] = field(default_factory=dict)
    _by_key: dict[_IndexKey, dict[tuple[str, str], SinkResources]] = field(default_factory=dict)

    def put(self, namespace: str, name: str, claim: SinkResources | None) -> None:
        """What a sink claims now; None: nothing."""
        sink = namespace, name
        known = self._resources.pop(sink, None)
        if known is not None:
            for mark in _index_keys(known):
                found = self._by_key[mark]
                del found[sink]
                if not found:
                    del self._by_key[mark]
        if claim is not None:
            self._resources[sink] = claim
            for mark in _index_keys(claim):
                self._by_key.setdefault(mark, {})[sink] = claim

    def competitors(self, namespace: str, name: str) -> Sequence[SinkResources]:
        """Claims of other sinks: all that collide with this one's, and few that do not."""
        sink = namespace, name
        mine = self._resources.get(sink)
        if mine is None:
            return ()
        found = {each: claim for mark in _lookup_keys(mine) for each, claim in self._by_key.get(mark, {}).items()}
        return tuple(claim for each, claim in found.items() if each != sink)


_IndexKey = tuple[str | None, ...]


def _index_keys(claim: SinkResources) -> set[_IndexKey]:
    """Under what a claim is found."""
    place = (claim.endpoint, claim.bucket, claim.topics_dir)
    found: set[_IndexKey] = {("place", *place), *_exclusive_keys(claim)}
    return found | ({("pattern", *place)} if claim.pattern is not None else set())


def _lookup_keys(claim: SinkResources) -> set[_IndexKey]:
    """Where all that may collide with a claim is found. A pattern may meet any topic of its place."""
    place = (claim.endpoint, claim.bucket, claim.topics_dir)
    return {("pattern" if claim.pattern is None else "place", *place), *_exclusive_keys(claim)}


def _exclusive_keys(claim: SinkResources) -> Iterator[_IndexKey]:
    """What only one sink may have."""
    place = (claim.endpoint, claim.bucket, claim.topics_dir)
    yield "ledger", *place, claim.sink_id
    yield "group", claim.brokers, claim.group
    for topic in _topics(claim):
        yield "topic", *place, topic


def conflict_message(mine: SinkResources, found: SinkConflict) -> str:
    """Describes the conflict and the action to take."""
    owner, resource = found.owner.full_name, found.resource
    if not found.certain:
        return (
            f"{mine.full_name} and {owner} may both copy {resource}. The patterns may overlap; a topic that matches "
            "both stops this sink with OwnershipConflict"
        )
    return (
        f"{resource} belongs to the older sink {owner}; {mine.full_name} does not run. Remove the shared resource from "
        "one of the sinks or delete one of them. bucket, topicsDir, groupId and sinkId are immutable: re-create this "
        "sink with other values"
    )


def _shared_topics(mine: SinkResources, other: SinkResources) -> tuple[Sequence[str], Sequence[str]]:
    """Topics that both copy, and those of which that cannot be told."""
    ours, theirs = _topics(mine), _topics(other)
    told = {topic: True if topic in theirs else _matches(other.pattern, topic) for topic in ours}
    told |= {topic: _matches(mine.pattern, topic) for topic in theirs if not told.get(topic)}
    return sorted(topic for topic, both in told.items() if both), sorted(
        topic for topic, both in told.items() if both is None
    )


def _topics(claim: SinkResources) -> Sequence[str]:
    return claim.topics if claim.topics is not None else claim.observed_topics


def _matches(pattern: str | None, topic: str) -> bool | None:
    return False if pattern is None else matches(pattern, topic)


def _age(claim: SinkResources) -> tuple[str, str, str]:
    return claim.creation_time, claim.namespace, claim.name


def _observed_topics(status: Any) -> Sequence[str]:
    """Topics that the status tells of."""
    connector = status.get("connector") if isinstance(status, dict) else None
    topics = connector.get("topics") if isinstance(connector, dict) else None
    found = [str(each.get("topic")) for each in topics if isinstance(each, dict)] if isinstance(topics, list) else []
    return tuple(found[:MAX_OBSERVED_TOPICS])
