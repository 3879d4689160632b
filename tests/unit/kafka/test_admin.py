"""The texts that Python and the admin client in the JVM exchange. tests/data/test_kafka_admin.py has the requests."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.topic_partition import TopicPartition
from sink_job.kafka.admin import format_positions, parse_offsets

TOPICS = st.from_regex(r"[A-Za-z0-9._-]{1,8}", fullmatch=True)
PARTITIONS = st.builds(TopicPartition, TOPICS, st.integers(0, 2**31 - 1))


@given(st.dictionaries(PARTITIONS, st.integers(-1, 2**63 - 1), max_size=6))
def test_offsets_are_parsed_from_their_text_again(offsets: dict[TopicPartition, int]) -> None:
    assert parse_offsets(format_positions(offsets)) == offsets


def test_a_topic_is_one_line_with_its_partitions() -> None:
    partitions = [TopicPartition("a", 0), TopicPartition("b", 1), TopicPartition("a", 2)]
    assert format_positions(dict.fromkeys(partitions)) == "a 0 2\nb 1"
    assert format_positions(dict(zip(partitions, (5, 6, 7), strict=True))) == "a 0 5 2 7\nb 1 6"
    assert format_positions({}) == ""


def test_a_partition_without_an_offset_is_no_answer() -> None:
    assert parse_offsets("") == {}
    with pytest.raises(ValueError, match="shorter"):
        parse_offsets("a 0 5 1")
