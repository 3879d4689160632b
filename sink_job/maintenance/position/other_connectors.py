"""Finds sink connectors that run on the topics with another consumer group than the sink's: with a wrong
`kafka.groupId` the sink would start beside its connector."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Final

from sink_job.engine.kafka_admin import GroupMember, KafkaAdmin
from sink_job.maintenance.position.cases import Case, PartitionPosition

MAX_GROUPS: Final = 5
"""Maximum number of groups in a message."""

_GROUP: Final = "connect-"
_CLIENT: Final = "connector-consumer-"


def other_connectors(admin: KafkaAdmin, group: str, topics: Collection[str]) -> Mapping[str, Sequence[str]]:
    """The groups of running sink connectors by topic, without `group`. Kafka Connect names its groups `connect-…` and
    the clients of its tasks `connector-consumer-…`, unless a configuration overrides both. Other consumers do not
    matter. Groups that this login may not describe are absent."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for each in admin.active_groups(sorted(topics)) if topics else ():
        if each.group != group and _is_connector(each):
            found[each.topic].add(each.group)
    return {topic: sorted(groups) for topic, groups in found.items()}


def _is_connector(member: GroupMember) -> bool:
    return member.group.startswith(_GROUP) or member.client_id.startswith(_CLIENT)


def beside(position: PartitionPosition, groups: Sequence[str]) -> PartitionPosition:
    """The position of a topic-partition beside running connectors with these groups: without a committed offset it does
    not start at its objects, since one of them may be the connector that writes them."""
    if not groups or position.facts.committed is not None:
        return position
    more = f" and {len(groups) - MAX_GROUPS:,} more" if len(groups) > MAX_GROUPS else ""
    running = f"running connectors read this topic with the groups {', '.join(groups[:MAX_GROUPS])}{more}"
    if position.case is Case.NEW:
        return replace(position, message=f"{running}: check kafka.groupId")
    message = position.message or f"the newest object ends before offset {position.after_objects}"
    return replace(
        position,
        case=Case.FORGOTTEN,
        start=None,
        accepted=(),
        message=f"{message}; {running}",
        connectors=tuple(groups),
    )
