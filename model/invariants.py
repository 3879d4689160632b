"""What must hold in every state, by name.

duplicate             no record is in two objects of a generation or of a directory, and no dead letter twice in the
                      topic
wrong key             an object's key contains the offset of its first record
lost                  a driver that is done has made every record visible, from the start of its generation on, but the
                      skipped ones
skipped               no record that the ledger lists as skipped is in an object
group ahead           the group's offset is never above the visible records of the generation that committed it, unless
                      another program has set the offset (P5)
unlisted              the ledger lists every visible object: in its state or in its published list (P1)
missing               uploads, parts and staging objects that the ledger names are in the store, unless a fault removed
                      them (P6)
orphans               when a driver is done, the clean-up of a later driver leaves nothing, and the driver has removed
                      the staged remainders of its own rounds (P10)
discarded             what another program has written at the key of an object is copied before a repair replaces it
removed in use        no clean-up and no fenced driver removes an upload or staging object that the ledger
                      names (P4, P10)
foreign changed       no foreign object is overwritten and no foreign upload is aborted (P9, P10)
conflict              no ObjectConflict where no other program writes (P9)
fenced without claim  a driver stops as fenced only if another one has claimed the ledger (P4)
needless rebuild      records are read from Kafka a second time only if their bytes were lost (P6, P9)
late                  no object of an ended generation becomes visible
ended                 the objects of an ended generation hold exactly the records that the ledger reports as copied
repeated              each offset reset request is carried out once
reported              the work that a command reports as done is done
verify                `s3sink verify` finds no error in any generation (checked at the end, or in every state)
no progress           from every state the last driver can finish, whatever happened to the others
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from model import generations, ledger, topic
from model.model_state import COMMANDS, DAMAGED, FOREIGN, Case, Driver, ModelState, checksum, directory_of, first_of
from model.rounds import loses
from model.starting import is_fenced, orphans
from sink_job.ledger.state import ClosedObject, LedgerState

Broken = Iterator[tuple[str, str]]
Object = tuple[str, str, int]
"""Key, content and generation."""


def broken(case: Case, model: ModelState) -> Broken:
    """The broken invariants, each with a message."""
    if model.breach:
        yield model.breach
    visible = [o for o in (*model.objects, *model.moved, *model.damaged) if o[1] not in (FOREIGN, DAMAGED)]
    offset_ranges = generations.offset_ranges(model) if case.commands else {1: generations.OffsetRange(0, None)}
    copied = {number: _of(visible, number) for number in offset_ranges}
    if visible:
        yield from _contents(visible)
    committing = generations.committing_generation(model)
    true = ledger.truth(model.records, model.snapshots)
    skipped = "" if true is None else _skipped(true.value)
    passed = copied[committing] + skipped
    missing = [n for n in range(offset_ranges[committing].start, model.group) if str(n) not in passed]
    if missing and not model.group_is_foreign:
        yield "group ahead", f"the group's offset is {model.group}, but {missing} are not visible"
    if case.topic:
        yield from topic.broken(case, model)
    if case.commands:
        yield from _generations(case, model, offset_ranges, copied)
    again = sorted({*skipped} & {*copied[max(copied)]})
    if again:
        yield "skipped", f"{again} are listed as skipped and visible"
    if true is not None:
        yield from _named(model, true.value, [key for key, *_ in visible])
        if not loses(case):
            yield from _there(model, true.value)
    for d in model.drivers:
        if d.at == "done" and not (case.commands and is_fenced(model, d)):
            number, (start, _) = list(offset_ranges.items())[-1]
            yield from _done(case, model, d, copied[number] + skipped, start)


def _skipped(true: LedgerState) -> str:
    """The records that the ledger lists as skipped."""
    return "".join(str(offset) for p in true.partitions.values() for offset in p.skipped)


def _of(visible: Iterable[Object], generation: int) -> str:
    return "".join(content for _, content, of in visible if of == generation)


def _contents(visible: Iterable[Object]) -> Broken:
    for generation in {of for *_, of in visible}:
        records = _of(visible, generation)
        if len(set(records)) < len(records):
            yield (
                "duplicate",
                f"the objects are {', '.join(f'{key} = {content}' for key, content, _ in sorted(visible))}",
            )
    for key, content, _ in visible:
        if content and first_of(key) != int(content[0]):
            yield "wrong key", f"{key} holds {content}"


def _generations(
    case: Case, model: ModelState, offset_ranges: dict[int, generations.OffsetRange], copied: dict[int, str]
) -> Broken:
    """Checks each generation separately, and the generations that share a directory together."""
    if len(set(model.resets)) < len(model.resets):
        yield "repeated", f"the requests {', '.join(model.resets)} were carried out"
    for number, (start, end) in offset_ranges.items():
        if end is not None:
            yield from _ended(case, number, range(start, end), copied[number])
    if case.verified:
        yield from _verified(case, model)
    below: dict[str, str] = {}
    for key, content, _ in model.objects:
        below[directory_of(key)] = below.get(directory_of(key), "") + content
    for directory, records in below.items():
        if len(set(records)) < len(records):
            yield (
                "duplicate",
                f"{', '.join(f'{key} = {content}' for key, content, _ in model.objects)} in {directory!r}",
            )


def _verified(case: Case, model: ModelState) -> Broken:
    true = ledger.truth(model.records, model.snapshots)
    assert true is not None, "no record is lost in these cases"
    for finding in generations.verify(case, model, true):
        yield "verify", f"`verify` reports at offset {finding.offset}: {finding.message}"


def _ended(case: Case, number: int, offsets: range, copied: str) -> Broken:
    """Every record up to the end of the generation is visible; with `scope: Partition` no other record is."""
    records = {int(record) for record in copied}
    if not records >= set(offsets) or (records > set(offsets) and case.scope == "partition"):
        yield "ended", f"generation {number} ended at {offsets.stop}, and its objects hold {sorted(records)}"


def _named(model: ModelState, true: LedgerState, visible: list[str]) -> Broken:
    """Looks up visible objects in the published lists that lead to the state, and in the state (P1)."""
    if not visible:
        return
    closed = {*true.pending, *(o.key for o in true.published)}
    files = {end: (start, [o.key for o in listed.value.published]) for start, end, listed in model.published}
    end = true.audited_to
    while end:
        if end not in files:
            yield "unlisted", f"the published list has no file that ends at record {end}"
            return
        end, keys = files[end]
        closed.update(keys)
    strangers = sorted(set(visible) - closed)
    if strangers:
        yield "unlisted", f"{'/'.join(strangers)} is visible, but the ledger does not list it"


def _there(model: ModelState, true: LedgerState) -> Broken:
    for partition in true.partitions.values():
        for o in partition.open:
            upload = model.upload(o.upload)
            if o.upload and (upload is None or not {(p.number, p.etag) for p in o.parts} <= set(upload.parts)):
                yield "missing", f"the ledger names upload {o.upload} with {[p.etag for p in o.parts]}"
            for extent in o.staged:
                data = (model.staged(extent.name) or "")[extent.offset : extent.offset + extent.length]
                if checksum(data) != extent.crc:
                    yield "missing", f"the ledger names staging object {extent.name} with {extent.crc}"
    for closed in true.pending.values():
        if not _is_somewhere(model, closed):
            yield "missing", f"the ledger names {closed.key}, which is neither an upload nor an object"


def _is_somewhere(model: ModelState, o: ClosedObject) -> bool:
    return model.upload(o.upload) is not None or any(key == o.key for key, *_ in (*model.objects, *model.moved))


def _done(case: Case, model: ModelState, d: Driver, records: str, start: int) -> Broken:
    if len(set(records)) < case.records - start:
        yield "lost", f"{d.name} is done, but only {sorted(records)} are visible"
    if case.commands and not case.verified:
        yield from _verified(case, model)
    if case.topic:
        yield from topic.lost(case, model, d)
    left = _orphans(case, model, d.epoch)
    if left:
        yield "orphans", f"{d.name} is done, but no clean-up ever removes {', '.join(left)}"


def _orphans(case: Case, model: ModelState, epoch: int) -> list[str]:
    """The uploads and staging objects that remain after all actors have stopped and a new driver has claimed and
    cleaned up, and the staged remainders of this driver's own rounds, which it must remove itself. Those of repairs are
    left to the next repair."""
    true = ledger.truth(model.records, model.snapshots)
    if true is None:
        return []
    uploads, staging = orphans(case, model, true, model.now + 1, model.now + 1)
    ours = (u.id for u in model.uploads if u.id != FOREIGN and u.id[0] not in COMMANDS)
    left = [upload for upload in ours if upload not in uploads and upload not in true.value.uploads()]
    for name, _ in model.staging:
        mine = name.startswith(f"{epoch}.") and not name.endswith(".late")
        if name not in true.value.staged() and (mine or name not in staging):
            left.append(name)
    return left
