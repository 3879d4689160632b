"""The number of the objects that were skipped, and a sum that identifies them. Pure.

The position of a table has both: the commit that moves it past objects that do not exist counts them. Whoever knows
which objects a table lacks can prove that these are those that were skipped, whatever their number. The first keys are
in a property beside the position, which proves itself in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Annotated, Final

import msgspec

from sink_job.ledger.state import ClosedObject

MAX_KEYS: Final = 100
"""Maximum number of keys in the property."""
_BYTES: Final = 16
_Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Sum = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{32}$")]
_Keys = msgspec.json.Decoder(tuple[str, ...])


class Skipped(msgspec.Struct, frozen=True):
    """The number of objects, their records, and the sum of the hashes of their keys (modulo 2^128, as hexadecimal
    digits)."""

    objects: _Number = 0
    records: _Number = 0
    keys: _Sum = "0" * 2 * _BYTES

    def are(self, objects: Iterable[ClosedObject]) -> bool:
        """Whether these are the objects that were skipped."""
        return NOTHING.with_objects(objects) == self

    def with_objects(self, objects: Iterable[ClosedObject]) -> Skipped:
        """These, and further objects."""
        return self._changed(objects, 1)

    def without_objects(self, objects: Iterable[ClosedObject]) -> Skipped:
        """Those that are left without these objects, which are among them."""
        return self._changed(objects, -1)

    def _changed(self, objects: Iterable[ClosedObject], sign: int) -> Skipped:
        count, records, keys = self.objects, self.records, int(self.keys, 16)
        for o in objects:
            count += sign
            records += sign * o.offsets.count
            keys += sign * _hash(o.key)
        return Skipped(count, records, f"{keys % (1 << 8 * _BYTES):0{2 * _BYTES}x}")


NOTHING: Final = Skipped()


@dataclass(frozen=True)
class SkippedObjects:
    """What a table says of skipped objects: their number and sum, and the first keys."""

    total: Skipped = NOTHING
    keys: tuple[str, ...] = ()

    @classmethod
    def of(cls, total: Skipped | None, properties: Mapping[str, str], sink_id: str) -> SkippedObjects:
        """Those of a table with this position and these properties. Keys that cannot be read are none: they only
        identify objects that the sum confirms."""
        try:
            keys = _Keys.decode(properties.get(skipped_property(sink_id), "[]"))
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            keys = ()
        return cls(total or NOTHING, keys[:MAX_KEYS])

    def with_objects(self, objects: Iterable[ClosedObject]) -> SkippedObjects:
        """These, and further objects."""
        found = list(objects)
        return SkippedObjects(self.total.with_objects(found), (*self.keys, *(o.key for o in found))[:MAX_KEYS])

    def without_objects(self, objects: Iterable[ClosedObject]) -> SkippedObjects:
        """Those that are left without these objects, which are among them."""
        found = {o.key: o for o in objects}
        return SkippedObjects(
            self.total.without_objects(found.values()), tuple(key for key in self.keys if key not in found)
        )

    def among(self, absent: Iterable[ClosedObject]) -> list[ClosedObject] | None:
        """The skipped objects, if they can be found among `absent`, objects that a table lacks: they are all of them,
        or all have their key in the property. None otherwise."""
        found = list(absent)
        listed = [o for o in found if o.key in self.keys]
        return next((each for each in (found, listed) if self.total.are(each)), None)

    def changed(self, properties: Mapping[str, str], sink_id: str) -> Mapping[str, str]:
        """The properties that a table with `properties` has to get."""
        name, text = skipped_property(sink_id), msgspec.json.encode(self.keys).decode()
        return {} if properties.get(name, "[]") == text else {name: text}


NONE_SKIPPED: Final = SkippedObjects()


def skipped_property(sink_id: str) -> str:
    """The name of the table property with the first keys."""
    return f"s3sink.{sink_id}.skipped"


def _hash(key: str) -> int:
    return int.from_bytes(sha256(key.encode()).digest()[:_BYTES])
