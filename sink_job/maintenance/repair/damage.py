"""Which objects `s3sink repair` examines: what the scanner of `verify` finds, or the ones that a user names.

Only objects that the ledger has acknowledged are repaired: no driver needs their keys any more. A closed object that is
not acknowledged yet belongs to the driver, which publishes or rebuilds it (P9). Pure functions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from sink_job.api.errors import ConfigurationError
from sink_job.ledger.state import ClosedObject
from sink_job.partitioning.object_keys import is_temporary
from sink_job.verify.audit_input import BucketState, GenerationAudit
from sink_job.verify.evidence import Evidence


@dataclass(frozen=True)
class Suspect:
    """An object that may be missing or damaged. `generation` is that of the ledger that lists it. `replaced_by_later`:
    a later generation has its own object at this key."""

    o: ClosedObject
    generation: int
    replaced_by_later: bool = False


@dataclass(frozen=True)
class Suspects:
    """`removed` counts missing objects that a lifecycle rule has removed, `pending` those that a driver publishes,
    `accepted` missing and damaged ones whose loss was accepted."""

    objects: tuple[Suspect, ...]
    removed: int = 0
    pending: int = 0
    accepted: int = 0


def suspects(evidence: Evidence, bucket: str, keys: Collection[str] = ()) -> Suspects:
    """The objects that differ from the ledger, in the order of their topic-partitions and offsets. With `keys` those
    objects instead, whatever the scanner has found and whether their loss was accepted: only their content decides.

    Raises ConfigurationError for a key that is not one of an acknowledged object.
    """
    audits = [*evidence.ended, (evidence.current, evidence.bucket)]
    newest: dict[str, int] = {o.key: audit.state.generation for audit, _ in audits for o in audit.objects}
    found: list[Suspect] = []
    removed = pending = accepted = 0
    for audit, state in audits:
        damaged = {*state.missing, *state.mismatched}
        for o in _published(audit, state):
            is_named = o.key in keys
            if is_named or (not keys and o.key in damaged):
                if o.key in state.removed:
                    removed += 1
                elif not is_named and o.key in audit.accepted:
                    accepted += 1
                else:
                    generation = audit.state.generation
                    found.append(Suspect(o, generation, newest[o.key] > generation))
        pending += sum(1 for key in audit.state.pending if key in state.mismatched)
    if unknown := sorted(set(keys) - {s.o.key for s in found} - {k for _, b in audits for k in b.removed}):
        raise ConfigurationError(
            f"--key {unknown[0]}: the ledger of this sink lists no visible object s3://{bucket}/{unknown[0]}. It is "
            "the key of an object of this bucket, or its URL s3://…, as in the output of s3sink verify"
        )
    found.sort(key=lambda s: (s.o.topic_partition, s.o.first, s.o.key))
    return Suspects(tuple(found), removed, pending, accepted)


def published(evidence: Evidence, keys: Collection[str]) -> Iterator[ClosedObject]:
    """The acknowledged objects with these keys."""
    audits = [*evidence.ended, (evidence.current, evidence.bucket)]
    return (o for audit, state in audits for o in _published(audit, state) if o.key in keys)


def _published(audit: GenerationAudit, state: BucketState) -> Iterator[ClosedObject]:
    """The acknowledged objects that have to be in the bucket."""
    return (o for o in audit.published if o.key not in state.replaced and not is_temporary(o.path, o.key))
