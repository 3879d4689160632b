"""New topics, new partitions, and topics that were deleted or created again, while a driver runs."""

from __future__ import annotations

import logging

from sink_job.coordinator.rounds import Rounds
from sink_job.coordinator.topic_claims import TopicClaims
from sink_job.coordinator.topic_discovery import TopicDiscovery
from sink_job.ledger import ownership

_log = logging.getLogger(__name__)


def record_topic_changes(discovery: TopicDiscovery, claims: TopicClaims, rounds: Rounds, *, now: int) -> frozenset[str]:
    """Discovers the topics and records new partitions and new topics of a pattern, each from its first offset. `now` is
    the round clock in ms. Returns the topics that were deleted; the caller publishes what was read of them.

    Raises TopicRecreated, OwnershipConflict, LedgerFenced and TransientError.
    """
    previous = discovery.current
    topics = discovery.refresh()
    kafka = ownership.check_topic_ids(rounds.state.kafka, discovery.topic_ids(topics))
    partitions = discovery.new_partitions(rounds.state, topics)
    new_topics = sorted({tp.topic for tp in partitions} - {tp.topic for tp in rounds.partitions})
    if new_topics:
        claims.acquire_all(new_topics)
        claims.acquire_generation(new_topics, rounds.state.topics_dir)
        partitions = claims.continued(partitions)
    if partitions:
        examples = ", ".join(map(str, sorted(partitions)[:5]))
        _log.info("discovered %d new partitions: %s", len(partitions), examples)
        rounds.committer.record(clock=now, partitions=partitions, kafka=kafka)
    deleted = previous - discovery.current
    if deleted:
        _log.warning("topics deleted in Kafka: %s; publishing what was read of them", ", ".join(sorted(deleted)))
    return deleted
