"""Whether two places hold the same records, in constant memory: a count and a sum that no order changes."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, KafkaError, TopicPartition

from devtools import bucket_listing

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_MODULUS = 1 << 128
_SECONDS = 60.0


@dataclass
class Contents:
    """Count and sum of hashes of the values of each partition. Equal contents are equal multisets of values."""

    counts: dict[int, int] = field(default_factory=lambda: defaultdict(int))
    sums: dict[int, int] = field(default_factory=lambda: defaultdict(int))

    def add(self, partition: int, values: Iterable[bytes]) -> None:
        for value in values:
            self.counts[partition] += 1
            digest = int.from_bytes(hashlib.blake2b(value, digest_size=16).digest(), "big")
            self.sums[partition] = (self.sums[partition] + digest) % _MODULUS

    def differences(self, other: Contents) -> list[str]:
        """A sentence for each partition that differs; `self` is Kafka, `other` the bucket."""
        found = []
        for partition in sorted({*self.counts, *other.counts}):
            expected, actual = self.counts[partition], other.counts[partition]
            if expected != actual:
                found.append(f"partition {partition}: {actual:,} records in objects, {expected:,} in Kafka")
            elif self.sums[partition] != other.sums[partition]:
                found.append(f"partition {partition}: {actual:,} records as in Kafka, but other values")
        return found

    def total(self) -> int:
        return sum(self.counts.values())


def of_topic(bootstrap: str, topic: str, partitions: int) -> Contents:
    """The committed records of a topic, up to the present end. Raises RuntimeError if Kafka returns none for a
    minute."""
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": "soak",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
    }
    contents, missing = Contents(), set(range(partitions))
    consumer = Consumer(settings)
    try:
        consumer.assign([TopicPartition(topic, p, 0) for p in sorted(missing)])
        while missing:
            messages = consumer.consume(10_000, _SECONDS if not contents.counts else 5.0)
            if not messages:
                raise RuntimeError(f"reading {topic}: no records of partitions {sorted(missing)}")
            for message in messages:
                error, partition, value = message.error(), message.partition(), message.value()
                assert partition is not None
                if error is not None and error.code() == KafkaError._PARTITION_EOF:
                    missing.discard(partition)
                elif error is None and value is not None:
                    contents.add(partition, [bytes(value)])
    finally:
        consumer.close()
    return contents


def of_bucket(client: S3Client, bucket: str) -> Contents:
    """The lines of the objects below `partition=N/`."""
    contents = Contents()
    for key in bucket_listing.objects(client, bucket):
        partition = int(key.partition("/partition=")[2].partition("/")[0])
        contents.add(partition, bucket_listing.lines(client, bucket, key))
    return contents
