"""The whole model: every step that any driver or fault may take next, and where a case begins."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tests.model import faults, ledger, publishing, rounds, snapshots, starting
from tests.model.invariants import broken
from tests.model.search import Outcome, Search, Step
from tests.model.world import FOREIGN, NAMES, Case, Driver, Upload, World, key_of

PROGRAM: dict[str, Callable[[Case, World, Driver], Iterator[Step[World]]]] = {
    "off": starting.begin,
    "list records": starting.list_records,
    "list snapshots": starting.list_snapshots,
    "read": starting.read,
    "claim": starting.claim,
    "check records": starting.check_records,
    "check snapshots": starting.check_snapshots,
    "clean": starting.clean,
    "remove": starting.remove,
    "idle": rounds.idle,
    "write": rounds.write,
    "stage": rounds.stage,
    "record": rounds.record,
    "sweep": rounds.sweep,
    "maintain": snapshots.maintain,
    "published": snapshots.put_published,
    "snapshot": snapshots.put_snapshot,
    "list old": snapshots.list_old,
    "drop": snapshots.drop,
    "publish": publishing.publish,
    "head gone": publishing.head,
    "head taken": publishing.head,
    "head unusable": publishing.head,
    "offsets": publishing.offsets,
    "lost": publishing.lost,
    "commit": publishing.commit,
}
"""What a driver does next, by where it is. It has ended in any other place: done, fenced, conflict."""

LIMIT = 400_000


def begin(case: Case) -> World:
    """The first driver is about to start, or at work already under its claim; the second one may start at any time."""
    first = Driver("A", at="list records")
    world = World(faults=tuple(sorted(case.faults)))
    if not case.claiming:
        claim = ledger.claim(ledger.EMPTY, "A")
        world = starting.put_record(world, claim)
        first = Driver("A", at="idle", state=ledger.after(ledger.EMPTY, claim), epoch=1, recorded=1)
    drivers = (first, *(Driver(name) for name in NAMES[1 : case.drivers]))
    if case.foreign == "upload":
        world = world.with_upload(Upload(FOREIGN, FOREIGN, 0))
    if case.foreign == "object":
        world = world.with_object(key_of("p", 0), FOREIGN)
    return world._replace(drivers=drivers)


def steps(case: Case, world: World) -> Iterator[Step[World]]:
    for d in world.drivers:
        program = PROGRAM.get(d.at)
        if program:
            yield from program(case, world, d)
    yield from faults.happen(case, world)


def ended(case: Case, world: World) -> bool:
    """Whether a driver has finished: with everything visible, or rightly stopped before what somebody else has done."""
    for d in world.drivers:
        if d.at == "done" or (d.at == "conflict" and case.foreign):
            return True
        if (
            d.at == "list records"
            and "record lost" in case.faults
            and ledger.truth(world.records, world.snapshots) is None
        ):
            return True
    return False


def explore(case: Case, *, only: str | None = None, limit: int = LIMIT) -> Outcome:
    """Searches everything that can happen in a case, for any invariant that does not hold, or for `only` one.

    The last driver must be able to finish by itself, whatever has become of the others (where each may be the last to
    claim: some driver must).
    """
    return Search[World](
        steps=lambda world: steps(case, world),
        broken=lambda world: next((b for b in broken(case, world) if only in (None, b[0])), None),
        ended=lambda world: only not in (None, "stuck") or ended(case, world),
        relied_on=lambda label: case.claiming or case.drivers > 2 or label.startswith(NAMES[case.drivers - 1]),
        limit=limit,
    ).run(begin(case))
