"""The work of a round's task: it divides the records of a topic-partition into parts, staged remainders and objects.

Parts depend on the records only (P3): a part is full with `case.part` records, and part numbers are consecutive.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from model.ledger import TP, below
from model.model_state import NAMES, Case, Driver, ModelState, Upload, checksum, content_of, directory_of, key_of
from sink_job.ledger.offset_checksum import checksum_range
from sink_job.ledger.state import (
    ClosedObject,
    Extent,
    OffsetChecksum,
    OpenObject,
    Part,
    PartitionState,
    RotationRange,
    SourceRange,
)
from sink_job.rotation.types import ObjectId, OpenObjectState, RotationState

DEAD_LETTERS = "d"
"""The path of the dead-letter object."""

UNKNOWN = -1
"""The clock of the source ranges of records that were rejected because their schema id was unknown."""

CHECKSUMS = [checksum_range(offset, offset + 1) for offset in range(10)]


class DataGone(Exception):
    """An upload or a staging object that the ledger names is missing or differs from its record. `path` is the path of
    the object that needs it; `discarded` is set if a command has removed the bytes."""

    def __init__(self, message: str, path: str, *, discarded: bool = False) -> None:
        super().__init__(message)
        self.path = path
        self.discarded = discarded


class TaskResult(NamedTuple):
    """The result of a task: the state to record, the closed objects, the uploads with their current parts (the new ones
    are also in `started`), the remainder to stage (name, content), and the rotation that ended."""

    state: PartitionState
    closed: tuple[ClosedObject, ...]
    uploads: tuple[Upload, ...]
    started: tuple[str, ...]
    staging: tuple[str, str] | None
    rotations: tuple[RotationRange, ...] = ()


def skipped_below(case: Case, driver: str, state: PartitionState, end: int) -> tuple[int, ...]:
    """The offsets that are skipped once the driver has read up to `end`: those that the ledger lists, and those of the
    driver's manifest."""
    listed = case.skips if driver == NAMES[0] else ()
    return tuple(sorted({*state.skipped, *(offset for offset in listed if state.next <= offset < end)}))


def path_of(case: Case, offset: int, clock: int) -> str:
    """The path of a record under a round's clock."""
    rejected = f"p{DEAD_LETTERS}"[offset % 2]
    paths = {"one": "p", "data": "pq"[offset % 2], "clock": "pq"[clock % 2], "rejected": rejected, "unknown": rejected}
    return paths[case.paths]


def id_of(case: Case, offset: int, clock: int) -> ObjectId:
    """The path and schema of a record under a round's clock."""
    return ObjectId(path_of(case, offset, clock), {"none": None, "data": "st"[offset % 2]}[case.schemas])


def recorded_clock(case: Case, clock: int) -> int:
    """The clock that is recorded with an object's members; 0 if paths do not depend on it."""
    return clock if case.paths == "clock" else 0


def is_member(case: Case, target: ObjectId, offset: int, clock: int) -> bool:
    """Whether the record belongs to the object, if its offset is in one of the object's source ranges. With
    `paths: unknown` no record is rejected any more: their schema ids are known."""
    if case.paths == "unknown":
        return target.path != DEAD_LETTERS or clock == UNKNOWN
    if target.path == DEAD_LETTERS and not case.rules.enforce("p2.rejected"):
        return True
    if not case.rules.enforce("p2.schemas"):
        return path_of(case, offset, clock) == target.path
    return id_of(case, offset, clock) == target


def members(case: Case, o: OpenObject | ClosedObject) -> str:
    """The records of an object, selected by the members in the ledger (P2)."""
    return "".join(
        str(offset)
        for source in o.sources
        for offset in range(source.start, source.end)
        if is_member(case, o.id, offset, source.clock)
    )


