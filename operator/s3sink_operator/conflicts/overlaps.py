"""The resources that a sink owns exclusively, and conflicts: of two sinks the one loses that came or was edited later.

`status.claim` records since when a sink has held the resources of its spec without losing a conflict. A sink that holds
what its spec sets wins against one that does not, whatever their age: so an edit or a new sink never ends the driver of
a sink that did not change. The status of a sink can be forged by users of its namespace, so a sink of another namespace
never decides: such an overlap is a warning at both, and the ledger's ownership and fencing decide who writes.

Two sinks must not write the same topic to one prefix of a bucket, use one ledger, or commit for one consumer group.
Below different topicsDirs they could, with `s3.prefixes` or `topicInPath: false`, if one directory contains the other.
Whether two patterns overlap is undecidable in practice: the conflict is certain if the patterns are equal or if a topic
of one sink matches the pattern of the other. Otherwise it is possible, and the claims of the ledger decide. The same
holds for a pattern that `topic_pattern` does not support.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, product
from typing import Any
from urllib.parse import urlsplit

from s3sink_operator.conflicts.resource_index import MAX_INDEXED_TOPICS
from s3sink_operator.conflicts.topic_pattern import matches
from s3sink_operator.types import Json, SinkResources
from sink_job.api.rules.dead_letter_rules import overlap
from sink_job.api.sections.job_sections import KeySettings, S3Spec
from sink_job.api.spec import Sink

MAX_OBSERVED_TOPICS = 100
MAX_FOREIGN = 100
MAX_COMPARED_TOPICS = 20_000
"""Number of topics of other sinks from which on no further sink is compared: matching one takes about 10 µs, and no
other sink is reconciled meanwhile. The claims of the ledger decide about the rest."""
_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, kw_only=True)
class SinkConflict:
    """An overlap of the resources of two sinks. Without `certain` it depends on topics that are not known."""

    owner: SinkResources
    resource: str
    certain: bool = True


def resources_of(sink: Sink, document: Json) -> SinkResources:
    """The resources of `sink`. `document`: its object, for its age and its observed topics."""
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
        held=_claim(document, "digest"),
        held_since=_claim(document, "since"),
        dead_letters=spec.errors.dead_letters.prefix,
        key_names=_key_names(spec.s3),
    )


def _key_names(s3: S3Spec) -> KeySettings | None:
    """What decides the directories of topics; None for those of the connector."""
    if s3.has_plain_names:
        return None
    return KeySettings(
        topics_dir=s3.topics_dir,
        directory_delimiter=s3.directory_delimiter,
        prefixes=s3.prefixes,
        topic_in_path=s3.topic_in_path,
    )


def _claim(document: Json, name: str) -> str:
    status = document.get("status")
    claim = status.get("claim") if isinstance(status, dict) else None
    found = claim.get(name) if isinstance(claim, dict) else None
    return found if isinstance(found, str) else ""


def _normalized_endpoint(endpoint: str) -> str:
    """An endpoint in normal form: host in lower case, with a port, without a trailing slash."""
    url = urlsplit(endpoint)
    return f"{url.scheme}://{url.hostname}:{url.port or _PORTS[url.scheme]}"


def _normalized_brokers(brokers: str) -> str:
    """The brokers in sorted order. Two different lists may still belong to one cluster."""
    return ",".join(sorted({each.strip().lower() for each in brokers.split(",")}))


def find_conflict(mine: SinkResources, others: Iterable[SinkResources]) -> SinkConflict | None:
    """The conflict with a sink of the namespace that `mine` loses, certain ones first; None without one."""
    rank = _rank(mine)
    rivals = [other for other in others if other.namespace == mine.namespace and _rank(other) < rank]
    found = [reason for other in _affordable(mine, rivals) if (reason := find_overlap(mine, other))]
    return min(found, key=lambda one: (not one.certain, _rank(one.owner)), default=None)


def find_foreign_overlap(mine: SinkResources, others: Iterable[SinkResources]) -> SinkConflict | None:
    """An overlap with a sink of another namespace, certain ones first. It stops neither of them. Only the first
    MAX_FOREIGN candidates are compared: many sinks of one namespace do not slow down those of others."""
    foreign = islice(_affordable(mine, [each for each in others if each.namespace != mine.namespace]), MAX_FOREIGN)
    found = [reason for other in foreign if (reason := find_overlap(mine, other))]
    return min(found, key=lambda one: (not one.certain, one.owner.full_name), default=None)


def _affordable(mine: SinkResources, others: Sequence[SinkResources]) -> Iterator[SinkResources]:
    """The sinks to compare: those with the same group or sinkId first, and then until MAX_COMPARED_TOPICS."""
    left = MAX_COMPARED_TOPICS
    for other in sorted(others, key=lambda each: each.group != mine.group and each.sink_id != mine.sink_id):
        yield other
        left -= len(other.known_topics) + len(mine.known_topics)
        if left < 0:
            return


def _rank(sink: SinkResources) -> tuple[int, str, str, str, str]:
    """The order in which sinks win: those that hold what their spec sets, by the time since when; those that were
    edited; those that never held anything or have lost a conflict. Then by age."""
    age = sink.creation_time, sink.namespace, sink.name
    if sink.held == sink.digest:
        return 0, sink.held_since, *age
    return (1 if sink.held else 2), "", *age


def find_overlap(mine: SinkResources, other: SinkResources) -> SinkConflict | None:
    """The overlap of the resources of two sinks."""
    if (mine.namespace, mine.name) == (other.namespace, other.name):
        return None
    same_place = mine.place == other.place
    if same_place and mine.sink_id == other.sink_id:
        return SinkConflict(owner=other, resource=f"the ledger {mine.sink_id} in bucket {mine.bucket}")
    if mine.group == other.group and mine.brokers == other.brokers:
        return SinkConflict(owner=other, resource=f"the consumer group {mine.group}")
    directory = _shared_directory(mine, other)
    if directory is not None:
        return SinkConflict(owner=other, resource=f"the directory {directory} in bucket {mine.bucket}")
    if not same_place:
        return _shared_keys(mine, other)
    place = f"below {mine.topics_dir or 'the root'} in bucket {mine.bucket}"
    shared, undecided = _shared_topics(mine, other)
    if shared:
        return SinkConflict(owner=other, resource=f"the topic {shared[0]} {place}")
    if mine.pattern is not None and mine.pattern == other.pattern:
        return SinkConflict(owner=other, resource=f"the topics {mine.pattern} {place}")
    if mine.pattern is not None and other.pattern is not None:
        return SinkConflict(
            owner=other, resource=f"topics that match {mine.pattern} and {other.pattern} {place}", certain=False
        )
    if undecided:
        return SinkConflict(owner=other, resource=f"the topic {undecided[0]} {place}", certain=False)
    return None


def _shared_keys(mine: SinkResources, other: SinkResources) -> SinkConflict | None:
    """The topic whose keys both sinks could write below different topicsDirs, of which one contains the other: with
    `s3.prefixes` or `topicInPath: false` of one of them."""
    if mine.place[:2] != other.place[:2] or (mine.key_names is None and other.key_names is None):
        return None
    if mine.topics_dir and other.topics_dir and not overlap(mine.topics_dir, other.topics_dir, "/"):
        return None
    shared, undecided = _shared_topics(mine, other)
    for topics, certain in ((shared, True), (undecided, False)):
        for topic in topics:
            for one, another in product(_directories(mine, topic), _directories(other, topic)):
                if not one or not another or overlap(one, another, "/"):
                    longer = max(one, another, key=len) or "the root"
                    resource = f"the topic {topic} below {longer} in bucket {mine.bucket}"
                    return SinkConflict(owner=other, resource=resource, certain=certain)
    return None


def _directories(sink: SinkResources, topic: str) -> Sequence[str]:
    """The directories in which a topic's objects may be: several if `topic_pattern` does not support a pattern."""
    names = sink.key_names or KeySettings(topics_dir=sink.topics_dir)
    found: list[str] = []
    for each in names.prefixes:
        is_covered = topic == each.topic if each.pattern is None else matches(each.pattern, topic)
        if is_covered is not False:
            found.append(names.joined(each.prefix, topic))
        if is_covered:
            return found
    return [*found, names.joined(None, topic)]


