"""When the objects of a connector are closed."""

from __future__ import annotations

from typing import Final

from sink_job.api.enums import PartitionerType
from sink_job.api.units.quantities import DAY, format_duration
from sink_job.migrate.draft import Draft
from sink_job.migrate.values import parse_boolean, parse_number

_FLUSH_SIZE: Final = 1000
_MAX_INTEGER: Final = 2**53 - 1
_MAX_DURATION: Final = 36_500 * DAY


def convert_rotation(draft: Draft, kind: PartitionerType) -> None:
    """Sets the fields of the rotation."""
    _flush_size(draft)
    interval = _interval(draft, kind)
    _schedule(draft)
    key = "rotate.file.on.partition.change"
    on_change = draft.parsed(key, parse_boolean)
    if on_change is not None and interval:
        draft.put("rotation.onPathChange", on_change, key)
    elif on_change is not None:
        draft.left_out(key, "has no effect without rotate.interval.ms")
    key = "partitioner.max.open.files"
    most = draft.parsed(key, parse_number)
    if most is not None and most > 0:
        draft.put("rotation.maxOpenObjects", min(most, _MAX_INTEGER), key)
    elif most is not None:
        draft.left_out(key, "off")


def _flush_size(draft: Draft) -> None:
    key = "flush.size"
    value = draft.number(key)
    if value is not None and value > 0:
        draft.put("rotation.flushSize", min(value, _MAX_INTEGER), key)
        return
    effect = f"the connector needs a positive number; {_FLUSH_SIZE} is written"
    if key not in draft.settings:
        draft.missing(key, effect, "correct rotation.flushSize")
    elif value is not None:
        draft.different(key, effect, "correct rotation.flushSize")
    draft.put("rotation.flushSize", _FLUSH_SIZE, "flush.size: write the right one")


def _interval(draft: Draft, kind: PartitionerType) -> bool:
    key = "rotate.interval.ms"
    value = draft.number(key)
    if value is None:
        return False
    if value < 1:
        draft.left_out(key, "off")
        return False
    if not kind.uses_time:
        why = f"has no effect with the partitioner {kind}, which does not use time; rotation.maxOpenTime closes by time"
        draft.left_out(key, why)
        return False
    if value > _MAX_DURATION:
        draft.left_out(key, "longer than 100 years")
        return False
    draft.put("rotation.interval", format_duration(value), key)
    return True


def _schedule(draft: Draft) -> None:
    key = "rotate.schedule.interval.ms"
    value = draft.number(key)
    if value is None:
        return
    if value < 1:
        draft.left_out(key, "off")
        return
    if value > DAY:
        draft.different(key, "a schedule of more than a day is not supported; 1d is written", "check it")
        value = DAY
    draft.put("rotation.scheduleInterval", format_duration(value), f"{key}; exactly once here, not with the connector")


def has_schedule(draft: Draft) -> bool:
    """True if the rotation has a schedule, which needs a time zone."""
    return "rotation.scheduleInterval" in draft.fields