class Task:
    """One attempt at a round's task: it continues from a partition state and returns a `TaskResult`."""

    def __init__(self, case: Case, model: ModelState, d: Driver, name: str, clock: int) -> None:
        """Names new uploads after the driver, with consecutive numbers; `name` is the staging object to write."""
        self._case = case
        self._world = model
        self._driver = d.name
        self._serial = d.started
        self._settings = d.state.value.current_settings()
        self._below = below(d.state.value.settings[self._settings])
        self._name = name
        self._clock = clock
        self._uploads: dict[str, Upload] = {}
        self._begun: list[str] = []
        self._staged = ""
        self._skipped: tuple[int, ...] = ()

    def write(self, state: PartitionState, end: int, closing: Sequence[ObjectId]) -> TaskResult:
        """Reads up to `end`, then closes the objects `closing`.

        Raises DataGone if an upload or staging object that it needs is missing.
        """
        fresh: dict[ObjectId, str] = {}
        self._skipped = skipped_below(self._case, self._driver, state, end)
        for offset in range(state.next, end):
            if offset in self._skipped:
                continue
            target = id_of(self._case, offset, self._clock)
            fresh[target] = fresh.get(target, "") + str(offset)
        inherited = {o.id: o for o in state.open}
        targets = [*inherited, *(target for target in fresh if target not in inherited)]
        open_: list[OpenObject] = []
        closed: list[ClosedObject] = []
        for target in targets:
            o, new = inherited.get(target), fresh.get(target, "")
            if o is not None and not new and target not in closing:
                open_.append(o)
                continue
            grown, left = self._write(o, target, new, target in closing)
            if target in closing:
                closed.append(self.close(grown))
            else:
                open_.append(self._stage(grown, o, left, len(new)))
        recorded = self._skipped if self._case.rules.enforce("p2.skipped-recorded") else state.skipped
        after = _state(state, end, open_, self._skipped)
        rotations = _rotations(state, end, open_, self._skipped)
        return self._done(replace(after, skipped=recorded), closed, rotations)

    def rebuild_open(self, state: PartitionState, path: str | None = None) -> TaskResult:
        """Rebuilds open objects from their members: all, or the one of `path`."""
        open_ = []
        for o in state.open:
            if path not in (None, o.path):
                open_.append(o)
                continue
            bare = replace(o, upload=None, parts=(), partial_block=())
            grown, left = self._send(bare, members(self._case, o), closing=False)
            open_.append(self._stage(grown, None, left, len(left)))
        return self._done(replace(state, open=tuple(open_)), [])

    def rebuild(self, state: PartitionState, o: ClosedObject) -> TaskResult:
        """Rebuilds a closed object; if rules of P2 are omitted, from wrong records or under a wrong key."""
        rules = self._case.rules
        records = members(self._case, o)
        if not rules.enforce("p2.runs"):
            records = "".join(str(i) for i in range(o.first, o.last + 1))
        if not rules.enforce("p2.clocks"):
            records = "".join(i for i in records if is_member(self._case, o.id, int(i), self._clock))
        first = o.first if rules.enforce("p2.same-key") else o.last
        self._below = directory_of(o.key)
        bare = OpenObject(
            OpenObjectState(
                path=o.path, schema=o.schema, first=first, last=o.last, count=o.offsets.count, size=0, opened_at=0
            ),
            settings=o.settings,
            offsets=o.offsets,
            sources=o.sources,
        )
        grown, _ = self._send(bare, records, closing=True)
        again = replace(self.close(grown), first=o.first, record=o.record)
        return self._done(state, [again] if records else [])

    def _write(self, o: OpenObject | None, target: ObjectId, new: str, closing: bool) -> tuple[OpenObject, str]:
        """Adds new records to an object and sends its full parts; returns the object and the remainder."""
        clock = recorded_clock(self._case, self._clock)
        if o is None:
            first = int(new[0])
            o = OpenObject(
                OpenObjectState(
                    path=target.path, schema=target.schema, first=first, last=first, count=0, size=0, opened_at=0
                ),
                settings=self._settings,
                offsets=OffsetChecksum(),
            )
        elif not o.parts and not o.staged:
            raise DataGone(
                f"the bytes of {key_of(o.path, o.first, self._below)} were discarded", o.path, discarded=True
            )
        left = "".join(self._fetch(extent, o.path) for extent in o.partial_block)
        if new:
            offsets = sum((CHECKSUMS[int(offset)] for offset in new), o.offsets)
            seen = self._sources(o, new, clock)
            state = replace(o.state, last=int(new[-1]), count=offsets.count)
            o = replace(o, state=state, offsets=offsets, sources=seen)
        return self._send(o, left + new, closing)

    def _sources(self, o: OpenObject, new: str, clock: int) -> tuple[SourceRange, ...]:
        """The source ranges of an object with new records."""
        rule = "p2.unknown-rejected" if o.path == DEAD_LETTERS else "p2.unknown-left-out"
        if self._case.paths != "unknown" or not self._case.rules.enforce(rule):
            return self._extended(o.sources, new, clock)
        if o.path == DEAD_LETTERS:
            clock = UNKNOWN
        return (*o.sources, *(SourceRange(int(offset), int(offset) + 1, clock) for offset in new))

    def _extended(self, seen: tuple[SourceRange, ...], new: str, clock: int) -> tuple[SourceRange, ...]:
        """The source ranges with those of new records. None contains a skipped record."""
        if not self._skipped or not self._case.rules.enforce("p2.skipped-left-out"):
            return extend_sources(seen, int(new[0]), int(new[-1]) + 1, clock)
        for offset in map(int, new):
            between = range(seen[-1].end, offset) if seen else ()
            if any(each in between for each in self._skipped):
                seen = (*seen, SourceRange(offset, offset + 1, clock))
            else:
                seen = extend_sources(seen, offset, offset + 1, clock)
        return seen

    def _send(self, o: OpenObject, content: str, closing: bool) -> tuple[OpenObject, str]:
        """Sends full parts; at the close also the remainder."""
        size = self._case.part
        parts = list(o.parts)
        upload = self._upload(o, needed=len(content) >= size or (closing and bool(content)))
        while upload is not None and (len(content) >= size or (closing and content)):
            number, part, content = len(parts) + 1, content[:size], content[size:]
            parts.append(Part(number, part, 0, len(part)))
            upload = put_part(upload, number, part)
        if upload is not None:
            self._uploads[upload.id] = upload
        return replace(o, upload=upload.id if upload else o.upload, parts=tuple(parts)), content

    def _upload(self, o: OpenObject, *, needed: bool) -> Upload | None:
        if not needed:
            return None
        if o.upload is None:
            started = Upload(
                f"{self._driver}{self._serial + len(self._begun)}",
                key_of(o.path, o.first, self._below),
                self._world.now,
            )
            self._begun.append(started.id)
            return started
        found = self._world.upload(o.upload)
        if found is None:
            raise DataGone(f"upload {o.upload} is missing", o.path)
        return found

    def _stage(self, o: OpenObject, was: OpenObject | None, left: str, new: int) -> OpenObject:
        """Stages the remainder of this round after those of earlier rounds; merges a chain that is too long."""
        chain = was.partial_block if was and len(left) > new and len(was.partial_block) < self._case.chain else ()
        mine = left[-new:] if chain else left
        if not mine:
            return replace(o, partial_block=chain)
        extent = Extent(self._name, len(self._staged), len(mine), checksum(mine))
        self._staged += mine
        return replace(o, partial_block=(*chain, extent))

    def _fetch(self, extent: Extent, path: str) -> str:
        rules = self._case.rules
        stored = self._world.staged(extent.name)
        data = (stored or "")[extent.offset : extent.offset + extent.length]
        sound = stored is not None and checksum(data) == extent.crc
        if not sound and (rules.enforce("p6.verified") if stored is not None else rules.enforce("p6.missing")):
            gone = "damaged" if stored is not None else "missing"
            raise DataGone(f"staging object {extent.name} is {gone}", path)
        return data

    def _done(
        self, state: PartitionState, closed: Iterable[ClosedObject], rotations: tuple[RotationRange, ...] = ()
    ) -> TaskResult:
        staging = (self._name, self._staged) if self._staged else None
        return TaskResult(state, tuple(closed), tuple(self._uploads.values()), tuple(self._begun), staging, rotations)

    def close(self, o: OpenObject) -> ClosedObject:
        body = "".join(content_of(part.etag) for part in o.parts)
        return ClosedObject(
            key=key_of(o.path, o.first, self._below),
            topic=TP.topic,
            partition=TP.partition,
            path=o.path,
            first=o.first,
            last=o.last,
            bytes=len(body),
            crc=checksum(body),
            upload=o.upload or "",
            parts=o.parts,
            sources=o.sources,
            offsets=o.offsets,
            settings=o.settings,
            schema=o.schema,
        )


