"""What the admin client answers with."""

from typing import NamedTuple


class TopicInfo(NamedTuple):
    """A topic as the cluster knows it. `id` is Kafka's topic id: another id under the same name is another topic."""

    id: str
    partitions: int
