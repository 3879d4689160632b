"""A sink takes over what another one owned: by name, after fencing it, and safely after a crash at any request."""

from __future__ import annotations

import contextlib
import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from sink_job.api.enums import CompressionCodec, PartitionerType, RotationScope
from sink_job.api.errors import ConfigurationError, LedgerFenced, OwnershipConflict, UnsupportedStore
from sink_job.api.sections.operator_sections import OffsetResetSpec
from sink_job.api.spec import Sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import StopCondition
from sink_job.ledger import ownership
from sink_job.ledger.handover import Handover
from sink_job.ledger.ownership import Owner
from sink_job.ledger.session import LedgerAccess
from sink_job.ledger.state import LedgerState, Record
from sink_job.ledger.store import Ledger
from sink_job.ledger.takeover import take_over
from sink_job.maintenance.discard_open import discard_open
from sink_job.maintenance.offset_reset import OffsetResetter
from sink_job.s3 import PutResult
from tests.support.memory_sink import MemorySinkFixture, error_of
from tests.support.synthetic_log import FileConsumerGroup, SyntheticLog

LOG = SyntheticLog(records=12)
CLAIM = "topics/_s3sink/topics/log/json.json"


class Killed(BaseException):
    """The process ends at this request."""


@pytest.fixture
def previous(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    """A sink that has copied everything, with open objects left."""
    sink = MemorySinkFixture(tmp_path, monkeypatch)
    sink.run(LOG, goal=StopCondition(until_caught_up=True))
    return sink


@pytest.fixture
def successor(previous: MemorySinkFixture) -> Callable[..., None]:
    return successor_of(previous)


def successor_of(previous: MemorySinkFixture, name: str = "second") -> Callable[..., None]:
    """Runs another sink, with another ledger, for the same topic and consumer group."""
    sink = previous.sink

    def run(take_over_from: Owner | None = None, log: SyntheticLog = LOG) -> None:
        goal = StopCondition(until_caught_up=True, publish_open=True, take_over_from=take_over_from)
        other = sink.model_copy(update={"metadata": sink.metadata.model_copy(update={"name": name})})
        assert other.sink_id != sink.sink_id
        previous.sink = other
        owner, previous.owner = previous.owner, Owner("function", other.namespace, other.name, other.sink_id)
        try:
            previous.run(log, goal=goal)
        finally:
            previous.sink, previous.owner = sink, owner

    return run


def test_the_error_names_the_owner_for_the_operator(
    previous: MemorySinkFixture, successor: Callable[..., None]
) -> None:
    error = error_of(successor)
    assert isinstance(error, OwnershipConflict)
    assert error.owner == previous.owner.identity
    assert f"--take-over-from={previous.owner.identity}" in str(error)


def test_the_error_names_the_owner_that_was_given_beside_that_of_the_claim(
    previous: MemorySinkFixture, successor: Callable[..., None]
) -> None:
    stranger = Owner("function", "data", "stranger", "data.stranger")
    error = error_of(lambda: successor(stranger))
    assert isinstance(error, OwnershipConflict)
    assert error.owner == previous.owner.identity
    assert f"--take-over-from names another owner, {stranger.identity}" in str(error)
    assert f"start this one once with --take-over-from={previous.owner.identity}" in str(error)


def test_a_successor_takes_over_from_the_named_owner_alone(
    previous: MemorySinkFixture, successor: Callable[..., None]
) -> None:
    stranger = Owner("function", "data", "stranger", "data.stranger")
    assert isinstance(error_of(lambda: successor(stranger)), OwnershipConflict)
    successor(previous.owner)
    copied = sorted(offset for offsets in previous.offsets().values() for offset in offsets)
    assert copied == list(range(12))


SECOND = Owner("function", "data", "second", "default.log")
"""A sink with the ledger of the first one: it sets its sinkId."""


def command_access(sink: MemorySinkFixture, take_over_from: Owner | None) -> LedgerAccess:
    """The access of a command of the second sink."""
    access = replace(sink.ledger_access(), owner=SECOND)
    handover = Handover(
        s3=access.s3,
        topics_dir="topics",
        root=access.root,
        attempt=access.attempt,
        clock=access.clock,
        predecessor=take_over_from,
    )
    return replace(access, succession=handover)


def test_a_command_takes_over_from_the_named_owner_alone(previous: MemorySinkFixture) -> None:
    stranger = Owner("function", "data", "stranger", "data.stranger")
    assert isinstance(error_of(lambda: discard_open(command_access(previous, None))), OwnershipConflict)
    assert isinstance(error_of(lambda: discard_open(command_access(previous, stranger))), OwnershipConflict)
    assert discard_open(command_access(previous, previous.owner)).objects == 1
    assert previous.orphans() == []
    assert discard_open(command_access(previous, None)).objects == 0, "the ledger belongs to the second sink"


def test_a_command_that_is_killed_during_its_hand_over_is_completed_by_the_next_one(
    previous: MemorySinkFixture,
) -> None:
    def fault(operation: str, key: str) -> None:
        if operation == "put" and key.endswith("owner.json") and b"predecessor" in previous.s3.objects[key].body:
            raise Killed

    with previous.faults(fault), pytest.raises(Killed):
        discard_open(command_access(previous, previous.owner))
    assert discard_open(command_access(previous, None)).objects == 1


def test_a_suspended_driver_of_the_previous_owner_is_fenced(
    previous: MemorySinkFixture, successor: Callable[..., None]
) -> None:
    suspended = previous.driver(LOG).start()
    successor(previous.owner)
    before = previous.offsets()
    assert isinstance(error_of(suspended.run), LedgerFenced)
    assert previous.offsets() == before


def test_a_driver_suspended_before_its_claim_stops_after_it(
    previous: MemorySinkFixture, successor: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has checked its ownership before the hand-over, and claims its ledger after it."""
    name = "sink_job.coordinator.coordinator.take_over"

    def resumed(ledger: Ledger, record: Callable[[LedgerState], Record]) -> LedgerState:
        monkeypatch.setattr(name, take_over)
        successor(previous.owner)
        return take_over(ledger, record)

    monkeypatch.setattr(name, resumed)
    assert isinstance(error_of(lambda: previous.run(LOG)), OwnershipConflict)
    copied = sorted(offset for offsets in previous.offsets().values() for offset in offsets)
    assert copied == list(range(12))


def test_a_command_suspended_before_its_claim_stops_after_it(
    previous: MemorySinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has checked its ownership before another sink with the same ledger takes over, and claims it after that."""
    name = "sink_job.ledger.session.take_over"

    def resumed(ledger: Ledger, record: Callable[[LedgerState], Record]) -> LedgerState:
        monkeypatch.setattr(name, take_over)
        discard_open(command_access(previous, previous.owner))
        return take_over(ledger, record)

    monkeypatch.setattr(name, resumed)
    assert isinstance(error_of(lambda: discard_open(previous.ledger_access())), OwnershipConflict)


@pytest.mark.parametrize("number", range(40))
def test_a_hand_over_that_is_killed_at_any_request_is_completed_by_the_next_start(
    previous: MemorySinkFixture, successor: Callable[..., None], number: int
) -> None:
    left = number

    def kill(call: str, key: str) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise Killed

    suspended = previous.driver(LOG).start()
    with previous.faults(kill), contextlib.suppress(Killed):
        successor(previous.owner)
    if isinstance(error_of(successor), OwnershipConflict):  # as long as the file names the previous owner
        successor(previous.owner)
    assert isinstance(error_of(suspended.run), LedgerFenced)
    copied = sorted(offset for offsets in previous.offsets().values() for offset in offsets)
    assert copied == list(range(12))


def copied_by(sink: MemorySinkFixture) -> list[int]:
    return sorted(offset for offsets in sink.offsets().values() for offset in offsets)


@pytest.mark.parametrize("group_offset", [None, 0])
def test_a_successor_continues_after_the_objects_whatever_the_groups_offset_is(
    previous: MemorySinkFixture, successor: Callable[..., None], group_offset: int | None
) -> None:
    """The previous owner ended before its commit, had another group, or a late commit has set the group back."""
    previous.group.unlink()
    if group_offset is not None:
        FileConsumerGroup(LOG, previous.group).alter_group_offsets("group", {TopicPartition("log", 0): group_offset})
    successor(previous.owner)
    assert copied_by(previous) == list(range(12))


def test_after_a_crash_before_its_first_claim_a_successor_continues_after_the_objects(
    previous: MemorySinkFixture, successor: Callable[..., None]
) -> None:
    def kill(call: str, key: str) -> None:
        if call == "put" and ".second/ledger/" in key:
            raise Killed

    previous.group.unlink()
    with previous.faults(kill), pytest.raises(Killed):
        successor(previous.owner)
    successor()
    assert copied_by(previous) == list(range(12))


def test_a_new_ledger_that_would_continue_inside_of_objects_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An object with offsets 0, 3 … 12 is visible, and that with offset 2 is open."""
    sink, log = MemorySinkFixture(tmp_path, monkeypatch), SyntheticLog(records=14, paths=3)
    spec = sink.sink.spec
    changes = {
        "partitioner": spec.partitioner.model_copy(update={"type": PartitionerType.FIELD, "fields": ["kind"]}),
        "rotation": spec.rotation.model_copy(update={"scope": RotationScope.OBJECT}),
    }
    sink.sink = sink.sink.model_copy(update={"spec": spec.model_copy(update=changes)})
    sink.run(log, goal=StopCondition(until_caught_up=True))
    before = sink.offsets()
    error = error_of(lambda: successor_of(sink)(sink.owner, log))
    assert "objects of log-0 hold records after open ones" in str(error)
    assert f"Use a sink with spec.sinkId: {sink.owner.sink_id}" in str(error)
    assert sink.offsets() == before


def test_a_third_sink_fences_also_the_owner_whose_hand_over_the_second_one_has_not_completed(
    previous: MemorySinkFixture, successor: Callable[..., None]
) -> None:
    def kill(call: str, key: str) -> None:
        if call == "put" and b"predecessor" in previous.s3.objects[CLAIM].body:
            raise Killed

    suspended = previous.driver(LOG).start()
    with previous.faults(kill), pytest.raises(Killed):
        successor(previous.owner)
    second = Owner("function", previous.sink.namespace, "second", f"{previous.sink.namespace}.second")
    successor_of(previous, "third")(second)
    assert isinstance(error_of(suspended.run), LedgerFenced)
    assert copied_by(previous) == list(range(12))


def test_the_owner_of_a_ledger_may_use_the_topics_of_each_former_owner_of_it(previous: MemorySinkFixture) -> None:
    """The second sink has no claim for the extension of the first one, which the third sink writes again."""

    def run(name: str, codec: CompressionCodec, take_over_from: Owner | None) -> None:
        sink = previous.sink
        metadata = sink.metadata.model_copy(update={"name": name})
        spec = sink.spec.model_copy(update={"sink_id": sink.sink_id})
        previous.sink = with_codec(sink.model_copy(update={"metadata": metadata, "spec": spec}), codec)
        previous.owner = Owner("function", sink.namespace, name, sink.sink_id)
        goal = StopCondition(until_caught_up=True, publish_open=True, take_over_from=take_over_from)
        previous.run(LOG, goal=goal)

    first = previous.owner
    run("second", CompressionCodec.GZIP, first)
    second = previous.owner
    run("third", CompressionCodec.NONE, second)
    assert b'"third"' in previous.s3.objects[CLAIM].body
    assert copied_by(previous) == list(range(12))


def test_the_owner_of_a_ledger_may_use_topics_that_the_owner_before_it_did_not_read(
    previous: MemorySinkFixture,
) -> None:
    s3: Any = previous.s3
    object_settings, first = previous.sink.object_settings(), previous.owner
    ownership.claim_topics(s3, object_settings, first, ["other"])

    def claim(owner: Owner, predecessor: Owner, topics: list[str]) -> None:
        succession = command_access(previous, predecessor).succession
        former = ownership.claim_ledger(s3, previous.root, owner, succession=succession)
        ownership.claim_topics(s3, object_settings, owner, topics, succession=succession, former=former)

    third = Owner(SECOND.cluster, SECOND.namespace, "third", SECOND.sink_id)
    claim(SECOND, first, ["log"])
    claim(third, SECOND, ["log", "other"])
    assert b'"third"' in previous.s3.objects[CLAIM.replace("/log/", "/other/")].body


def test_a_driver_suspended_before_the_first_claim_of_its_ledger_does_not_report_the_objects_of_its_successor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """LedgerLost would advise to restore a ledger that never was, or to start a new one."""
    sink = MemorySinkFixture(tmp_path, monkeypatch)
    name, owner = "sink_job.coordinator.coordinator.take_over", sink.owner

    def resumed(ledger: Ledger, record: Callable[[LedgerState], Record]) -> LedgerState:
        monkeypatch.setattr(name, take_over)
        successor_of(sink)(owner)
        sink.group.unlink()
        return take_over(ledger, record)

    monkeypatch.setattr(name, resumed)
    assert isinstance(error_of(lambda: sink.run(LOG)), OwnershipConflict)
    assert copied_by(sink) == list(range(12))


def test_take_over_keeps_where_a_topic_continues_and_the_former_owners(
    previous: MemorySinkFixture, successor: Callable[..., None]
) -> None:
    """A first start with --take-over-from that ended early, and a second one with --take-over."""
    s3, first = previous.s3, previous.owner
    successor(first)
    before = s3.objects[CLAIM].body
    assert b'"continues_at":{"0":10}' in before
    second = Owner("function", previous.sink.namespace, "second", f"{previous.sink.namespace}.second")
    ownership.acquire(s3, CLAIM, second, "it", take_over=True, topic="log")  # type: ignore[arg-type]
    assert s3.objects[CLAIM].body == before
    third = Owner("function", "data", "third", first.sink_id)
    assert ownership.claim_ledger(s3, previous.root, third, take_over=True) == (first,)  # type: ignore[arg-type]
    assert ownership.claim_ledger(s3, previous.root, third, take_over=True) == (first,)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["second", None], ids=["another sink", "a sink of the same name"])
def test_the_directory_of_an_offset_reset_belongs_to_the_ledger_of_the_sink_that_was_reset(
    previous: MemorySinkFixture, name: str | None, tmp_path: Path
) -> None:
    """A sink with that directory as its topicsDir and the same sinkId has another ledger: it would neither fence the
    previous one nor know where that one ends."""
    request = OffsetResetSpec.model_validate({"nonce": "n", "to": "Earliest", "onExisting": "NewPrefix"})
    admin = FileConsumerGroup(LOG, previous.group)
    OffsetResetter(previous.sink, previous.ledger_access(), admin, request).run()
    previous.run(LOG)
    moved = {key: previous.s3.objects.pop(key) for key in previous.offsets() if "/generation=2/" in key}
    assert moved, "a reader has moved them away"
    sink, owner = previous.sink, previous.owner
    found = sink.spec.s3.model_copy(update={"topics_dir": "topics/generation=2"})
    kafka = sink.spec.kafka.model_copy(update={"group_id": "other"})
    spec = sink.spec.model_copy(update={"sink_id": sink.sink_id, "s3": found, "kafka": kafka})
    metadata = sink.metadata.model_copy(update={"name": name or sink.name})
    previous.sink, previous.group = sink.model_copy(update={"metadata": metadata, "spec": spec}), tmp_path / "other"
    previous.owner = Owner(owner.cluster, owner.namespace, name or sink.name, owner.sink_id)
    goal = StopCondition(until_caught_up=True, publish_open=True, take_over_from=owner)
    error = error_of(lambda: previous.run(LOG, goal=goal))
    assert type(error) is ConfigurationError
    assert f"belongs to the ledger s3://archive/topics/_s3sink/{sink.sink_id}/ of {owner}" in str(error)
    assert not [key for key in previous.offsets() if "/generation=2/" in key]
    previous.run(LOG, goal=replace(goal, take_over_from=None, take_over=True, start_new_ledger=True))
    assert [key for key in previous.offsets() if "/generation=2/" in key], "the user has said that it is given up"


def with_codec(sink: Sink, codec: CompressionCodec) -> Sink:
    """The sink with another compression, and so another extension."""
    compression = sink.spec.format.compression.model_copy(update={"codec": codec, "level": 2})
    output = sink.spec.format.model_copy(update={"compression": compression})
    return sink.model_copy(update={"spec": sink.spec.model_copy(update={"format": output})})


def copied_in_any_compression(sink: MemorySinkFixture) -> list[int]:
    contents = {key: stored.body for key, stored in sink.s3.objects.items() if "/_s3sink/" not in key}
    plain = (gzip.decompress(body) if key.endswith(".gz") else body for key, body in contents.items())
    return sorted(json.loads(line)["offset"] for text in plain for line in text.splitlines())


@pytest.mark.parametrize("number", [*range(0, 60, 2), None])
def test_a_successor_with_another_compression_continues_after_the_objects(
    previous: MemorySinkFixture, number: int | None
) -> None:
    """No claim with its extension is in its way. It is killed at a request or not, and started again."""
    suspended, owner = previous.driver(LOG).start(), previous.owner
    previous.sink = with_codec(previous.sink, CompressionCodec.GZIP)
    previous.group.unlink()  # another sinkId has another group
    left = number

    def kill(call: str, key: str) -> None:
        nonlocal left
        if left is not None:
            left -= 1
            if left < 0:
                raise Killed

    with previous.faults(kill), contextlib.suppress(Killed):
        successor_of(previous)(owner)
    successor_of(previous)(owner)
    assert copied_in_any_compression(previous) == list(range(12))
    assert isinstance(error_of(suspended.run), LedgerFenced)
    assert b'"second"' in previous.s3.objects[CLAIM].body


def test_of_two_successors_one_takes_over(previous: MemorySinkFixture) -> None:
    owner, s3 = previous.owner, previous.s3

    class Fencing:
        predecessor = owner

        def __init__(self, meanwhile: Callable[[], None]) -> None:
            self.meanwhile = meanwhile

        def fence(self, predecessor: Owner) -> dict[TopicPartition, int]:
            self.meanwhile()
            return {}

    first, second = (Owner("function", "data", name, name) for name in ("first", "second"))

    def try_second() -> None:
        with pytest.raises(OwnershipConflict):
            ownership.acquire(s3, CLAIM, second, "it", take_over=False, succession=Fencing(lambda: None))  # type: ignore[arg-type]

    ownership.acquire(s3, CLAIM, first, "it", take_over=False, succession=Fencing(try_second))  # type: ignore[arg-type]
    assert f'"name":"{first.name}"'.encode() in s3.objects[CLAIM].body


def test_without_the_ledger_of_the_previous_owner_nothing_is_taken_over(
    previous: MemorySinkFixture, successor: Callable[..., None]
) -> None:
    del previous.s3.objects[f"{previous.root}owner.json"]
    error = error_of(lambda: successor(previous.owner))
    assert isinstance(error, OwnershipConflict)
    assert "cannot be fenced" in str(error)


def test_a_store_that_ignores_if_match_is_rejected_and_nothing_is_taken_over(
    previous: MemorySinkFixture, successor: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    put, before = previous.s3.put, previous.s3.objects[CLAIM].body

    def ignoring(key: str, body: bytes, *, if_match: str | None = None, **given: Any) -> PutResult:
        return put(key, body, **given)

    monkeypatch.setattr(previous.s3, "put", ignoring)
    assert isinstance(error_of(lambda: successor(previous.owner)), UnsupportedStore)
    assert previous.s3.objects[CLAIM].body == before
