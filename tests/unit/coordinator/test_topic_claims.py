"""Claims on topics: of another sink, after a hand-over, and of a new generation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from sink_job.api.errors import OwnershipConflict
from sink_job.coordinator.topic_claims import TopicClaims
from sink_job.ledger import ownership
from sink_job.ledger.ownership import Owner
from sink_job.ledger.state import PartitionState
from tests.support.synthetic_log import SyntheticLog
from tests.unit.coordinator.claimed_sink import OTHER, TP, ClaimedSink

STRANGER = Owner("elsewhere", "default", "stranger", "stranger")


@pytest.fixture
def sink(tmp_path: Path) -> ClaimedSink:
    return ClaimedSink(tmp_path, SyntheticLog())


def claims(sink: ClaimedSink, *, take_over: bool = False, succession: Any = None) -> TopicClaims:
    return TopicClaims(
        sink.s3,
        sink.object_settings,
        sink.sink.sink_id,
        sink.owner,
        take_over=take_over,
        succession=succession,
    )


def claimed(sink: ClaimedSink) -> list[str]:
    return sorted(sink.memory.objects)


def owner(sink: ClaimedSink, key: str) -> str:
    name: str = msgspec.json.decode(sink.memory.objects[key].body)["name"]
    return name


def test_a_driver_claims_its_ledger_and_each_topic(sink: ClaimedSink) -> None:
    claims(sink).acquire_all(["log", "logs"])
    assert claimed(sink) == [
        "topics/_s3sink/default.log/owner.json",
        "topics/_s3sink/topics/log/json.json",
        "topics/_s3sink/topics/logs/json.json",
    ]


def test_a_topic_of_another_sink_is_a_conflict(sink: ClaimedSink) -> None:
    ownership.claim_topics(sink.s3, sink.object_settings, STRANGER, ["logs"])
    with pytest.raises(OwnershipConflict, match=r"topic logs as \.json below s3://archive/topics"):
        claims(sink).acquire_all(["log", "logs"])
    assert owner(sink, "topics/_s3sink/topics/logs/json.json") == "stranger"


def test_take_over_takes_a_topic_of_another_sink(sink: ClaimedSink) -> None:
    ownership.claim_topics(sink.s3, sink.object_settings, STRANGER, ["logs"])
    claims(sink, take_over=True).acquire_all(["logs"])
    assert owner(sink, "topics/_s3sink/topics/logs/json.json") == "log"


def test_a_ledger_of_another_sink_needs_take_over(sink: ClaimedSink) -> None:
    ownership.claim_ledger(sink.s3, sink.root, STRANGER)
    with pytest.raises(OwnershipConflict, match=r"the ledger s3://archive/topics/_s3sink/default\.log/"):
        claims(sink).acquire_all([])
    claims(sink, take_over=True).acquire_all([])
    assert owner(sink, f"{sink.root}owner.json") == "log"


class Succession:
    """The stranger has written the offsets of `TP` below 8."""

    predecessor: Owner | None = STRANGER

    def fence(self, predecessor: Owner) -> dict[Any, int]:
        return {TP: 8}


def test_new_partitions_continue_after_the_objects_of_the_previous_owner(sink: ClaimedSink) -> None:
    ownership.claim_topics(sink.s3, sink.object_settings, STRANGER, ["log"])
    of_sink = claims(sink, succession=Succession())
    of_sink.acquire_all(["log"])
    assert of_sink.continues_at == {TP: 8}
    new = {TP: PartitionState.start(2), OTHER: PartitionState.start(2)}
    assert of_sink.continued(new) == {TP: PartitionState.start(8), OTHER: PartitionState.start(2)}


def test_claims_are_checked_again_only_after_a_hand_over(sink: ClaimedSink) -> None:
    of_sink = claims(sink)
    of_sink.acquire_all(["log"])
    sink.memory.objects.pop("topics/_s3sink/topics/log/json.json")
    of_sink.check_after_claim(["log"])
    assert claimed(sink) == ["topics/_s3sink/default.log/owner.json"]
    ownership.mark_handed_over(sink.s3, sink.root, sink.owner)
    ownership.claim_topics(sink.s3, sink.object_settings, STRANGER, ["log"])
    with pytest.raises(OwnershipConflict):
        of_sink.check_after_claim(["log"])


@pytest.mark.parametrize(
    ("topics_dir", "keys"),
    [(None, []), ("topics", []), ("topics/_2", ["topics/_2/_s3sink/topics/log/json.json"])],
)
def test_a_generation_in_another_directory_has_claims_of_its_own(
    sink: ClaimedSink, topics_dir: str | None, keys: list[str]
) -> None:
    claims(sink).acquire_generation(["log"], topics_dir)
    assert claimed(sink) == keys


def test_the_claim_of_another_directory_names_the_ledger(sink: ClaimedSink) -> None:
    claims(sink).acquire_generation(["log"], "elsewhere")
    (body,) = (stored.body for stored in sink.memory.objects.values())
    assert msgspec.json.decode(body)["ledger"] == sink.root
