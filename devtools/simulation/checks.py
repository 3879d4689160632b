"""The allowed results of an actor, and the checks at the end of a run."""

from __future__ import annotations

import traceback

from devtools.simulation.config import FOREIGN_KEY
from devtools.simulation.oracle import Generation, Violation, generation_of
from devtools.simulation.simulation import Role, Simulation
from sink_job.api.errors import (
    AccessDenied,
    ClockSkew,
    ConfigurationError,
    DataLoss,
    InvalidSpec,
    LedgerFenced,
    LedgerLost,
    OwnershipConflict,
    RegistryChanged,
    SinkError,
    TransientError,
)
from sink_job.api.topic_partition import TopicPartition
from sink_job.s3 import S3Outcome
from sink_job.verify.evidence import collect_evidence

COMMANDS = ("reset", "discard", "repair")


def unexpected(name: str, error: BaseException) -> Violation:
    last_calls = "".join(traceback.format_exception(error)[-4:])
    return Violation("unexpected error", f"{name}: {type(error).__name__}: {error}\n{last_calls}")


def expect_allowed_end(simulation: Simulation, role: Role, error: SinkError | None) -> None:
    """Fails the run if no event of the run explains the result of an actor."""
    reason = _not_allowed(simulation, role, error)
    if reason is not None and error is not None:
        kind = type(error).__name__
        simulation.scheduler.fail(Violation(f"ended with {kind}", f"{role.actor.name}: {reason}: {error}"))


def _not_allowed(simulation: Simulation, role: Role, error: SinkError | None) -> str | None:
    faults = bool(role.actor.faults)
    if error is None:
        return None
    if type(error) is SinkError or isinstance(error, S3Outcome):
        return "an unhandled outcome of the store"
    if isinstance(error, LedgerFenced):
        others = [number for number, attempt in simulation.oracle.claims[role.since :] if attempt != role.attempt]
        return None if others else "no other actor has claimed the ledger"
    if isinstance(error, TransientError):
        if faults or simulation.vanished:
            return None
        return None if role.what in COMMANDS else "the store and Kafka have replied"
    if isinstance(error, DataLoss):
        return None if simulation.oracle.lost_records else "Kafka has dropped no record that is in no object"
    if isinstance(error, ClockSkew):
        return None if simulation.config.has("clock") else "no clock was changed"
    if isinstance(error, RegistryChanged):
        return None if role.attempt in simulation.oracle.deceived else "the registry has not changed"
    if isinstance(error, AccessDenied) and "registry-denied" in role.actor.faults:
        return None
    if isinstance(error, InvalidSpec):
        return None if role.what == "reset" else "the manifest was valid before"
    if role.is_misplaced and isinstance(error, ConfigurationError) and "spec.s3.ledger" in str(error):
        return None
    if isinstance(error, OwnershipConflict):
        return None if _may_lose(simulation, role) else "no other sink has taken over"
    if type(error) is ConfigurationError and simulation.config.changes_ledger:
        return None if "no other ledger can continue" in str(error) else "the configuration is valid"
    if isinstance(error, LedgerLost) and simulation.previous is not None:
        return None if simulation.previous.completed else "no task of the connector has completed an upload"
    if isinstance(error, ConfigurationError) and not isinstance(error, LedgerLost):
        return None if role.what in COMMANDS else "the configuration is valid"
    return "unexpected error"


def _may_lose(simulation: Simulation, role: Role) -> bool:
    """Whether another sink owns, or has owned, what this actor needs, and it may not take over from that one."""
    successors = simulation.successors
    lost = role.number != successors.last or successors.owned_before(role.number, role.take_over_from)
    return successors.exist and lost


REASONS_TO_REBUILD = (
    "lifecycle",
    "discard",
    "conflict",
    "foreign-etags",
    "lost-reply-and-outage",
    "torn-completion",
    "late-conflict",
    "lost-uploads",
)
"""Features that can require the rebuild of an object."""


def expect_no_needless_rebuild(simulation: Simulation, role: Role) -> None:
    """Records are read from Kafka a second time only if their bytes were lost."""
    if role.tracker is None or any(simulation.config.has(name) for name in REASONS_TO_REBUILD):
        return
    if any(attempt != role.attempt for _, attempt in simulation.oracle.claims[role.since :]):
        return  # the driver that fenced it may have removed its bytes
    rebuilt = role.tracker.report().totals.rebuilt
    if rebuilt:
        message = f"{role.actor.name} rebuilds {rebuilt} objects, but nothing was lost"
        simulation.scheduler.fail(Violation("needless rebuild", message))


def at_the_end(simulation: Simulation, error: SinkError | None) -> None:
    """Checks the final state. `error` is the result of the last driver. Raises Violation."""
    if error is not None:
        if isinstance(error, DataLoss) and simulation.oracle.lost_records and not simulation.config.has("continue"):
            return
        if isinstance(error, LedgerLost) and simulation.previous is not None and simulation.previous.completed:
            _expect_nothing_copied(simulation)
            return
        if type(error) is ConfigurationError and simulation.config.changes_ledger:
            _expect_objects(simulation)  # no other ledger can continue, and nothing was copied
            return
        raise Violation("not done", f"the last driver ends with {type(error).__name__}: {error}")
    for generation in simulation.oracle.generations:
        _expect_all(simulation, generation)
    _expect_previous(simulation)
    _expect_group(simulation)
    _expect_objects(simulation)
    _expect_no_orphans(simulation)
    _expect_verified(simulation)


