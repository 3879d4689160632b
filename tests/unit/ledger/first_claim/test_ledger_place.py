"""The place of a ledger, and the errors for another one."""

from __future__ import annotations

from typing import Any, cast

import pytest

from sink_job.api.errors import ConfigurationError
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger.first_claim import ledger_place
from sink_job.ledger.generations import commit_metadata
from sink_job.ledger.ownership import Owner, claim_ledger
from sink_job.s3 import S3Client, S3Settings
from tests.support.memory_s3 import MemoryS3, as_client
from tests.unit.api.manifests import accepted

ROOT = "topics/_s3sink/sink/"
TP = TopicPartition("flights", 0)
URL = "s3://archive/topics/_s3sink/sink/"


@pytest.mark.parametrize(
    ("text", "edit"),
    [
        (commit_metadata(1, "s3://other/topics/_s3sink/sink/"), "spec.s3.bucket was other and is archive"),
        (commit_metadata(7, "s3://archive/old/_s3sink/sink/"), "spec.s3.topicsDir was old and is topics"),
        (commit_metadata(1, "s3://archive/_s3sink/sink/"), "spec.s3.topicsDir was empty and is topics"),
        (commit_metadata(1, "s3://archive/topics/_s3sink/older/"), None),
        (commit_metadata(1, URL), None),
        ("", None),
        ("set by a person", None),
    ],
)
def test_offsets_of_a_ledger_in_another_place_name_the_setting_that_was_edited(text: str, edit: str | None) -> None:
    if edit is None:
        ledger_place.check_no_other_ledger(URL, "group", {TP: text})
        return
    with pytest.raises(ConfigurationError) as error:
        ledger_place.check_no_other_ledger(URL, "group", {TP: text})
    assert f"(metadata of flights-0: {text}): {edit}." in str(error.value)


@pytest.mark.parametrize(
    ("text", "warned"),
    [(commit_metadata(2, URL), True), (commit_metadata(2, "s3://archive/topics/_s3sink/older/"), False), ("", False)],
)
def test_offsets_of_a_missing_ledger_warn_that_it_was_deleted(text: str, warned: bool) -> None:
    warning = ledger_place.deleted_ledger_warning(URL, "group", {TopicPartition("a", 0): "", TP: text})
    assert (warning is not None) == warned
    assert not warned or "such as that of flights-0" in cast("Any", warning)


def placed(prefix: str | None = None) -> S3Client:
    """A client with the ledger in the bucket `ledgers`."""
    memory = MemoryS3()
    place = {"bucket": "ledgers", "prefix": prefix} if prefix else {"bucket": "ledgers"}
    memory.settings = S3Settings.of(accepted({"spec.s3.ledger": place}).spec, {})
    return as_client(memory)


@pytest.mark.parametrize(
    ("topics_dir", "root"), [("topics", ROOT), ("", "_s3sink/sink/"), ("a/b", "a/b/_s3sink/sink/")]
)
def test_the_ledger_of_a_sink_is_below_its_topics_dir(topics_dir: str, root: str) -> None:
    assert ledger_place.ledger_root(as_client(MemoryS3()), topics_dir, "sink") == root


@pytest.mark.parametrize(("prefix", "front"), [(None, ""), ("a/b", "a/b/")])
def test_a_ledger_in_another_place_has_the_objects_bucket_in_its_keys(prefix: str | None, front: str) -> None:
    s3 = placed(prefix)
    root = ledger_place.ledger_root(s3, "topics", "sink")
    assert root == f"{front}archive/{ROOT}"
    assert ledger_place.owner_file(s3, root) == f"{ROOT}owner.json"
    assert ledger_place.recorded(s3, root) == f"s3://ledgers/{root}"


