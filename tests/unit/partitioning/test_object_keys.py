"""Keys of objects (docs/semantics.md)."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from sink_job.partitioning.object_keys import (
    ObjectName,
    extension,
    is_temporary,
    listing_prefixes,
    object_key,
    parse_key,
    path_elements,
    topic_prefix,
)
from sink_job.records.batch import DEAD_LETTERS
from tests.unit.rotation.settings import object_settings


def test_a_key_consists_of_topics_dir_topic_path_and_a_file_name_with_the_first_offset() -> None:
    assert object_key(object_settings(), "flights", "year=2024/month=05", 3, 17) == (
        "topics/flights/year=2024/month=05/flights+3+0000000017.json"
    )


def test_a_key_without_a_topics_dir_starts_with_the_topic() -> None:
    bare = object_settings(s3={"topicsDir": ""})
    assert object_key(bare, "t", "p", 0, 0) == "t/p/t+0+0000000000.json"
    assert topic_prefix(bare, "t") == "t/"


def test_delimiters_and_the_pad_width_are_configurable() -> None:
    chosen = object_settings(
        s3={"directoryDelimiter": "|", "fileDelimiter": "_", "offsetPadWidth": 3, "topicsDir": "a/b"}
    )
    assert object_key(chosen, "t", "x=1|y=2", 0, 5) == "a/b|t|x=1|y=2|t_0_005.json"
    assert topic_prefix(chosen, "t") == "a/b|t|"
    assert path_elements(chosen, "x=1|y=2") == ["x=1", "y=2"]


@pytest.mark.parametrize(("width", "expected"), [(0, "12345"), (3, "12345"), (5, "12345"), (8, "00012345")])
def test_an_offset_is_padded_and_never_truncated(width: int, expected: str) -> None:
    key = object_key(object_settings(s3={"offsetPadWidth": width}), "t", "p", 0, 12345)
    assert key == f"topics/t/p/t+0+{expected}.json"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, ".json"),
        ({"compression": {"codec": "Gzip"}}, ".json.gz"),
        ({"compression": {"codec": "Zstd"}}, ".json.zst"),
        ({"output": "Bytes"}, ".bin"),
        ({"output": "Bytes", "bytes": {"extension": ".dat"}, "compression": {"codec": "Gzip"}}, ".dat.gz"),
        ({"output": "Avro", "compression": {"codec": "Snappy"}}, ".avro"),
        ({"output": "Bytes", "compression": {"codec": "Zstd"}}, ".bin.zst"),
        ({"output": "Parquet"}, ".snappy.parquet"),
        ({"output": "Parquet", "compression": {"codec": "None"}}, ".parquet"),
        ({"output": "Parquet", "compression": {"codec": "Lz4"}}, ".lz4raw.parquet"),
        ({"output": "Parquet", "compression": {"codec": "Gzip"}}, ".gz.parquet"),
        ({"output": "Parquet", "compression": {"codec": "Zstd"}}, ".zstd.parquet"),
        ({"output": "Parquet", "compression": {"codec": "Brotli"}}, ".br.parquet"),
    ],
)
def test_a_key_ends_in_format_and_compression(settings: dict[str, Any], expected: str) -> None:
    assert extension(object_settings(format=settings)) == expected


delimiters = st.sampled_from(["/", "|", "--", "::"])


@given(
    directory=delimiters,
    file=st.sampled_from(["+", "_", "-x-", "~"]),
    topics_dir=st.sampled_from(["", "topics", "a/b"]),
    width=st.integers(0, 12),
    topic=st.text("ab.", min_size=1, max_size=6),
    path=st.lists(st.text("xy=1+_", min_size=1, max_size=4), min_size=1, max_size=3),
    partition=st.integers(0, 2000),
    first=st.integers(0, 2**63 - 1),
)
def test_a_key_is_parsed_into_its_parts(
    directory: str,
    file: str,
    topics_dir: str,
    width: int,
    topic: str,
    path: list[str],
    partition: int,
    first: int,
) -> None:
    settings = object_settings(
        s3={"directoryDelimiter": directory, "fileDelimiter": file, "topicsDir": topics_dir, "offsetPadWidth": width}
    )
    key = object_key(settings, topic, directory.join(path), partition, first)
    assert parse_key(settings, key) == ObjectName(topic, directory.join(path), partition, first)
    assert key.startswith(topic_prefix(settings, topic))


@pytest.mark.parametrize(
    "key",
    [
        "",
        "topics/t/p/t+0+0000000000.json.gz",
        "topics/t/p/u+0+0000000000.json",
        "topics/t/t+0+0000000000.json",
        "topics/t/p/t+0+00.json",
        "topics/t/p/t+0+x.json",
        "topics/t/p/t+00+0000000000.json",
        "other/t/p/t+0+0000000000.json",
        "topics/_s3sink/default.t/ledger/00000000000000000001.json.gz",
    ],
)
def test_a_key_that_the_sink_does_not_write_is_not_parsed(key: str) -> None:
    assert parse_key(object_settings(), key) is None


def test_a_path_that_resembles_the_topic_is_distinguished_from_it() -> None:
    key = object_key(object_settings(), "t", "t/x/t", 0, 5)
    assert parse_key(object_settings(), key) == ObjectName("t", "t/x/t", 0, 5)


def test_a_topic_name_that_contains_the_delimiter_is_parsed() -> None:
    settings = object_settings(s3={"directoryDelimiter": "-", "fileDelimiter": "+"})
    key = object_key(settings, "a-b-a", "partition=0", 0, 5)
    assert parse_key(settings, key) == ObjectName("a-b-a", "partition=0", 0, 5)


@pytest.mark.parametrize("numbers", [f"{2**31}+0000000000", f"0+{2**63}"])
def test_a_key_with_a_number_beyond_kafkas_maxima_is_not_parsed(numbers: str) -> None:
    assert parse_key(object_settings(), f"topics/t/p/t+{numbers}.json") is None


@pytest.mark.parametrize(
    ("path", "key", "expected"),
    [
        (DEAD_LETTERS, "topics/_s3sink/default.a/dead-letters/1/t/partition=0/t+0+0000000002.json", True),
        (DEAD_LETTERS, "_s3sink/default.a/dead-letters/1/t/partition=0/t+0+0000000002.json", True),
        (DEAD_LETTERS, "rejected/t/partition=0/t+0+0000000002.json", False),
        (DEAD_LETTERS, "rejected/_s3sink/partition=0/_s3sink+0+0000000002.json", False),
        ("_s3sink/a/dead-letters", "topics/t/_s3sink/a/dead-letters/t+0+0000000002.json", False),
    ],
)
def test_only_a_dead_letter_object_in_the_folder_of_a_ledger_is_temporary(path: str, key: str, expected: bool) -> None:
    assert is_temporary(path, key) is expected


# -- s3.prefixes and topicInPath ---------------------------------------------------------------------------------------


def test_a_topic_has_the_directory_of_its_first_entry() -> None:
    prefixes = [{"topic": "a", "prefix": "one"}, {"pattern": "[ab]", "prefix": "two/2"}]
    settings = object_settings(s3={"prefixes": prefixes})
    assert object_key(settings, "a", "p", 0, 1) == "topics/one/a/p/a+0+0000000001.json"
    assert object_key(settings, "b", "p", 0, 1) == "topics/two/2/b/p/b+0+0000000001.json"
    assert object_key(settings, "ab", "p", 0, 1) == "topics/ab/p/ab+0+0000000001.json"


def test_the_topic_can_be_in_the_name_of_the_object_alone() -> None:
    prefixes = [{"topic": "a", "prefix": "one"}]
    settings = object_settings(s3={"topicInPath": False, "prefixes": prefixes})
    assert object_key(settings, "a", "p", 0, 1) == "topics/one/p/a+0+0000000001.json"
    assert object_key(settings, "b", "p", 0, 1) == "topics/p/b+0+0000000001.json"
    root = object_settings(s3={"topicInPath": False, "topicsDir": ""})
    assert (object_key(root, "b", "p", 0, 1), topic_prefix(root, "b")) == ("p/b+0+0000000001.json", "")


directories = st.sampled_from(["", "a", "b", "a/b", "x=1", "generation=2"])
names = st.tuples(
    st.text("ab.-", min_size=1, max_size=4),
    st.lists(st.text("abxy=1+_-.", min_size=1, max_size=4), min_size=1, max_size=3),
    st.integers(0, 12),
    st.integers(0, 120),
)


@given(
    directory=st.sampled_from(["/", "|", "-/", "/-", "::"]),
    file=st.sampled_from(["+", "_", "-x-", "-", "~"]),
    topics_dir=directories,
    prefixes=st.lists(
        st.fixed_dictionaries(
            {"pattern": st.sampled_from(["a", "b", "a.*", ".*"]), "prefix": directories.filter(bool)}
        ),
        max_size=3,
    ),
    in_path=st.booleans(),
    one=names,
    other=names,
)
def test_a_key_with_any_directories_is_parsed_into_its_parts(
    directory: str,
    file: str,
    topics_dir: str,
    prefixes: list[dict[str, str]],
    in_path: bool,
    one: tuple[str, list[str], int, int],
    other: tuple[str, list[str], int, int],
) -> None:
    """So no two topics have a common key."""
    s3 = {"directoryDelimiter": directory, "fileDelimiter": file, "topicsDir": topics_dir, "prefixes": prefixes}
    assume(directory not in file and file not in directory and (prefixes or not in_path))
    settings = object_settings(s3={**s3, "topicInPath": in_path})
    for topic, path, partition, first in (one, other):
        key = object_key(settings, topic, directory.join(path), partition, first)
        assert parse_key(settings, key) == ObjectName(topic, directory.join(path), partition, first)
        assert key.startswith(topic_prefix(settings, topic))
        assert any(key.startswith(prefix) for prefix in listing_prefixes([settings], [one[0], other[0]]))


@pytest.mark.parametrize(
    "key",
    [
        "topics/_s3sink/default.log/dead-letters/1/t/partition=0/t+0+0000000000.json",
        "topics/t+0+0000000000.json",
        "topics/p/u+0+00.json",
        "other/p/t+0+0000000000.json",
        "topics/one/p/b+0+9223372036854775808.json",
    ],
)
def test_a_key_that_no_directory_leads_to_is_not_parsed(key: str) -> None:
    settings = object_settings(s3={"topicInPath": False, "prefixes": [{"topic": "a", "prefix": "one"}]})
    assert parse_key(settings, key) is None


def test_each_key_is_listed_below_one_prefix() -> None:
    prefixes = [{"topic": "a", "prefix": "b"}, {"topic": "c", "prefix": "b/d"}, {"topic": "e", "prefix": "b-e"}]
    assert listing_prefixes([object_settings(s3={"prefixes": prefixes, "topicInPath": False})], "ace") == [
        "topics/b-e/",
        "topics/b/",
    ]
    assert listing_prefixes([object_settings(s3={"topicInPath": False})], "ace") == ["topics/"]
    assert listing_prefixes([object_settings()], "ace") == ["topics/a/", "topics/c/", "topics/e/"]
