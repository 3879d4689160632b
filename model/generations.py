"""The generations of a ledger in the model: the start of a generation by a reset, and the proof of each generation.

The sink's own functions resolve a request, find conflicting objects, divide the ledger's lists by generation and run
the audit of `s3sink verify`. They get the model's keys in the form of the sink's keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NamedTuple, cast

from msgspec.structs import replace

from model import ledger
from model.ledger import TP, Interned
from model.model_state import Case, Command, Driver, ModelState, checksum, directory_of, first_of
from sink_job.api.enums import OnExisting, ResetTo
from sink_job.api.errors import SinkError
from sink_job.api.sections.job_sections import KeySettings
from sink_job.api.sections.operator_sections import OffsetResetSpec, PartitionOffset
from sink_job.api.spec import ObjectSettings
from sink_job.ledger.generations import end_of_generation, generation_metadata, new_topics_dir, settings_below
from sink_job.ledger.state import ClosedObject, LedgerState, LostObject, OffsetResetRecord, PartitionState, Record
from sink_job.ledger.transitions import diff
from sink_job.maintenance.existing_objects import check_empty, check_existing_objects
from sink_job.maintenance.reset_targets import LogBounds, ResetContext, request_digest, resolve_targets
from sink_job.partitioning.object_keys import object_key
from sink_job.s3 import S3Client
from sink_job.verify.audit import audit
from sink_job.verify.audit_input import BucketState, GenerationAudit, KafkaOffsets, UntrackedObject
from sink_job.verify.per_generation import buckets, per_generation
from sink_job.verify.results import Finding, FindingType

DAMAGE = (FindingType.OBJECT_MISSING, FindingType.OBJECT_MISMATCH)

OBJECT_SETTINGS = ObjectSettings(s3=KeySettings(topics_dir="", offset_pad_width=0))


class OffsetRange(NamedTuple):
    """The offsets `[start, end)` that a generation copies; `end` is None for the current generation."""

    start: int
    end: int | None


class ListedKey(NamedTuple):
    key: str


class BucketStub:
    """The calls of the bucket that the check for existing objects makes."""

    bucket = "b"

    def __init__(self, model: ModelState) -> None:
        self._keys = sorted(sink_key(key) for key, _, _ in model.objects)

    def list(self, prefix: str) -> Iterator[ListedKey]:
        return (ListedKey(key) for key in self._keys if key.startswith(prefix))

    def head(self, key: str) -> ListedKey | None:
        return ListedKey(key) if key in self._keys else None

    def url_of(self, key: str) -> str:
        return f"s3://{self.bucket}/{key}"


@cache
def sink_key(key: str) -> str:
    """The sink's key for a key of the model."""
    path = key.rpartition("/")[2].rpartition("+")[0]
    return object_key(_below(directory_of(key)), TP.topic, path, TP.partition, first_of(key) or 0)


@cache
def _below(directory: str) -> ObjectSettings:
    return settings_below(OBJECT_SETTINGS, directory)


@cache
def _renamed(o: ClosedObject) -> ClosedObject:
    return replace(o, key=sink_key(o.key))


# -- start of a generation -------------------------------------------------------------------------------------------


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


def planned(case: Case, model: ModelState, state: Interned[LedgerState], d: Driver) -> Interned[Record] | None:
    """The record of the requested reset; None if existing objects conflict with it."""
    body = record(case, state, d)
    if not case.rules.enforce("reset.existing-objects"):
        return body
    reset, starts = body.value.reset, {TP: start_of(case, case.command(d.name))}
    assert reset is not None, "it is a reset"
    store, object_settings = cast("S3Client", BucketStub(model)), _below(reset.topics_dir)
    try:
        if reset.on_existing == OnExisting.NEW_PREFIX.value:
            check_empty(store, object_settings, starts)
        else:
            check_existing_objects(store, object_settings, generation_audits(model, state), starts)
    except SinkError:
        return None
    return body


def record(case: Case, state: Interned[LedgerState], d: Driver) -> Interned[Record]:
    """The record that begins the next generation."""
    command, before, rules = case.command(d.name), state.value, case.rules
    generation, number = before.generation + 1, before.number + 1
    is_apart = command.on_existing == OnExisting.NEW_PREFIX.value
    topics_dir = new_topics_dir(OBJECT_SETTINGS, generation) if is_apart else before.topics_dir or ""
    reset = OffsetResetRecord(
        generation=generation,
        topics_dir=topics_dir,
        ended={
            name: end_of_generation(p) if rules.enforce("reset.ended") else PartitionState.start(p.next)
            for name, p in before.partitions.items()
        },
        nonce=command.nonce,
        to=_request(command).to.value,
        on_existing=command.on_existing,
        request=digest_of(command),
    )
    is_claim = rules.enforce("reset.claim")
    return ledger.intern(
        Record(
            number=number,
            epoch=number if is_claim else d.epoch,
            attempt=d.name,
            kind="claim" if is_claim else "round",
            clock=0,
            settings=ledger.settings_of(topics_dir),
            partitions={str(TP): diff(None, PartitionState.start(start_of(case, command)))},
            reset=reset,
        )
    )


