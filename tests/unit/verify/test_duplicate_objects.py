"""Detection of duplicates of a sink's objects by their keys."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sink_job.api.topic_partition import TopicPartition
from sink_job.partitioning.object_keys import object_key
from sink_job.verify.duplicate_objects import DuplicateDetector, KeyOrigin, OtherObject
from tests.unit.rotation.settings import object_settings

PLAIN, GZIPPED = object_settings(), object_settings(format={"compression": {"codec": "Gzip"}})
ORIGIN = KeyOrigin(TopicPartition("log", 3), 10)


def origin(name: str, *, settings: Any = PLAIN, claimed: set[tuple[str, str]] | None = None) -> KeyOrigin | OtherObject:
    return DuplicateDetector([settings], ["log"], claimed or ()).origin(f"topics/log/{name}")


@pytest.mark.parametrize(
    "name",
    [
        "p/log+3+0000000010.json",
        "p/log+3+0000000010.json.gz",
        "p/log+3+0000000010.json.gz.gz",
        "p/log+3+10.json",
        "p/log+3+000000000000000000010.json",
        "p/log+03+0000000010.json",
        "p/log+3+0000000010 (1).json",
        "log+3+0000000010.json",
        "_id=7/log+3+10.json",
    ],
)
def test_a_key_in_the_form_of_the_sink_has_an_origin(name: str) -> None:
    assert origin(name) == ORIGIN


@pytest.mark.parametrize("suffix", [".parquet", ".gz.parquet", ".lz4raw.parquet"])
def test_a_parquet_object_with_another_codec_has_an_origin(suffix: str) -> None:
    parquet = object_settings(format={"converter": "ConnectJson", "output": "Parquet"})
    assert origin(f"p/log+3+0000000010{suffix}", settings=parquet) == ORIGIN
    assert origin("p/log+3+0000000010.json", settings=parquet) is OtherObject.FOREIGN


def test_an_uncompressed_copy_of_a_compressed_object_has_an_origin() -> None:
    assert origin("p/log+3+0000000010.json", settings=GZIPPED) == ORIGIN


def test_a_negative_partition_is_returned_unchanged() -> None:
    assert origin("p/log+-1+0000000010.json") == KeyOrigin(TopicPartition("log", -1), 10)


@pytest.mark.parametrize(
    "name",
    [
        "README.txt",
        "p/log+3+0000000010.csv",
        "p/log+3+0000000010.json.md5",
        "p/log+3.json",
        "p/log+x+0000000010.json",
        "p/blog+3+0000000010.json",
        "p/log2+3+0000000010.json",
        f"p/log+3+{2**63}.json",
        f"p/log+{2**63}+10.json",
    ],
)
def test_other_keys_are_foreign(name: str) -> None:
    assert origin(name) is OtherObject.FOREIGN


@pytest.mark.parametrize("name", ["_old/log+3+10.json", "p/.log+3+10.json", "p/_log+3+10.json", ".tmp/x"])
def test_names_that_readers_skip_are_hidden(name: str) -> None:
    assert origin(name) is OtherObject.HIDDEN


def test_an_extension_that_another_sink_has_claimed_belongs_to_that_sink() -> None:
    claimed = {("log", ".json"), ("log", ".json.gz"), ("other", ".json.zst")}
    assert origin("p/log+3+0000000010.json.gz", claimed=claimed) is OtherObject.ANOTHER_SINKS
    assert origin("p/log+3+0000000010.json.zst", claimed=claimed) == ORIGIN
    assert origin("p/log+3+10.json", claimed=claimed) == ORIGIN


@given(
    settings=st.sampled_from([PLAIN, GZIPPED, object_settings(s3={"directoryDelimiter": "+", "fileDelimiter": "-"})]),
    path=st.text("ab=_.", min_size=1),
    partition=st.integers(0, 2**31 - 1),
    first=st.integers(0, 2**63 - 1),
)
def test_every_key_of_the_sink_has_an_origin(settings: Any, path: str, partition: int, first: int) -> None:
    key = object_key(settings, "log", path, partition, first)
    assert DuplicateDetector([settings], ["log"]).origin(key) == KeyOrigin(TopicPartition("log", partition), first)
