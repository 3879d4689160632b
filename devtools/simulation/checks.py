"""Which ends of an actor are allowed, and what must hold when all is over."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

from devtools.simulation.oracle import Generation, Violation, generation_of
from devtools.simulation.shape import FOREIGN_KEY
from sink_job.api.errors import (
    ClockSkew,
    ConfigurationError,
    DataLoss,
    InvalidSpec,
    LedgerFenced,
    LedgerLost,
    SinkError,
    TransientError,
)
from sink_job.api.topic_partition import TopicPartition
from sink_job.s3 import S3Outcome
from sink_job.verify.evidence import collect_evidence

if TYPE_CHECKING:
    from devtools.simulation.world import Role, World


def unexpected(name: str, error: BaseException) -> Violation:
    last_calls = "".join(traceback.format_exception(error)[-4:])
    return Violation("unexpected error", f"{name}: {type(error).__name__}: {error}\n{last_calls}")


def expect_allowed_end(world: World, role: Role, error: SinkError | None) -> None:
    """Fails the world when an actor ends in a way that nothing in this world explains."""
    reason = _not_allowed(world, role, error)
    if reason is not None and error is not None:
        kind = type(error).__name__
        world.scheduler.fail(Violation(f"ended with {kind}", f"{role.actor.name}: {reason}: {error}"))


def _not_allowed(world: World, role: Role, error: SinkError | None) -> str | None:
    faults = bool(role.actor.faults)
    if error is None:
        return None
    if type(error) is SinkError or isinstance(error, S3Outcome):
        return "an outcome of the store that nobody has handled"
    if isinstance(error, LedgerFenced):
        others = [number for number, attempt in world.oracle.claims[role.since :] if attempt != role.attempt]
        return None if others else "nobody else has claimed the ledger"
    if isinstance(error, TransientError):
        if faults or world.vanished:
            return None
        return None if role.what != "driver" else "the store and Kafka have answered"
    if isinstance(error, DataLoss):
        return None if world.oracle.lost_records else "Kafka has dropped nothing that is not in objects"
    if isinstance(error, ClockSkew):
        return None if world.shape.has("clock") else "nobody has set a clock"
    if isinstance(error, InvalidSpec):
        return None if role.what == "reset" else "the manifest was read before"
    if isinstance(error, ConfigurationError) and not isinstance(error, LedgerLost):
        return None if role.what != "driver" else "nothing is wrong with the configuration"
    return "no reason for it"


REASONS_TO_REBUILD = ("lifecycle", "discard", "conflict", "foreign-etags", "lost-reply-and-outage")
"""Features after which an object may have to be made again."""


def expect_no_needless_rebuild(world: World, role: Role) -> None:
    """Nothing is read from Kafka a second time unless it was lost."""
    if role.tracker is None or any(world.shape.has(name) for name in REASONS_TO_REBUILD):
        return
    if any(attempt != role.attempt for _, attempt in world.oracle.claims[role.since :]):
        return  # what it works with may have been removed by whoever fenced it
    rebuilt = role.tracker.report().totals.rebuilt
    if rebuilt:
        message = f"{role.actor.name} makes {rebuilt} objects again, and nothing was lost"
        world.scheduler.fail(Violation("made again needlessly", message))


def at_the_end(world: World, error: SinkError | None) -> None:
    """Raises Violation. `error` is what the last driver ended with."""
    if error is not None:
        if isinstance(error, DataLoss) and world.oracle.lost_records and not world.shape.has("continue"):
            return
        raise Violation("not done", f"the last driver ends with {type(error).__name__}: {error}")
    for generation in world.oracle.generations:
        _expect_all(world, generation)
    _expect_group(world)
    _expect_objects(world)
    _expect_no_orphans(world)
    _expect_verified(world)


def _expect_all(world: World, generation: Generation) -> None:
    """Every record from its start on is in an object, unless Kafka dropped it before."""
    oracle = world.oracle
    for tp, start in generation.starts.items():
        end = world.kafka.logs[tp].stable if generation.ended is None else generation.ended.get(tp, start)
        wanted = {offset for offset in oracle.accepted[tp] if start <= offset < end}
        missing = sorted(wanted - generation.seen[tp] - oracle.dropped[tp])
        if missing:
            raise Violation("lost", f"offsets {missing} of {tp} are in no object of generation {generation.number}")
    if generation.ended is None:
        unknown = sorted(set(world.kafka.logs) - set(generation.starts))
        if unknown:
            raise Violation("lost", f"{unknown[0]} was never read")


def _expect_group(world: World) -> None:
    wanted = len(world.oracle.generations)
    for tp, log in world.kafka.logs.items():
        offset, marked, _ = world.kafka.group.get(tp, (-1, "", False))
        if offset != log.stable or generation_of(marked) != wanted:
            message = f"{tp}: {offset} with {marked!r} is committed, all is visible up to {log.stable}, of {wanted!r}"
            raise Violation("group", message)


def _expect_objects(world: World) -> None:
    """What became visible is there, byte by byte, unless a reader moved it; and nothing else is."""
    for key, found in world.oracle.visible.items():
        stored = world.store.objects.get(key)
        if key in world.moved:
            continue
        if stored is None or stored.body != found.body:
            raise Violation("removed", f"{key} is {'gone' if stored is None else 'another one'}")
    place: dict[tuple[str, TopicPartition], dict[int, str]] = {}
    for key, found in world.oracle.visible.items():
        if key not in world.store.objects:
            continue
        held = place.setdefault((key.split(f"/{found.tp.topic}/")[0], found.tp), {})
        for offset in found.offsets:
            if offset in held:
                raise Violation("doubled", f"offset {offset} of {found.tp} is in {key} and in {held[offset]}")
            held[offset] = key


def _expect_no_orphans(world: World) -> None:
    uploads = {upload_id: upload.key for upload_id, upload in world.store.uploads.items() if upload.key != FOREIGN_KEY}
    if uploads:
        raise Violation("orphaned uploads", f"{uploads}")
    kept = [key for key in world.store.objects if "/staging/" in key or "/probe/" in key]
    if kept:
        raise Violation("orphaned objects", f"{kept}")
    if len(world.store.uploads) != 1 or FOREIGN_KEY not in world.store.objects:
        raise Violation("foreign harmed", "an upload or an object of somebody else is gone")


def _expect_verified(world: World) -> None:
    """`s3sink verify` finds nothing wrong, once what readers moved is back."""
    for key, stored in world.moved.items():
        if key not in world.store.objects and world.oracle.visible[key].generation == len(world.oracle.generations):
            world.store.put_back(key, stored)  # type: ignore[arg-type]
    verdicts = collect_evidence(world.sink, world.s3, world.admin).results()
    for verdict in verdicts:
        if verdict.findings and verdict.generation == len(world.oracle.generations):
            raise Violation("verify", f"{verdict.topic_partition}: {verdict.findings}")
