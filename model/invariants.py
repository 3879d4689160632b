"""What must hold in every state, by name.

doubled                 no record is in two objects of a generation, nor in two of a directory
wrong key               an object's key names the first record in it
lost                    a driver that is done has made every record visible, from its generation's start on
group ahead             the group's offset, unless somebody else has set it, is never above what is visible in the
                        generation of its mark (P5)
unnamed                 every visible object is named by the ledger: in its state or its published list (P1)
not there               what the ledger names is in the store, unless something was lost from outside (P6)
litter                  when a driver is done, a later one's clean-up leaves nothing; nor does this one itself (P10)
named removed           no clean-up and no fenced driver removes what the ledger names (P4, P10)
foreign harmed          nobody else's object is overwritten, nobody else's upload aborted (P9, P10)
conflict                no ObjectConflict where nobody else writes (P9)
fenced by nobody        no driver stops as fenced unless another one has claimed (P4)
made again needlessly   nothing is read from Kafka a second time unless it was lost (P6, P9)
late                    no object of a generation that has ended becomes visible
ended                   what an ended generation says that it has copied is what its objects hold, and no more
twice                   each request about the offsets is carried out once
told                    what a command tells as done is done
verify                  `s3sink verify` finds nothing wrong in any generation (asked at the end, or in every state)
stuck                   from every state the last driver can finish by itself, whatever has become of the others
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from model import generations, ledger
from model.model_state import FOREIGN, Case, Driver, World, checksum, directory_of, first_of
from model.rounds import loses
from model.starting import is_fenced, litter
from sink_job.ledger.state import ClosedObject, LedgerState

Broken = Iterator[tuple[str, str]]
Object = tuple[str, str, int]
"""Key, content and generation."""


def broken(case: Case, world: World) -> Broken:
    """The invariants that do not hold, each with how."""
    if world.breach:
        yield world.breach
    visible = [o for o in (*world.objects, *world.moved) if o[1] != FOREIGN]
    stretches = generations.stretches(world) if case.commands else {1: generations.Stretch(0, None)}
    copied = {number: _of(visible, number) for number in stretches}
    if visible:
        yield from _contents(visible)
    marked = generations.marked(world)
    missing = [n for n in range(stretches[marked].start, world.group) if str(n) not in copied[marked]]
    if missing and not world.group_is_foreign:
        yield "group ahead", f"the group's offset is {world.group}, but {missing} are not visible"
    if case.commands:
        yield from _generations(case, world, stretches, copied)
    true = ledger.truth(world.records, world.snapshots)
    if true is not None:
        yield from _named(world, true.value, [key for key, *_ in visible])
        if not loses(case):
            yield from _there(world, true.value)
    for d in world.drivers:
        if d.at == "done" and not (case.commands and is_fenced(world, d)):
            number, (start, _) = list(stretches.items())[-1]
            yield from _done(case, world, d, copied[number], start)


def _of(visible: Iterable[Object], generation: int) -> str:
    return "".join(content for _, content, of in visible if of == generation)


def _contents(visible: Iterable[Object]) -> Broken:
    for generation in {of for *_, of in visible}:
        records = _of(visible, generation)
        if len(set(records)) < len(records):
            yield "doubled", f"the objects are {', '.join(f'{key} = {content}' for key, content, _ in sorted(visible))}"
    for key, content, _ in visible:
        if content and first_of(key) != int(content[0]):
            yield "wrong key", f"{key} holds {content}"


def _generations(case: Case, world: World, stretches: dict[int, generations.Stretch], copied: dict[int, str]) -> Broken:
    """Each generation for itself, and those that share a directory."""
    if len(set(world.resets)) < len(world.resets):
        yield "twice", f"the requests {', '.join(world.resets)} were carried out"
    for number, (start, end) in stretches.items():
        if end is not None:
            yield from _ended(case, number, range(start, end), copied[number])
    if case.verified:
        yield from _verified(case, world)
    below: dict[str, str] = {}
    for key, content, _ in world.objects:
        below[directory_of(key)] = below.get(directory_of(key), "") + content
    for directory, records in below.items():
        if len(set(records)) < len(records):
            yield "doubled", f"{', '.join(f'{key} = {content}' for key, content, _ in world.objects)} in {directory!r}"


def _verified(case: Case, world: World) -> Broken:
    true = ledger.truth(world.records, world.snapshots)
    assert true is not None, "no record is lost in these cases"
    for finding in generations.verified(case, world, true):
        yield "verify", f"`verify` says at {finding.offset}: {finding.message}"


def _ended(case: Case, number: int, stretch: range, copied: str) -> Broken:
    """All up to where it ended is visible, and with `scope: Partition` nothing else."""
    records = {int(record) for record in copied}
    if not records >= set(stretch) or (records > set(stretch) and case.scope == "partition"):
        yield "ended", f"generation {number} ended at {stretch.stop}, and its objects hold {sorted(records)}"


def _named(world: World, true: LedgerState, visible: list[str]) -> Broken:
    """The audit: the published lists that lead to the state, then the state's own (P1)."""
    if not visible:
        return
    named = {*true.pending, *(o.key for o in true.published)}
    files = {end: (start, [o.key for o in listed.value.published]) for start, end, listed in world.published}
    end = true.audited_to
    while end:
        if end not in files:
            yield "unnamed", f"the published list has no file that ends at record {end}"
            return
        end, keys = files[end]
        named.update(keys)
    strangers = sorted(set(visible) - named)
    if strangers:
        yield "unnamed", f"{'/'.join(strangers)} is visible, and the ledger does not name it"


def _there(world: World, true: LedgerState) -> Broken:
    for partition in true.partitions.values():
        for o in partition.open:
            upload = world.upload(o.upload)
            if o.upload and (upload is None or not {(p.number, p.etag) for p in o.parts} <= set(upload.parts)):
                yield "not there", f"the ledger names upload {o.upload} with {[p.etag for p in o.parts]}"
            for extent in o.staged:
                data = (world.staged(extent.name) or "")[extent.offset : extent.offset + extent.length]
                if checksum(data) != extent.crc:
                    yield "not there", f"the ledger names staging object {extent.name} with {extent.crc}"
    for named in true.pending.values():
        if not _is_somewhere(world, named):
            yield "not there", f"the ledger names {named.key}, which is neither an upload nor an object"


def _is_somewhere(world: World, o: ClosedObject) -> bool:
    return world.upload(o.upload) is not None or any(key == o.key for key, *_ in (*world.objects, *world.moved))


def _done(case: Case, world: World, d: Driver, records: str, start: int) -> Broken:
    if len(set(records)) < case.records - start:
        yield "lost", f"{d.name} is done, but only {sorted(records)} are visible"
    if case.commands and not case.verified:
        yield from _verified(case, world)
    left = _litter(case, world, d.epoch)
    if left:
        yield "litter", f"{d.name} is done, and nobody's clean-up ever removes {', '.join(left)}"


def _litter(case: Case, world: World, epoch: int) -> list[str]:
    """What stays when nobody moves any more and a new driver has claimed and cleaned up; and the leftovers of this
    driver's own rounds, which it should have removed itself."""
    true = ledger.truth(world.records, world.snapshots)
    if true is None:
        return []
    uploads, staging = litter(case, world, true, world.now + 1, world.now + 1)
    left = [u.id for u in world.uploads if u.id not in uploads and u.id not in true.value.uploads() and u.id != FOREIGN]
    for name, _ in world.staging:
        mine = name.startswith(f"{epoch}.") and not name.endswith(".late")
        if name not in true.value.staged() and (mine or name not in staging):
            left.append(name)
    return left
