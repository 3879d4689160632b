"""The one name of a Kafka topic-partition, shared by every floor: pure, hashable, sortable, cheap to pickle."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition of a Kafka topic; written `topic-partition`, as Kafka's own tools do."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @classmethod
    def parse(cls, text: str) -> "TopicPartition":
        """The inverse of `str`. A topic may hold hyphens itself: the partition is what follows the last one.

        Raises ValueError for anything that `str` could not have written.
        """
        topic, hyphen, number = text.rpartition("-")
        if not (topic and hyphen and number.isascii() and number.isdigit()):
            raise ValueError(f"not a topic-partition: {text!r}")
        return cls(topic, int(number))