def _expect_all(simulation: Simulation, generation: Generation) -> None:
    """Every record from the start of the generation is in an object, unless Kafka dropped it before."""
    oracle = simulation.oracle
    for tp, start in generation.starts.items():
        end = simulation.kafka.logs[tp].stable if generation.ended is None else generation.ended.get(tp, start)
        expected = {offset for offset in oracle.accepted[tp] if start <= offset < end}
        published = {offset for offset in expected if oracle.is_published(generation, tp, offset)}
        missing = sorted(expected - published - oracle.dropped[tp])
        if missing:
            place = f"no object, or not in the dead-letter topic, of generation {generation.number}"
            raise Violation("lost", f"offsets {missing} of {tp} are in {place}")
    if generation.ended is None:
        unknown = sorted(set(simulation.kafka.logs) - set(generation.starts))
        if unknown:
            raise Violation("lost", f"{unknown[0]} was never read")


def _expect_previous(simulation: Simulation) -> None:
    """Each record from the connector's offset on is in one object, of the connector or of the sink."""
    previous, generation = simulation.previous, simulation.oracle.generations[0]
    if previous is None:
        return
    for tp, committed in previous.committed.items():
        theirs = [offset for o in previous.objects.values() if o.tp == tp for offset in o.offsets]
        twice = sorted(generation.seen[tp].intersection(theirs))
        if twice or len(set(theirs)) < len(theirs):
            raise Violation("duplicate", f"offsets {twice} of {tp} are in objects of the connector and of the sink")
        between = {offset for offset in simulation.oracle.accepted[tp] if committed <= offset < generation.starts[tp]}
        if missing := sorted(between - set(theirs)):
            raise Violation(
                "lost", f"offsets {missing} of {tp} are in no object of the connector, and before the start"
            )


def _expect_nothing_copied(simulation: Simulation) -> None:
    """A first start that is rejected has made no object visible."""
    if simulation.oracle.visible:
        raise Violation("not done", f"{min(simulation.oracle.visible)} is visible, and the start was rejected")


def _expect_group(simulation: Simulation) -> None:
    current = len(simulation.oracle.generations)
    for tp, log in simulation.kafka.logs.items():
        offset, metadata, _ = simulation.kafka.group.get(tp, (-1, "", False))
        if offset != log.stable or generation_of(metadata) != current:
            message = f"{tp}: {offset} with {metadata!r} is committed, expected {log.stable} of generation {current}"
            raise Violation("group", message)


def _expect_objects(simulation: Simulation) -> None:
    """Every visible object has its bytes, unless a reader moved it, and no offset is in two objects of a directory."""
    for key, found in simulation.oracle.visible.items():
        stored = simulation.store.objects.get(key)
        if key in simulation.moved:
            continue
        if stored is None or stored.body != found.body:
            raise Violation("removed", f"{key} is {'missing' if stored is None else 'changed'}")
    offsets: dict[tuple[str, TopicPartition], dict[int, str]] = {}
    for key, found in simulation.oracle.visible.items():
        if key not in simulation.store.objects:
            continue
        held = offsets.setdefault((key.split(f"/{found.tp.topic}/")[0], found.tp), {})
        for offset in found.offsets:
            if offset in held:
                raise Violation("duplicate", f"offset {offset} of {found.tp} is in {key} and in {held[offset]}")
            held[offset] = key


def _expect_no_orphans(simulation: Simulation) -> None:
    store, is_abandoned = simulation.store, simulation.successors.is_abandoned
    started = {each: upload.key for each, upload in store.uploads.items() if upload.key != FOREIGN_KEY}
    uploads = {each: key for each, key in started.items() if not is_abandoned(each, key)}
    if uploads:
        raise Violation("orphaned uploads", f"{uploads}")
    temporary = ("/staging/", "/probe/", "/dead-letters/")
    kept = [key for key in store.objects if any(map(key.__contains__, temporary)) and not is_abandoned("", key)]
    if kept:
        raise Violation("orphaned objects", f"{kept}")
    if len(store.uploads) != 1 + len(started) or FOREIGN_KEY not in store.objects:
        raise Violation("foreign changed", "a foreign upload or object is missing")


def _expect_verified(simulation: Simulation) -> None:
    """`s3sink verify` finds nothing wrong, once what readers moved is back."""
    for key, stored in simulation.moved.items():
        if key not in simulation.store.objects and simulation.oracle.visible[key].generation == len(
            simulation.oracle.generations
        ):
            simulation.store.put_back(key, stored)  # type: ignore[arg-type]
    sink = simulation.sinks[simulation.successors.last]
    verdicts = collect_evidence(sink, simulation.s3, simulation.admin).results()
    for verdict in verdicts:
        if verdict.generation != len(simulation.oracle.generations):
            continue
        if verdict.findings:
            raise Violation("verify", f"{verdict.topic_partition}: {verdict.findings}")
        skipped = len(simulation.oracle.current.skipped[verdict.topic_partition])
        if verdict.skipped != skipped:
            message = f"{verdict.topic_partition}: {verdict.skipped} records were skipped, and not {skipped}"
            raise Violation("verify", message)
