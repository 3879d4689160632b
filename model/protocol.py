"""The whole model: every step that any driver, command or fault may take next."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from model import commands, faults, ledger, publishing, repairs, rounds, snapshots, starting, topic
from model.model_state import COMMANDS, Case, Driver, ModelState
from model.search import Step

PROGRAM: dict[str, Callable[[Case, ModelState, Driver], Iterator[Step[ModelState]]]] = {
    "off": starting.begin,
    "list records": starting.list_records,
    "list snapshots": starting.list_snapshots,
    "read": starting.read,
    "claim": starting.claim,
    "check records": starting.check_records,
    "check snapshots": starting.check_snapshots,
    "clean": starting.clean,
    "remove": starting.remove,
    "idle": publishing.idle,
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
    "lost": publishing.lost,
    "commit": publishing.commit,
    "commit number": topic.commit_number,
    "done": starting.after_done,
    "requested": commands.requested,
    "check again": commands.check_again,
    "intend": commands.intend,
    "discard open": commands.discard_open,
    "offsets of the group": commands.offsets,
    "report": commands.report,
    "inspect": repairs.inspect,
    "upload again": repairs.upload,
    "keep": repairs.keep,
    "complete again": repairs.complete,
    "accept": repairs.accept,
    "record losses": rounds.record,
}
"""The next steps of a driver by its position.

In any other position it has ended: fenced, conflict, rejected, reported.
"""

SEES_COMMANDS = ("off", "requested")
"""The positions in which the next step of a driver depends on the commands too. In the others it depends only on the
driver itself and on everything that is not a driver."""


def steps(case: Case, model: ModelState) -> Iterator[Step[ModelState]]:
    """Every step that can follow."""
    rests = case.alone and commands.at_work(model)
    for d in model.drivers:
        if d.name in COMMANDS or not rests:
            yield from driver_steps(case, model, d)
    if case.alone:
        yield from commands.kill(model)
    yield from faults.happen(case, model)


def driver_steps(case: Case, model: ModelState, d: Driver) -> Iterator[Step[ModelState]]:
    program = PROGRAM.get(d.at)
    if program:
        yield from program(case, model, d)


def faults_see_drivers(case: Case) -> bool:
    """Whether a fault of this case depends on the positions of the drivers."""
    return "record lost" in case.faults


ENDS = ("done", "conflict", "list records")
"""The positions of a driver at which the work may be done (`ended`)."""


def ended(case: Case, model: ModelState) -> bool:
    """Whether a driver has finished: everything is visible, or it has correctly stopped at a foreign object or a
    gap."""
    for d in model.drivers:
        if (d.at == "done" and not (case.commands and starting.is_fenced(model, d))) or (
            d.at == "conflict" and case.foreign
        ):
            return True
        if (
            d.at == "list records"
            and "record lost" in case.faults
            and ledger.truth(model.records, model.snapshots) is None
        ):
            return True
    return False