def content(o: ClosedObject) -> str:
    """The content of an object according to its record."""
    return "".join(content_of(part.etag) for part in o.parts)


def put_part(upload: Upload, number: int, etag: str) -> Upload:
    parts = dict(upload.parts) | {number: etag}
    return upload._replace(parts=tuple(sorted(parts.items())))


def closings(case: Case, objects: Sequence[ObjectId], *, last: bool) -> Iterator[tuple[ObjectId, ...]]:
    """The sets of objects that a round can close at its end: none or all; with `scope: Object` also a single one."""
    if not last:
        yield ()
        if case.scope == "object" and len(objects) > 1:
            yield from ((each,) for each in objects)
    if objects or last:
        yield tuple(objects)


def extend_sources(seen: tuple[SourceRange, ...], start: int, end: int, clock: int) -> tuple[SourceRange, ...]:
    """Extends an object's source ranges; adjacent ranges under the same clock are merged."""
    if seen and seen[-1].clock == clock:
        return (*seen[:-1], replace(seen[-1], end=end))
    return (*seen, SourceRange(start, end, clock))


def _state(before: PartitionState, end: int, open_: Sequence[OpenObject], skipped: Collection[int]) -> PartitionState:
    committable = min([end, *(o.first for o in open_)])
    accepted = (offset for offset in range(before.next, end) if offset not in skipped)
    written = sum((CHECKSUMS[offset] for offset in accepted), before.accepted)
    return PartitionState(
        RotationState(next=end, committable=committable),
        rotation_start=before.rotation_start if open_ else end,
        accepted=written if open_ else OffsetChecksum(),
        accepted_end=end,
        open=tuple(open_),
    )


def _rotations(
    before: PartitionState, end: int, open_: Sequence[OpenObject], skipped: Collection[int]
) -> tuple[RotationRange, ...]:
    """The rotation that ended: no object is open, and every offset since the previous rotation is in an object, or was
    skipped."""
    if open_ or end == before.rotation_start:
        return ()
    gaps = (CHECKSUMS[offset] for offset in skipped if before.rotation_start <= offset < end)
    return (RotationRange(TP.topic, TP.partition, before.rotation_start, end, sum(gaps, OffsetChecksum())),)
