"""Owners of ledgers and topics, and the checks before a ledger is created or continued."""

from __future__ import annotations

from typing import cast

import pytest

from sink_job.api.errors import (
    ConfigurationError,
    LedgerLost,
    LedgerUnreadable,
    OwnershipConflict,
    TopicRecreated,
    TransientError,
)
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.ledger import ownership
from sink_job.ledger.ownership import MAX_ACQUIRE_ATTEMPTS, Owner
from sink_job.ledger.state import KafkaIdentity
from sink_job.s3 import Conflict, S3Client
from tests.support.memory_s3 import MemoryS3

ROOT = "topics/_s3sink/sink/"
OWNER = Owner("cluster", "default", "flights", "sink")
OTHER = Owner("cluster", "default", "other", "other")
SETTINGS = ObjectSettings()
TP = TopicPartition("flights", 0)


@pytest.fixture
def memory() -> MemoryS3:
    return MemoryS3()


@pytest.fixture
def s3(memory: MemoryS3) -> S3Client:
    return cast("S3Client", memory)


def test_an_identity_is_read_back() -> None:
    assert Owner.parse(OWNER.identity) == OWNER
    assert OWNER.identity == "cluster/default/flights/sink"


# -- claims ------------------------------------------------------------------------------------------------------------


def test_a_claim_is_kept_by_its_owner_and_rejected_for_others(s3: S3Client) -> None:
    for _ in range(2):
        ownership.claim_ledger(s3, ROOT, OWNER)
    with pytest.raises(OwnershipConflict, match="flights"):
        ownership.claim_ledger(s3, ROOT, OTHER)
    ownership.claim_ledger(s3, ROOT, OWNER)


def test_take_over_replaces_the_owner_and_keeps_the_names_of_the_former_ones(s3: S3Client) -> None:
    ownership.claim_ledger(s3, ROOT, OWNER)
    assert ownership.claim_ledger(s3, ROOT, OTHER, take_over=True) == (OWNER,)
    with pytest.raises(OwnershipConflict, match="other"):
        ownership.claim_ledger(s3, ROOT, OWNER)


def test_the_same_topic_with_another_extension_is_another_claim(s3: S3Client) -> None:
    ownership.claim_topics(s3, SETTINGS, OWNER, ["flights"])
    compressed = SETTINGS.model_validate({"format": {"compression": {"codec": "Gzip"}}})
    ownership.claim_topics(s3, compressed, OTHER, ["flights"])
    with pytest.raises(OwnershipConflict):
        ownership.claim_topics(s3, SETTINGS, OTHER, ["flights"])


def test_the_ledger_of_the_same_sink_id_in_another_topics_dir_is_rejected(s3: S3Client) -> None:
    ownership.claim_topics(s3, SETTINGS, OWNER, ["flights"], ledger="elsewhere/_s3sink/sink/")
    with pytest.raises(ConfigurationError, match="elsewhere/_s3sink/sink/"):
        ownership.claim_topics(s3, SETTINGS, OWNER, ["flights"])


@pytest.mark.parametrize("body", [b"", b"{", b"[]"])
def test_a_claim_that_cannot_be_read_names_the_flag_that_replaces_it(s3: S3Client, body: bytes) -> None:
    s3.put(f"{ROOT}owner.json", body)
    with pytest.raises(LedgerUnreadable, match="start once with --take-over"):
        ownership.claim_ledger(s3, ROOT, OWNER)
    assert ownership.claim_ledger(s3, ROOT, OWNER, take_over=True) == ()


@pytest.mark.parametrize("failures", [MAX_ACQUIRE_ATTEMPTS - 1, MAX_ACQUIRE_ATTEMPTS])
def test_a_store_that_rejects_a_claim_is_asked_a_few_times(memory: MemoryS3, s3: S3Client, failures: int) -> None:
    left = [failures]

    def fault(call: str, key: str) -> None:
        if call == "put" and left[0]:
            left[0] -= 1
            raise Conflict(key, key)

    memory.fault = fault
    if failures < MAX_ACQUIRE_ATTEMPTS:
        assert ownership.claim_ledger(s3, ROOT, OWNER) == ()
    else:
        with pytest.raises(TransientError, match="cannot be written"):
            ownership.claim_ledger(s3, ROOT, OWNER)


# -- marks of a hand-over ----------------------------------------------------------------------------------------------


def test_only_the_ledger_of_the_owner_is_marked_as_handed_over(s3: S3Client) -> None:
    assert not ownership.mark_handed_over(s3, ROOT, OWNER)
    ownership.claim_ledger(s3, ROOT, OWNER)
    assert not ownership.is_handed_over(s3, ROOT, OWNER)
    assert not ownership.mark_handed_over(s3, ROOT, OTHER)
    assert not ownership.is_handed_over(s3, ROOT, OWNER)
    assert ownership.mark_handed_over(s3, ROOT, OWNER)
    assert ownership.is_handed_over(s3, ROOT, OWNER)


@pytest.mark.parametrize("owner", [None, OTHER], ids=["missing", "of another sink"])
def test_a_ledger_that_is_not_ones_own_may_have_been_handed_over(s3: S3Client, owner: Owner | None) -> None:
    if owner is not None:
        ownership.claim_ledger(s3, ROOT, owner)
    assert ownership.is_handed_over(s3, ROOT, OWNER)


# -- ids of topics -----------------------------------------------------------------------------------------------------


def test_new_topics_are_added_to_the_recorded_ones() -> None:
    current = KafkaIdentity("kafka", {"b": "2", "c": "3"})
    assert ownership.check_topic_ids(None, current) == current
    assert ownership.check_topic_ids(KafkaIdentity("kafka", {"a": "1", "b": "2"}), current) == KafkaIdentity(
        "kafka", {"a": "1", "b": "2", "c": "3"}
    )


@pytest.mark.parametrize(
    ("current", "message"),
    [
        (KafkaIdentity("another", {"a": "1"}), "written from Kafka cluster kafka"),
        (KafkaIdentity("kafka", {"a": "2"}), "its id was 1 and is 2"),
    ],
)
def test_another_cluster_or_topic_ends_the_start(current: KafkaIdentity, message: str) -> None:
    with pytest.raises(TopicRecreated, match=message):
        ownership.check_topic_ids(KafkaIdentity("kafka", {"a": "1"}), current)


# -- a missing ledger --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "lost"),
    [
        ("topics/flights/p/flights+0+0000000009.json", False),
        ("topics/flights/p/flights+0+0000000010.json", True),
        ("topics/flights/p/flights+0+0000000011.json", True),
        ("topics/flights/p/flights+1+0000000011.json", False),
        ("topics/flights/p/flights+0+0000000011.avro", False),
        ("topics/flights/note.txt", False),
    ],
)
def test_an_object_at_or_after_the_start_is_one_of_a_lost_ledger(s3: S3Client, key: str, lost: bool) -> None:
    s3.put(key, b"")
    if not lost:
        ownership.check_no_objects(s3, SETTINGS, {TP: 10})
        return
    with pytest.raises(LedgerLost, match="begins at or after offset 10, the start offset of flights-0"):
        ownership.check_no_objects(s3, SETTINGS, {TP: 10})
