"""The generations of a ledger in the model: how a reset begins one, and what is proved of each.

Where a request leads, what is in its way, how the ledger's lists are divided and what `s3sink verify` says of them are
the sink's own functions; the model's keys are put into the sink's own for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple, cast

from msgspec.structs import replace

from model import ledger
from model.ledger import TP, Kept
from model.model_state import Case, Command, Driver, World, checksum, directory_of, first_of
from sink_job.api.enums import OnExisting, ResetTo
from sink_job.api.errors import SinkError
from sink_job.api.operator_sections import OffsetResetSpec, PartitionOffset
from sink_job.api.spec import KeySettings, ObjectSettings
from sink_job.coordinator.topic_discovery import initial_state
from sink_job.ledger.generations import end_of_generation, generation_metadata, new_topics_dir, shaping_below
from sink_job.ledger.state import ClosedObject, LedgerState, OffsetResetRecord, Record, RotationRange
from sink_job.ledger.transitions import diff
from sink_job.maintenance.existing_objects import check_empty, check_existing_objects
from sink_job.maintenance.reset_targets import LogBounds, ResetContext, request_digest, resolve_targets
from sink_job.partitioning.object_keys import object_key
from sink_job.s3 import S3Client
from sink_job.verify.audit import audit
from sink_job.verify.audit_input import BucketState, GenerationAudit, KafkaOffsets, UntrackedObject
from sink_job.verify.per_generation import buckets, per_generation
from sink_job.verify.results import Finding, FindingType

SHAPING = ObjectSettings(s3=KeySettings(topics_dir="", offset_pad_width=0))


class Stretch(NamedTuple):
    """What a generation copies: the offsets `[start, end)`; `end` is None for the current one."""

    start: int
    end: int | None


class Listed(NamedTuple):
    key: str


class Store:
    """The bucket, as far as a look at what is in the way asks it."""

    bucket = "b"

    def __init__(self, world: World) -> None:
        self._keys = sorted(real(key) for key, _, _ in world.objects)

    def list(self, prefix: str) -> Iterator[Listed]:
        return (Listed(key) for key in self._keys if key.startswith(prefix))

    def head(self, key: str) -> Listed | None:
        return Listed(key) if key in self._keys else None


@cache
def real(key: str) -> str:
    """The sink's own key for one of the model's."""
    path = key.rpartition("/")[2].rpartition("+")[0]
    return object_key(_below(directory_of(key)), TP.topic, path, TP.partition, first_of(key) or 0)


@cache
def _below(directory: str) -> ObjectSettings:
    return shaping_below(SHAPING, directory)


@cache
def _renamed(o: ClosedObject) -> ClosedObject:
    return replace(o, key=real(o.key))


# -- how one begins --------------------------------------------------------------------------------------------------


@cache
def _request(command: Command) -> OffsetResetSpec:
    existing = OnExisting(command.on_existing)
    if command.to == "latest":
        return OffsetResetSpec(nonce=command.nonce, to=ResetTo.LATEST, on_existing=existing)
    at = [PartitionOffset(topic=TP.topic, partition=TP.partition, offset=command.to)]
    return OffsetResetSpec(nonce=command.nonce, to=ResetTo.OFFSETS, partitions=at, on_existing=existing)


@cache
def digest_of(command: Command) -> str:
    return request_digest(_request(command))


def start_of(case: Case, command: Command) -> int:
    places = ResetContext(logs=LogBounds({TP: 0}, {TP: case.records}), at={}, reached={}, now=0)
    return resolve_targets(_request(command), places)[TP]


def planned(case: Case, world: World, state: Kept[LedgerState], d: Driver) -> Kept[Record] | None:
    """The record of the reset that a command is asked for; None where something is in its way."""
    body = record(case, state, d)
    if not case.rules.say("reset.in-the-way"):
        return body
    reset, starts = body.value.reset, {TP: start_of(case, case.command(d.name))}
    assert reset is not None, "it is a reset"
    store, shaping = cast("S3Client", Store(world)), _below(reset.topics_dir)
    try:
        if reset.on_existing == OnExisting.NEW_PREFIX.value:
            check_empty(store, shaping, starts)
        else:
            check_existing_objects(store, shaping, lists(world, state), starts)
    except SinkError:
        return None
    return body


def record(case: Case, state: Kept[LedgerState], d: Driver) -> Kept[Record]:
    """The record that begins the next generation."""
    command, before, rules = case.command(d.name), state.value, case.rules
    generation, number = before.generation + 1, before.number + 1
    is_apart = command.on_existing == OnExisting.NEW_PREFIX.value
    topics_dir = new_topics_dir(SHAPING, generation) if is_apart else before.topics_dir or ""
    reset = OffsetResetRecord(
        generation=generation,
        topics_dir=topics_dir,
        ended={
            name: end_of_generation(p) if rules.say("reset.ended") else initial_state(p.next)
            for name, p in before.partitions.items()
        },
        nonce=command.nonce,
        to=_request(command).to.value,
        on_existing=command.on_existing,
        request=digest_of(command),
    )
    is_claim = rules.say("reset.claim")
    return ledger.keep(
        Record(
            number=number,
            epoch=number if is_claim else d.epoch,
            attempt=d.name,
            kind="claim" if is_claim else "round",
            clock=0,
            settings=ledger.settings_of(topics_dir),
            partitions={str(TP): diff(None, initial_state(start_of(case, command)))},
            reset=reset,
        )
    )


# -- what is proved of each ------------------------------------------------------------------------------------------


def claims(world: World, state: Kept[LedgerState]) -> list[Record]:
    """Every claim that the ledger still has."""
    there = dict(world.records)
    return [there[number].value for number in state.value.claims if number in there]


def stretches(world: World) -> dict[int, Stretch]:
    """What each generation copies, by its number."""
    found, start = {}, 0
    for number, (_, body) in enumerate(((n, r) for n, r in world.records if r.value.reset), 1):
        reset = body.value.reset
        assert reset is not None, "it is a reset"
        found[number] = Stretch(start, reset.ended[str(TP)].committable)
        start = body.value.partitions[str(TP)].state.next
    return found | {len(found) + 1: Stretch(start, None)}


def marked(world: World) -> int:
    """The generation that the group's offset was committed in."""
    return int(world.mark.rpartition(" ")[2]) if world.mark else 1


