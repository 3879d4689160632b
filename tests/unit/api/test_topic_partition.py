"""The text form of a topic-partition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.topic_partition import TopicPartition

topic_names = st.from_regex(r"[A-Za-z0-9._-]{1,40}", fullmatch=True)


@given(topic_names, st.integers(0, 2**31 - 1))
def test_a_formatted_topic_partition_is_parsed_again(topic: str, partition: int) -> None:
    assert TopicPartition.parse(str(TopicPartition(topic, partition))) == TopicPartition(topic, partition)


@pytest.mark.parametrize("text", ["", "topic", "topic-", "-1", "topic-x", "topic-1.0", "topic-²"])
def test_a_text_that_is_not_a_topic_partition_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="not a topic-partition"):
        TopicPartition.parse(text)