# -- proof of each generation ----------------------------------------------------------------------------------------


def claims(model: ModelState, state: Interned[LedgerState]) -> list[Record]:
    """The claims in the ledger."""
    there = dict(model.records)
    return [there[number].value for number in state.value.claims if number in there]


def offset_ranges(model: ModelState) -> dict[int, OffsetRange]:
    """The offset range of each generation, by its number."""
    found, start = {}, 0
    for number, (_, body) in enumerate(((n, r) for n, r in model.records if r.value.reset), 1):
        reset = body.value.reset
        assert reset is not None, "it is a reset"
        found[number] = OffsetRange(start, reset.ended[str(TP)].committable)
        start = body.value.partitions[str(TP)].state.next
    return found | {len(found) + 1: OffsetRange(start, None)}


def committing_generation(model: ModelState) -> int:
    """The generation in which the group's offset was committed."""
    return int(model.group_metadata.rpartition(" ")[2]) if model.group_metadata else 1


def generation_audits(model: ModelState, state: Interned[LedgerState]) -> list[GenerationAudit]:
    """The audit input of each generation, with the sink's keys."""
    chain = published_lists(model, state)
    objects = [_renamed(o) for each in chain for o in each.published]
    rotations = [r for each in chain for r in each.rotations]
    found = per_generation(state.value, objects, rotations, claims(model, state), lost_objects(model, state))
    current = found[-1]
    pending = {sink_key(key): _renamed(o) for key, o in current.state.pending.items()}
    return [*found[:-1], _with_state(current, replace(current.state, pending=pending))]


def _with_state(each: GenerationAudit, state: LedgerState) -> GenerationAudit:
    return GenerationAudit(state, each.published, each.rotations, each.starts, each.ended, each.lost, each.accepted)


def _with_final_losses(each: GenerationAudit, lost: list[LostObject]) -> GenerationAudit:
    """The audit as it would be if an accepted loss removed the object from the published list."""
    published = [o for o in each.published if o.key not in each.accepted]
    final = [*each.lost, *(loss for loss in lost if loss.key in each.accepted)]
    return GenerationAudit(each.state, published, each.rotations, each.starts, each.ended, final)


def acknowledged(model: ModelState, state: Interned[LedgerState]) -> dict[str, ClosedObject]:
    """The published objects by key, the newest ones."""
    return {o.key: o for each in published_lists(model, state) for o in each.published}


def lost_objects(model: ModelState, state: Interned[LedgerState]) -> list[LostObject]:
    """The recorded losses, with the sink's keys."""
    lists = published_lists(model, state)
    return [replace(lost, key=sink_key(lost.key)) for each in lists for lost in each.lost]


def published_lists(model: ModelState, state: Interned[LedgerState]) -> list[LedgerState]:
    """The published lists that lead to the state, followed by the state."""
    files = {end: (start, listed.value) for start, end, listed in model.published}
    chain, end = [state.value], state.value.audited_to
    while end:
        end, listed = files[end]
        chain.insert(0, listed)
    return chain


def verify(case: Case, model: ModelState, state: Interned[LedgerState]) -> Iterator[Finding]:
    """The findings of `s3sink verify`, except for objects that a reader has moved away, and for damage that no command
    has repaired or recorded as lost."""
    found = generation_audits(model, state)
    lost = lost_objects(model, state)
    if not case.rules.enforce("loss.bucket-decides"):
        found = [_with_final_losses(each, lost) for each in found]
    named = {o.key: o for each in found for o in each.objects}
    there = {sink_key(key): content for key, content, _ in model.objects}
    strange = [UntrackedObject(key, first_of(key.removesuffix(".json")) or 0, 1) for key in there if key not in named]
    whole = BucketState(
        missing=frozenset(named.keys() - there.keys()),
        mismatched={key: "another" for key, o in named.items() if key in there and checksum(there[key]) != o.crc},
        untracked={TP: strange} if strange else {},
    )
    moved = {sink_key(key) for key, _, _ in model.moved}
    damaged = {sink_key(key) for key, _, _ in model.damaged} - {each.key for each in lost}
    ours = generation_metadata(state.value.generation) in ("", model.group_metadata)
    group = KafkaOffsets(group={TP: model.group} if ours else {}, ends={TP: case.records})
    for each, bucket in zip(found, buckets(found, whole, [OBJECT_SETTINGS.s3]), strict=True):
        for result in audit(each, bucket, KafkaOffsets() if each.ended else group):
            for finding in result.findings:
                is_moved = finding.type is FindingType.OBJECT_MISSING and finding.key in moved
                if not is_moved and not (finding.type in DAMAGE and finding.key in damaged):
                    yield finding