def lists(world: World, state: Kept[LedgerState]) -> list[GenerationAudit]:
    """The ledger's lists of each generation, by the sink's own keys."""
    objects, rotations = _audit(world, state)
    found = per_generation(state.value, [_renamed(o) for o in objects], rotations, claims(world, state))
    current = found[-1]
    pending = {real(key): _renamed(o) for key, o in current.state.pending.items()}
    return [*found[:-1], _with_state(current, replace(current.state, pending=pending))]


def _with_state(each: GenerationAudit, state: LedgerState) -> GenerationAudit:
    return GenerationAudit(state, each.published, each.rotations, each.starts, each.ended)


def _audit(world: World, state: Kept[LedgerState]) -> tuple[list[ClosedObject], list[RotationRange]]:
    """The published lists that lead to the state, then the state's own."""
    files = {end: (start, listed.value) for start, end, listed in world.published}
    chain, end = [state.value], state.value.audited_to
    while end:
        end, listed = files[end]
        chain.insert(0, listed)
    return [o for each in chain for o in each.published], [r for each in chain for r in each.rotations]


def verified(case: Case, world: World, state: Kept[LedgerState]) -> Iterator[Finding]:
    """What `s3sink verify` finds wrong, but for the objects that a reader has moved away."""
    found = lists(world, state)
    named = {o.key: o for each in found for o in each.objects}
    there = {real(key): content for key, content, _ in world.objects}
    strange = [UntrackedObject(key, first_of(key.removesuffix(".json")) or 0, 1) for key in there if key not in named]
    whole = BucketState(
        missing=frozenset(named.keys() - there.keys()),
        mismatched={key: "another" for key, o in named.items() if key in there and checksum(there[key]) != o.crc},
        untracked={TP: strange} if strange else {},
    )
    moved = {real(key) for key, _, _ in world.moved}
    ours = generation_metadata(state.value.generation) in ("", world.mark)
    group = KafkaOffsets(group={TP: world.group} if ours else {}, ends={TP: case.records})
    for each, bucket in zip(found, buckets(found, whole, [SHAPING.s3]), strict=True):
        for verdict in audit(each, bucket, KafkaOffsets() if each.ended else group):
            yield from (f for f in verdict.findings if f.type is not FindingType.OBJECT_MISSING or f.key not in moved)
