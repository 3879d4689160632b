"""Keys of dead-letter objects: they lead to the record, and are none of other objects."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.sections.job_sections import DeadLetterSettings
from sink_job.api.spec import ObjectSettings
from sink_job.ledger.generations import settings_below
from sink_job.partitioning.object_keys import ObjectName, object_key, parse_key, topic_prefixes
from sink_job.records.batch import DEAD_LETTERS
from tests.unit.rotation.settings import object_settings


def with_dead_letters(topics_dir: str = "topics", **given: object) -> ObjectSettings:
    settings = object_settings(s3={"topicsDir": topics_dir, **given})
    chosen = DeadLetterSettings.model_validate({"prefix": "rejected", "onNullValue": "Fail"})
    return settings.model_copy(update={"dead_letters": chosen})


def test_a_key_has_prefix_topic_partition_and_first_offset() -> None:
    key = object_key(with_dead_letters(), "flights", DEAD_LETTERS, 3, 42)
    assert key == "rejected/flights/partition=3/flights+3+0000000042.json"


@given(
    st.from_regex(r"[A-Za-z0-9._-]{1,8}", fullmatch=True),
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**63 - 1),
    st.sampled_from(["", "topics"]),
)
def test_a_key_is_parsed_as_that_of_a_dead_letter_object(topic: str, partition: int, first: int, root: str) -> None:
    settings = with_dead_letters(root)
    key = object_key(settings, topic, DEAD_LETTERS, partition, first)
    assert parse_key(settings, key) == ObjectName(topic, DEAD_LETTERS, partition, first) or root == ""
    assert any(key.startswith(prefix) for prefix in topic_prefixes(settings, topic))


@pytest.mark.parametrize("path", ["partition=0", "year=2026", "rejected"])
def test_the_key_of_another_object_is_none_of_a_dead_letter_object(path: str) -> None:
    settings = with_dead_letters()
    key = object_key(settings, "flights", path, 0, 42)
    assert parse_key(settings, key) == ObjectName("flights", path, 0, 42)
    assert parse_key(settings, f"rejected/flights/{path}/flights+1+0000000042.json") is None


@pytest.mark.parametrize(
    ("root", "below", "prefix"),
    [
        ("topics", "topics/generation=2", "rejected/generation=2"),
        ("topics", "topics", "rejected"),
        ("", "generation=2", "rejected/generation=2"),
    ],
)
def test_a_generation_has_a_directory_of_its_own(root: str, below: str, prefix: str) -> None:
    settings = settings_below(with_dead_letters(root), below)
    assert settings.dead_letters is not None
    assert settings.dead_letters.prefix == prefix