def _shared_directory(mine: SinkResources, other: SinkResources) -> str | None:
    """The directory of dead letters of one sink that is inside the objects of the other one, or contains them; or the
    one of both, if they copy one topic. The root of a bucket contains the directories of all sinks, and does not
    count."""
    if mine.place[:2] != other.place[:2]:
        return None
    for dead_letters, topics_dir in ((mine.dead_letters, other.topics_dir), (other.dead_letters, mine.topics_dir)):
        if dead_letters is not None and topics_dir and overlap(dead_letters, topics_dir, "/"):
            return dead_letters
    is_shared = mine.dead_letters is not None and mine.dead_letters == other.dead_letters
    return mine.dead_letters if is_shared and _shared_topics(mine, other)[0] else None


def conflict_message(mine: SinkResources, found: SinkConflict) -> str:
    """Describes the conflict and the action to take."""
    owner, resource = found.owner.full_name, found.resource
    if not found.certain:
        return (
            f"{mine.full_name} and {owner} may both copy {resource}. The patterns may overlap; a topic that matches "
            "both stops this sink with OwnershipConflict"
        )
    return (
        f"{resource} belongs to the sink {owner}, which had it first; {mine.full_name} does not run. Remove the shared "
        f"resource from one of the sinks, or delete one of them: once {owner} is deleted, this sink takes over what it "
        "owned in the bucket. bucket, topicsDir, groupId and sinkId are immutable: re-create this sink with others"
    )


