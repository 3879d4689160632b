"""Who owns a place in the bucket, and where a new sink starts (P5, P11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from sink_job.api.errors import (
    ConfigurationError,
    LedgerLost,
    LedgerUnreadable,
    OwnershipConflict,
    TopicRecreated,
    TransientError,
)
from sink_job.api.field_types import RESERVED
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger import files
from sink_job.ledger.generations import ledger_of
from sink_job.ledger.state import KafkaIdentity
from sink_job.partitioning.object_keys import parse_key, topic_prefix
from sink_job.s3 import Conflict, NotFound, PreconditionFailed, S3Client

MAX_ACQUIRE_ATTEMPTS = 5
"""How often a place is claimed that is neither free nor anybody's."""


class Owner(msgspec.Struct, frozen=True):
    """Who a sink is: its cluster (its id, or a laptop's host name), namespace, name and sink id."""

    cluster: str
    namespace: str
    name: str
    sink_id: str

    def __str__(self) -> str:
        return f"S3Sink {self.namespace}/{self.name} (sinkId {self.sink_id}) of {self.cluster}"


def ledger_root(topics_dir: str, sink_id: str) -> str:
    """The prefix of a sink's ledger; ends with `/`. It does not depend on `directoryDelimiter`, which may be edited."""
    return f"{_internal(topics_dir)}{sink_id}/"


def _internal(topics_dir: str) -> str:
    return f"{topics_dir}/{RESERVED}/" if topics_dir else f"{RESERVED}/"


def claims_prefix(topics_dir: str) -> str:
    """What the keys of claimed topics begin with; `<topic>/<extension without its dot>.json` follows."""
    return f"{_internal(topics_dir)}topics/"


def acquire(s3: S3Client, key: str, owner: Owner, what: str, *, take_over: bool) -> None:
    """Writes `owner` at `key`, if nobody stands there.

    Raises OwnershipConflict when somebody else does, and LedgerUnreadable when something else does, unless `take_over`;
    TransientError when the store keeps refusing to write it and nothing is there.
    """
    body = msgspec.json.encode(owner)
    for _ in range(MAX_ACQUIRE_ATTEMPTS):
        try:
            s3.put(key, body, only_if_absent=not take_over)
            return
        except (PreconditionFailed, Conflict):
            holder = _holder(s3, key, what)
        if holder == owner:
            return
        if holder is not None and not take_over:
            raise OwnershipConflict(
                f"{what} belongs to {holder}; this is {owner}. Choose another topicsDir, topic or sinkId; when that "
                "sink is gone for good, start this one once with --take-over."
            )
    raise TransientError(f"s3://{s3.bucket}/{key} cannot be written, and nothing is there: the store refuses each try")


def _holder(s3: S3Client, key: str, what: str) -> Owner | None:
    """Who has claimed the place; None for nobody. Raises LedgerUnreadable."""
    try:
        return files.read(s3, key, Owner)
    except NotFound:
        return None
    except LedgerUnreadable as error:
        raise LedgerUnreadable(
            f"{error} It says who owns {what}; if no other sink uses that, start once with --take-over, which writes "
            "it again."
        ) from None


def claim_all(
    s3: S3Client,
    shaping: ObjectSettings,
    extension: str,
    sink_id: str,
    owner: Owner,
    topics: Iterable[str],
    *,
    take_over: bool,
) -> None:
    """Claims the ledger, and (topicsDir, topic, extension) of each topic."""
    root = ledger_root(shaping.s3.topics_dir, sink_id)
    claim_ledger(s3, root, owner, take_over=take_over)
    claim_topics(s3, shaping, extension, owner, topics, take_over=take_over)


def claim_ledger(s3: S3Client, root: str, owner: Owner, *, take_over: bool = False) -> None:
    """Claims the ledger at `root`."""
    acquire(s3, f"{root}owner.json", owner, f"the ledger s3://{s3.bucket}/{root}", take_over=take_over)


