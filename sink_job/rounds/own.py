"""Who owns a place in the bucket, and where a new sink starts (P5, P11)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from sink_job.api.errors import LedgerLost, OwnedByAnother, TopicRecreated
from sink_job.api.spec import Shaping
from sink_job.api.types import TopicPartition
from sink_job.cutting.keys import parse_key, topic_prefix
from sink_job.rounds.state import Kafka
from sink_job.s3 import S3, NotFound, PreconditionFailed


class Owner(msgspec.Struct, frozen=True):
    """Who a sink is: its cluster (its id, or a laptop's host name), namespace, name and sink id."""

    cluster: str
    namespace: str
    name: str
    sink_id: str

    def __str__(self) -> str:
        return f"S3Sink {self.namespace}/{self.name} (sinkId {self.sink_id}) of {self.cluster}"


def ledger_root(topics_dir: str, delimiter: str, sink_id: str) -> str:
    """Where the ledger of a sink stands; ends with `/`."""
    return f"{_internal(topics_dir, delimiter)}{sink_id}/"


def _internal(topics_dir: str, delimiter: str) -> str:
    return f"{topics_dir}{delimiter}_s3sink/" if topics_dir else "_s3sink/"


def claim_place(s3: S3, key: str, owner: Owner, what: str, *, take_over: bool) -> None:
    """Writes `owner` at `key`, if nobody stands there.

    Raises OwnedByAnother when somebody else does, unless `take_over`.
    """
    body = msgspec.json.encode(owner)
    try:
        s3.put(key, body, only_if_absent=not take_over)
    except PreconditionFailed:
        try:
            holder = msgspec.json.decode(s3.get(key), type=Owner)
        except NotFound:
            return claim_place(s3, key, owner, what, take_over=take_over)
        if holder != owner:
            raise OwnedByAnother(
                f"{what} belongs to {holder}; this is {owner}. Choose another topicsDir, topic or sinkId; when that "
                "sink is gone for good, start this one once with --take-over."
            ) from None


def claim_all(
    s3: S3, shaping: Shaping, extension: str, sink_id: str, owner: Owner, topics: Iterable[str], *, take_over: bool
) -> None:
    """Claims the ledger, and (topicsDir, topic, extension) of each topic."""
    root = ledger_root(shaping.s3.topics_dir, shaping.s3.directory_delimiter, sink_id)
    claim_ledger(s3, root, owner, take_over=take_over)
    claim_topics(s3, shaping, extension, owner, topics, take_over=take_over)


def claim_ledger(s3: S3, root: str, owner: Owner, *, take_over: bool = False) -> None:
    """Claims the ledger at `root`."""
    claim_place(s3, f"{root}owner.json", owner, f"the ledger s3://{s3.bucket}/{root}", take_over=take_over)


def claim_topics(
    s3: S3, shaping: Shaping, extension: str, owner: Owner, topics: Iterable[str], *, take_over: bool = False
) -> None:
    """Claims (topicsDir, topic, extension) of each topic."""
    internal = _internal(shaping.s3.topics_dir, shaping.s3.directory_delimiter)
    for topic in topics:
        what = f"topic {topic} as {extension} below s3://{s3.bucket}/{shaping.s3.topics_dir}"
        claim_place(s3, f"{internal}topics/{topic}/{extension.lstrip('.')}.json", owner, what, take_over=take_over)


def expect_same_topics(known: Kafka | None, now: Kafka) -> Kafka:
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
    return Kafka(known.cluster, {**known.topics, **now.topics})


def expect_no_objects(s3: S3, shaping: Shaping, starts: Mapping[TopicPartition, int]) -> None:
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
