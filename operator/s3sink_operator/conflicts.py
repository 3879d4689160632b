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
from s3sink_operator.types import Claim, Json
from sink_job.api.spec import Sink

MOST_SEEN = 100
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """Two sinks that want the same. `certain`: else they may, depending on topics that are not known."""

    other: Claim
    what: str
    certain: bool = True


def claim_of(sink: Sink, document: Json) -> Claim:
    """What `sink` takes; `document` is the object it was read from, for its age and the topics it has found."""
    spec = sink.spec
    return Claim(
        namespace=sink.namespace,
        name=sink.name,
        created=str(document.get("metadata", {}).get("creationTimestamp", "")),
        bucket=spec.s3.bucket,
        topics_dir=spec.s3.topics_dir,
        topics=None if spec.kafka.topics is None else tuple(spec.kafka.topics),
        pattern=spec.kafka.topics_pattern,
        group=sink.group_id,
        sink_id=sink.sink_id,
        endpoint=None if spec.s3.endpoint is None else _place(spec.s3.endpoint),
        brokers=_cluster(spec.kafka.bootstrap_servers),
        seen=_seen(document.get("status")),
    )


def _place(endpoint: str) -> str:
    """An endpoint in one of its spellings: host in lower case, always with a port, no slash behind it."""
    url = urlsplit(endpoint)
    return f"{url.scheme}://{url.hostname}:{url.port or _PORTS[url.scheme]}"


def _cluster(brokers: str) -> str:
    """The brokers in one order. That two lists of others are of one cluster cannot be told."""
    return ",".join(sorted({each.strip().lower() for each in brokers.split(",")}))


def conflict(mine: Claim, others: Iterable[Claim]) -> Conflict | None:
    """Why `mine` must yield, certain reasons first; None if nothing collides, or only with younger ones."""
    found = [reason for other in others if (reason := collision(mine, other)) and _age(other) < _age(mine)]
    return min(found, key=lambda one: (not one.certain, _age(one.other)), default=None)


def collision(mine: Claim, other: Claim) -> Conflict | None:
    """What both of two sinks claim."""
    if (mine.namespace, mine.name) == (other.namespace, other.name):
        return None
    same_place = (mine.endpoint, mine.bucket, mine.topics_dir) == (other.endpoint, other.bucket, other.topics_dir)
    if same_place and mine.sink_id == other.sink_id:
        return Conflict(other=other, what=f"the ledger {mine.sink_id} in bucket {mine.bucket}")
    if mine.group == other.group and mine.brokers == other.brokers:
        return Conflict(other=other, what=f"the consumer group {mine.group}")
    if not same_place:
        return None
    place = f"under {mine.topics_dir or 'the root'} in bucket {mine.bucket}"
    shared, perhaps = _shared(mine, other)
    if shared:
        return Conflict(other=other, what=f"the topic {shared[0]} {place}")
    if mine.pattern is not None and mine.pattern == other.pattern:
        return Conflict(other=other, what=f"the topics {mine.pattern} {place}")
    if mine.pattern is not None and other.pattern is not None:
        return Conflict(
            other=other, what=f"topics that match {mine.pattern} and {other.pattern} {place}", certain=False
        )
    if perhaps:
        return Conflict(other=other, what=f"the topic {perhaps[0]} {place}", certain=False)
    return None


@dataclass
class Claims:
    """The claims of all sinks, found by what they take: of a thousand sinks, a look reads those that could collide."""

    _claims: dict[tuple[str, str], Claim] = field(default_factory=dict)
    _by_mark: dict[_Mark, dict[tuple[str, str], Claim]] = field(default_factory=dict)

    def put(self, namespace: str, name: str, claim: Claim | None) -> None:
        """What a sink claims now; None: nothing."""
        sink = namespace, name
        known = self._claims.pop(sink, None)
        if known is not None:
            for mark in _marks(known):
                found = self._by_mark[mark]
                del found[sink]
                if not found:
                    del self._by_mark[mark]
        if claim is not None:
            self._claims[sink] = claim
            for mark in _marks(claim):
                self._by_mark.setdefault(mark, {})[sink] = claim

    def rivals(self, namespace: str, name: str) -> Sequence[Claim]:
        """Claims of other sinks: all that collide with this one's, and few that do not."""
        sink = namespace, name
        mine = self._claims.get(sink)
        if mine is None:
            return ()
        found = {each: claim for mark in _sought(mine) for each, claim in self._by_mark.get(mark, {}).items()}
        return tuple(claim for each, claim in found.items() if each != sink)


_Mark = tuple[str | None, ...]


def _marks(claim: Claim) -> set[_Mark]:
    """Under what a claim is found."""
    place = (claim.endpoint, claim.bucket, claim.topics_dir)
    found: set[_Mark] = {("place", *place), *_taken(claim)}
    return found | ({("pattern", *place)} if claim.pattern is not None else set())


def _sought(claim: Claim) -> set[_Mark]:
    """Where all that may collide with a claim is found. A pattern may meet any topic of its place."""
    place = (claim.endpoint, claim.bucket, claim.topics_dir)
    return {("pattern" if claim.pattern is None else "place", *place), *_taken(claim)}


def _taken(claim: Claim) -> Iterator[_Mark]:
    """What only one sink may have."""
    place = (claim.endpoint, claim.bucket, claim.topics_dir)
    yield "ledger", *place, claim.sink_id
    yield "group", claim.brokers, claim.group
    for topic in _topics(claim):
        yield "topic", *place, topic


def sentence(mine: Claim, found: Conflict) -> str:
    """What is wrong, and what to do."""
    if not found.certain:
        return (
            f"{mine.title} and {found.other.title} may both copy {found.what}: whether a topic matches both is only "
            "seen when there is one; then this sink stops with OwnershipConflict"
        )
    return (
        f"{found.other.title}, which is older, has {found.what}: {mine.title} does not run. Take from one of "
        "them what they share, or delete one; bucket, topicsDir, groupId and sinkId do not change: make this sink anew "
        "with others"
    )


def _shared(mine: Claim, other: Claim) -> tuple[Sequence[str], Sequence[str]]:
    """Topics that both copy, and those of which that cannot be told."""
    ours, theirs = _topics(mine), _topics(other)
    told = {topic: True if topic in theirs else _matches(other.pattern, topic) for topic in ours}
    told |= {topic: _matches(mine.pattern, topic) for topic in theirs if not told.get(topic)}
    return sorted(topic for topic, both in told.items() if both), sorted(
        topic for topic, both in told.items() if both is None
    )


def _topics(claim: Claim) -> Sequence[str]:
    return claim.topics if claim.topics is not None else claim.seen


def _matches(pattern: str | None, topic: str) -> bool | None:
    return False if pattern is None else matches(pattern, topic)


def _age(claim: Claim) -> tuple[str, str, str]:
    return claim.created, claim.namespace, claim.name


def _seen(status: Any) -> Sequence[str]:
    """Topics that the status tells of."""
    connector = status.get("connector") if isinstance(status, dict) else None
    topics = connector.get("topics") if isinstance(connector, dict) else None
    found = [str(each.get("topic")) for each in topics if isinstance(each, dict)] if isinstance(topics, list) else []
    return tuple(found[:MOST_SEEN])