def claim_topics(
    s3: S3Client,
    shaping: ObjectSettings,
    extension: str,
    owner: Owner,
    topics: Iterable[str],
    *,
    take_over: bool = False,
) -> None:
    """Claims (topicsDir, topic, extension) of each topic."""
    prefix = claims_prefix(shaping.s3.topics_dir)
    for topic in topics:
        what = f"topic {topic} as {extension} below s3://{s3.bucket}/{shaping.s3.topics_dir}"
        acquire(s3, f"{prefix}{topic}/{extension.lstrip('.')}.json", owner, what, take_over=take_over)


def check_topic_ids(known: KafkaIdentity | None, now: KafkaIdentity) -> KafkaIdentity:
    """The ids to record.

    Raises TopicRecreated when the cluster or a topic is another one than the ledger's, though it has the same name.
    """
    if known is None:
        return now
    if known.cluster != now.cluster:
        raise TopicRecreated(
            f"the ledger was written from Kafka cluster {known.cluster}, bootstrapServers lead to {now.cluster}. "
            "Choose another sinkId and topicsDir for another cluster."
        )
    for topic, topic_id in now.topics.items():
        if known.topics.get(topic, topic_id) != topic_id:
            raise TopicRecreated(
                f"topic {topic} was deleted and created again (id {known.topics[topic]}, now {topic_id}): its offsets "
                "begin anew. Reset the sink's offsets (state: Stopped, and spec.offsets.reset to Earliest with "
                "onExisting: NewPrefix; or s3sink reset-offsets), or choose another sinkId and topicsDir."
            )
    return KafkaIdentity(known.cluster, {**known.topics, **now.topics})


def check_no_other_ledger(place: str, group: str, marks: Mapping[TopicPartition, str]) -> None:
    """Without a ledger at `place` (a URL): raises ConfigurationError when the metadata of the group's offsets, `marks`,
    names one in another bucket or topicsDir. A new ledger would start at these offsets, and not know what is open
    in that one. Of another sinkId in the same topicsDir the owner of the topics decides (`claim_topics`)."""
    for tp, mark in sorted(marks.items()):
        other = ledger_of(mark)
        if other is None or _parent(other) == _parent(place):
            continue
        was, now = _fields(other), _fields(place)
        edits = [f"{field} was {was[field]} and is {now[field]}" for field in was if was[field] != now[field]]
        raise ConfigurationError(
            f"there is no ledger at {place}, and the offsets of consumer group {group} were committed with the ledger "
            f"{other} (of {tp}: «{mark}»): {', '.join(edits)}. A new ledger would start at these offsets: records of "
            "objects that are closed behind them would be copied twice, and what is open in that ledger would never be "
            "removed. Nothing was written. Write the old value back. Or publish what is open under the old value "
            "(s3sink run --publish-open), then start once with --start-new-ledger, which continues at the group's "
            "offsets; or copy with another sinkId and kafka.groupId from kafka.startingOffsets on."
        )


def _parent(ledger: str) -> str:
    return ledger.rstrip("/").rpartition("/")[0]


def _fields(ledger: str) -> dict[str, str]:
    """The fields of the spec that a ledger's URL is made of."""
    bucket, _, root = ledger.removeprefix("s3://").partition("/")
    topics_dir, _, sink_id = f"/{root}".rpartition(f"/{RESERVED}/")
    return {
        "spec.s3.bucket": bucket,
        "spec.s3.topicsDir": topics_dir.removeprefix("/") or "empty",
        "spec.sinkId": sink_id.rstrip("/"),
    }


def check_no_objects(s3: S3Client, shaping: ObjectSettings, starts: Mapping[TopicPartition, int]) -> None:
    """Without a ledger: raises LedgerLost when objects of this sink stand at or above where it would start."""
    for topic in sorted({tp.topic for tp in starts}):
        for listed in s3.list(topic_prefix(shaping, topic)):
            parsed = parse_key(shaping, listed.key)
            if parsed is None:
                continue
            start = starts.get(TopicPartition(parsed.topic, parsed.partition))
            if start is not None and parsed.first >= start:
                raise LedgerLost(
                    f"there is no ledger, but s3://{s3.bucket}/{listed.key} is at or behind offset {start}, "
                    f"where {parsed.topic}-{parsed.partition} would be read from: records would be doubled. Restore "
                    "the ledger (_s3sink/), move the objects away, or set the group's offsets behind them; "
                    "--start-new-ledger goes on all the same."
                )
