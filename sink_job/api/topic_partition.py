"""A Kafka topic-partition: hashable, sortable and cheap to pickle. All packages use this type."""

from typing import NamedTuple


class TopicPartition(NamedTuple):
    """A partition of a Kafka topic. Its text form is `topic-partition`, as in Kafka's own tools."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @classmethod
    def parse(cls, text: str) -> "TopicPartition":
        """The inverse of `str`. The partition follows the last hyphen, because a topic may contain hyphens.

        Raises ValueError for a text of another form.
        """
        topic, hyphen, number = text.rpartition("-")
        if not (topic and hyphen and number.isascii() and number.isdigit()):
            raise ValueError(f"not a topic-partition: {text!r}")
        return cls(topic, int(number))
