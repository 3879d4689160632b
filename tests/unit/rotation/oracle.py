"""A second rotator, written straight from docs/semantics.md, sections 2, 3 and 9, record by record, with nothing made
quick.

It shares the settings, the schedule grid and the words of the real one, and none of its code.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from sink_job.records.batch import SchemaCheck
from sink_job.rotation.policy import RotationPolicy

TOMBSTONE = "tombstone"


@dataclass(frozen=True, kw_only=True)
class CheckedPolicy(RotationPolicy):
    """A policy with the schema check of all batches, which the rotator gets with each batch."""

    closes: SchemaCheck | None = None


def check_of(settings: RotationPolicy) -> SchemaCheck | None:
    return settings.closes if isinstance(settings, CheckedPolicy) else None


@dataclass(frozen=True)
class OneRecord:
    """A record as the rotator sees it: path None is rejected; `path_rejected` distinguishes the two kinds."""

    offset: int
    path: str | None
    time: int | None = None
    size: int = 0
    path_rejected: bool = False
    schema: str | None = None


def projected_size(size: int, schema: str | None) -> int:
    """The size of a record of `size` bytes after its projection to the schema."""
    return size + (5 * int(schema[1:]) if schema else 0)


@dataclass
class NaiveObject:
    path: str
    opened_at: int
    schema: str | None = None
    offsets: list[int] = field(default_factory=list)
    size: int = 0
    base: int | None = None


@dataclass
class NaiveRotator:
    """One topic-partition over all its rounds. `closed` holds the groups of objects closed together, in order."""

    settings: RotationPolicy
    next: int = 0
    committable: int = 0
    last_time: int | None = None
    base: int | None = None
    current_path: str | None = None
    next_schedule: int | None = None
    now: int = 0
    open: list[NaiveObject] = field(default_factory=list)
    closed: list[list[NaiveObject]] = field(default_factory=list)

    @property
    def n(self) -> int:
        return sum(len(o.offsets) for o in self.open)

    def round(self, now: int, records: list[OneRecord], planned_end: int) -> None:
        self.start(now)
        for record in records:
            self.record(record)
        self.end(planned_end)

    def start(self, now: int) -> None:
        self.now = now
        if self.settings.max_open_time is not None:
            late = [o for o in self.open if now - o.opened_at >= self.settings.max_open_time]
            if late:
                self.close(late if self.settings.per_object else list(self.open))
        if self.next_schedule is None or (self.n == 0 and self.schedule_due()):
            self.renew()

    def end(self, planned_end: int) -> None:
        if self.n > 0 and self.schedule_due():
            self.close(list(self.open))
            self.renew()
        self.next = planned_end
        if not self.open:
            self.committable = self.next
        elif self.settings.per_object:
            self.committable = min(o.offsets[0] for o in self.open)

    def record(self, record: OneRecord) -> None:
        self.next = record.offset + 1
        if record.path is None and not record.path_rejected:
            return
        if record.time is not None:
            self.last_time = record.time
        self.look()
        if record.path is None:
            return
        if self.settings.per_object:
            self.record_of_object(record.path, record)
        else:
            self.record_of_partition(record.path, record)
        self.current_path = record.path

    def look(self) -> None:
        if self.base is None and not self.settings.per_object:
            self.base = self.last_time

    def record_of_partition(self, path: str, record: OneRecord) -> None:
        if self.presence_hit(path, record.schema):
            self.close(list(self.open))
        elif self.n > 0 and (self.interval_hit(path, record.time) or self.schedule_due()):
            self.close(list(self.open))
            self.renew()
        elif (self.n > 0 and self.schema_hit(path, record.schema)) or self.cap_hit(path, record.schema):
            self.close(list(self.open))
        self.look()
        target = self.append(path, record)
        if self.full(self.n, target):
            self.close(list(self.open))

    def record_of_object(self, path: str, record: OneRecord) -> None:
        if self.n > 0 and self.schedule_due():
            self.close(list(self.open))
            self.renew()
        if self.presence_hit(path, record.schema):
            self.close([o for o in self.open if o.path == path])
        target = self.find(path, record.schema)
        if (target and self.outlived(target, record.time)) or (target and self.schema_hit(path, record.schema)):
            self.close([target])
        if self.cap_hit(path, record.schema):
            self.close(list(self.open))
        target = self.append(path, record)
        if self.full(len(target.offsets), target):
            self.close([target])

    def outlived(self, target: NaiveObject, time: int | None) -> bool:
        interval = self.settings.interval
        return interval is not None and None not in (time, target.base) and (time or 0) - (target.base or 0) >= interval

    def full(self, count: int, target: NaiveObject) -> bool:
        flush_size, max_bytes = self.settings.flush_size, self.settings.max_bytes
        if flush_size is not None and count >= flush_size:
            return True
        return max_bytes is not None and target.size >= max_bytes

    def interval_hit(self, path: str, time: int | None) -> bool:
        interval = self.settings.interval
        if interval is None or time is None or self.base is None:
            return False
        tombstones = self.settings.tombstone_path
        changed = path != self.current_path and (tombstones is None or tombstones not in (path, self.current_path))
        return time - self.base >= interval or (self.settings.on_path_change and changed)

    def schedule_due(self) -> bool:
        return self.settings.schedule is not None and self.next_schedule is not None and self.now >= self.next_schedule

    def renew(self) -> None:
        if self.settings.schedule is not None:
            self.next_schedule = self.settings.schedule.after(self.now)

    def presence_hit(self, path: str, schema: str | None) -> bool:
        """Rule 1."""
        return any(o.path == path and (o.schema is None) != (schema is None) for o in self.open)

    def schema_hit(self, path: str, schema: str | None) -> bool:
        """Rule 3."""
        target = next((o for o in self.open if o.path == path), None)
        if target is None or self.settings.separate or target.schema is None or schema is None:
            return False
        check = check_of(self.settings)
        if check is None:
            return target.schema != schema
        return target.schema != schema and check(target.schema, schema)

    def cap_hit(self, path: str, schema: str | None) -> bool:
        cap = self.settings.max_open_objects
        return cap is not None and self.find(path, schema) is None and len(self.open) >= cap

    def find(self, path: str, schema: str | None) -> NaiveObject | None:
        """The open object of a record."""
        mine = [o for o in self.open if o.path == path]
        if self.settings.separate:
            mine = [o for o in mine if o.schema == schema]
        return mine[0] if mine else None

    def append(self, path: str, record: OneRecord) -> NaiveObject:
        target = self.find(path, record.schema)
        if target is None:
            base = record.time if self.settings.per_object else None
            target = NaiveObject(path, self.now, record.schema, base=base)
            self.open.append(target)
        target.offsets.append(record.offset)
        target.size += self.size_in(record, target)
        return target

    def size_in(self, record: OneRecord, target: NaiveObject) -> int:
        return record.size if target.schema == record.schema else projected_size(record.size, target.schema)

    def close(self, objects: list[NaiveObject]) -> None:
        self.closed.append(objects)
        self.open = [o for o in self.open if o not in objects]
        self.base = None
        if not self.settings.per_object:
            self.committable = max(o.offsets[-1] for o in objects) + 1