def foreign_overlap_message(mine: SinkResources, found: SinkConflict) -> str:
    """Describes an overlap with a sink of another namespace and the action to take."""
    certainty = "also belongs" if found.certain else "may also belong"
    return (
        f"{found.resource} of {mine.full_name} {certainty} to the sink {found.owner.full_name} of another namespace. "
        "Neither is stopped. Of two sinks with one ledger or topic in the bucket one ends with OwnershipConflict or "
        "LedgerFenced; two sinks of one consumer group overwrite each other's offsets. Give one of them other values"
    )


def too_many_topics_message(mine: SinkResources) -> str:
    """Describes what is not compared, and the action to take."""
    return (
        f"the S3Sinks of the namespace {mine.namespace} name more than {MAX_INDEXED_TOPICS} topics, so the operator "
        "does not compare the topics of this sink with those of others. A topic that another sink copies to the same "
        "directory is found by the driver, which ends with OwnershipConflict. Delete sinks, set topicsPattern instead "
        "of topics, or use several namespaces"
    )


def _shared_topics(mine: SinkResources, other: SinkResources) -> tuple[Sequence[str], Sequence[str]]:
    """The topics that both copy, and those for which that is undecided."""
    ours, theirs = mine.known_topics, other.known_topics
    in_both = {topic: True if topic in theirs else _matches(other.pattern, topic) for topic in ours}
    in_both |= {topic: _matches(mine.pattern, topic) for topic in theirs if not in_both.get(topic)}
    shared = sorted(topic for topic, both in in_both.items() if both)
    return shared, sorted(topic for topic, both in in_both.items() if both is None)


def _matches(pattern: str | None, topic: str) -> bool | None:
    return False if pattern is None else matches(pattern, topic)


def _observed_topics(status: Any) -> Sequence[str]:
    """The topics in the status."""
    progress = status.get("progress") if isinstance(status, dict) else None
    topics = progress.get("topics") if isinstance(progress, dict) else None
    found = [str(each.get("topic")) for each in topics if isinstance(each, dict)] if isinstance(topics, list) else []
    return tuple(found[:MAX_OBSERVED_TOPICS])
