"""Topics that may not exist, described in as few requests as possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sink_job.api.errors import TopicNotFound
from sink_job.engine.kafka_admin import TopicInfo, describe_topics

A, B = TopicInfo("id-a", 1), TopicInfo("id-b", 2)


class Cluster:
    """A cluster with some topics, which counts the requests."""

    def __init__(self, **topics: TopicInfo) -> None:
        self.existing = topics
        self.requests: list[list[str]] = []

    def topics(self, names: Sequence[str]) -> Mapping[str, TopicInfo]:
        self.requests.append(list(names))
        if not set(names) <= self.existing.keys():
            raise TopicNotFound("a topic does not exist")
        return {name: self.existing[name] for name in names}


def test_topics_that_exist_take_one_request() -> None:
    cluster = Cluster(a=A, b=B)
    assert describe_topics(cluster.topics, {"b", "a"}) == {"a": A, "b": B}
    assert cluster.requests == [["a", "b"]]


def test_a_topic_that_does_not_exist_is_none_and_hides_no_other() -> None:
    assert describe_topics(Cluster(a=A, b=B).topics, ["a", "gone", "b"]) == {"a": A, "gone": None, "b": B}


def test_no_topic_exists() -> None:
    assert describe_topics(Cluster().topics, ["x", "y"]) == {"x": None, "y": None}


def test_no_names_take_no_request() -> None:
    cluster = Cluster(a=A)
    assert describe_topics(cluster.topics, []) == {}
    assert cluster.requests == []