@pytest.mark.parametrize(
    ("other", "prefix", "edit"),
    [
        (URL, None, "spec.s3.ledger was not set and is bucket ledgers"),
        (
            "s3://old/archive/topics/_s3sink/sink/",
            "a",
            "spec.s3.ledger was bucket old and is bucket ledgers with prefix a",
        ),
        ("s3://ledgers/a/archive/old/_s3sink/sink/", "a", "spec.s3.topicsDir was old and is topics"),
        ("s3://ledgers/older/topics/_s3sink/sink/", None, "spec.s3.bucket was older and is archive"),
        ("s3://other/topics/_s3sink/sink/", None, "spec.s3.bucket, spec.s3.topicsDir or spec.s3.ledger was changed"),
    ],
)
def test_offsets_of_a_ledger_in_another_place_name_both_places(other: str, prefix: str | None, edit: str) -> None:
    s3 = placed(prefix)
    url = s3.url_of(ledger_place.ledger_root(s3, "topics", "sink"))
    with pytest.raises(ConfigurationError) as error:
        ledger_place.check_no_other_ledger(url, "group", {TP: commit_metadata(1, other)}, URL)
    assert f"{edit}. A new ledger" in str(error.value)
    assert ("--start-new-ledger --take-over" in str(error.value)) == ("spec.s3.ledger" in edit)


def test_offsets_of_a_ledger_that_was_elsewhere_name_its_place() -> None:
    other = commit_metadata(1, "s3://ledgers/a/b/archive/topics/_s3sink/sink/")
    with pytest.raises(ConfigurationError, match=r"spec\.s3\.ledger was bucket ledgers with prefix a/b and is not set"):
        ledger_place.check_no_other_ledger(URL, "group", {TP: other})


OWNERS = {"a": Owner("cluster", "a", "sink", "sink"), "b": Owner("cluster", "b", "sink", "sink")}
IN_ONE_PLACE = {
    "a prefix that ends with the bucket": ("archive", "tenant", {"bucket": "ledgers", "prefix": "data"}),
    "a bucket that is a prefix": ("data", "archive/tenant", {"bucket": "ledgers"}),
    "no field": ("ledgers", "data/archive/tenant", None),
}
"""Bucket, topicsDir and s3.ledger of sinks whose ledger is at `data/archive/tenant/_s3sink/sink/` in `ledgers`."""


def stored_in(buckets: dict[str, MemoryS3], place: str) -> tuple[S3Client, str]:
    """A client of the objects' bucket of one of these sinks that has its files of ownership and its ledger in
    `buckets`, and the root of the ledger."""
    bucket, topics_dir, ledger = IN_ONE_PLACE[place]
    given: dict[str, Any] = {"spec.s3.bucket": bucket, "spec.s3.topicsDir": topics_dir}
    settings = S3Settings.of(accepted(given | ({} if ledger is None else {"spec.s3.ledger": ledger})).spec, {})
    memory = MemoryS3()
    memory.bucket, memory.settings = bucket, settings
    memory.objects = buckets.setdefault("all", MemoryS3()).objects
    s3 = as_client(memory)
    return s3, ledger_place.ledger_root(s3, topics_dir, "sink")


@pytest.mark.parametrize("take_over", [False, True])
@pytest.mark.parametrize("second", IN_ONE_PLACE)
@pytest.mark.parametrize("first", IN_ONE_PLACE)
def test_two_sinks_whose_fields_lead_to_one_ledger_do_not_share_it(first: str, second: str, take_over: bool) -> None:
    buckets: dict[str, MemoryS3] = {}
    s3, root = stored_in(buckets, first)
    claim_ledger(s3, root, OWNERS["a"])
    claim_ledger(s3, root, OWNERS["a"])
    other, same_root = stored_in(buckets, second)
    assert other.url_of(same_root) == s3.url_of(root) == "s3://ledgers/data/archive/tenant/_s3sink/sink/"
    if first == second:
        claim_ledger(other, root, OWNERS["a"], take_over=take_over)
        return
    kept = set(buckets["all"].objects)
    with pytest.raises(ConfigurationError, match=r"belongs to S3Sink a/sink .* Nothing was written"):
        claim_ledger(other, root, OWNERS["b"], take_over=take_over)
    assert set(buckets["all"].objects) == kept
