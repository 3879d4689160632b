"""Objects beside a sink's own: which of them hold its records a second time for whoever reads the directory. Pure.

Readers of a directory read every object in it, whatever its key. So an object that no list names is a copy of the
sink's records when its key says so (topic, partition and offset in the form of this sink's keys, with another padding,
in another directory, compressed or not) or when its content does (`verify.evidence` compares it with the objects that
the lists name). The rest is somebody else's. Names that begin with `_` or `.` are passed over, as such readers do.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.partitioning.object_keys import MAX_OFFSET, extension, parse_key, topic_prefix

_COMPRESSED: Final = re.compile(r"(\.(gz|zst|zstd|bz2|xz|snappy|lz4|br))+$")


@dataclass(frozen=True)
class KeyOrigin:
    """Where a key says that its records come from."""

    topic_partition: TopicPartition
    first: int


class OtherObject(Enum):
    """An object whose key does not say that it holds this sink's records."""

    FOREIGN = auto()
    """Its content decides."""

    HIDDEN = auto()
    """Readers of directories pass over it."""

    ANOTHER_SINKS = auto()
    """Its extension is claimed by another sink, for this topic and directory."""


class DuplicateDetector:
    """Says of keys that no list names what they are."""

    def __init__(
        self, shapings: Iterable[ObjectSettings], topics: Iterable[str], claimed: Collection[tuple[str, str]] = ()
    ) -> None:
        """`shapings`: the settings of all claims. `claimed`: topic and extension, with its dot, that sinks have claimed
        in the same directories, this one among them."""
        self._shapings = list(shapings)
        self._topics = frozenset(topics)
        own = {extension(shaping) for shaping in self._shapings}
        self._others = {(topic, end) for topic, end in claimed if end not in own}
        self._forms = [form for shaping in self._shapings for topic in self._topics for form in _forms(shaping, topic)]

    def origin(self, key: str) -> KeyOrigin | OtherObject:
        """Where the object's records come from, by its key."""
        for shaping in self._shapings:
            parsed = parse_key(shaping, key)
            if parsed is not None and parsed.topic in self._topics:
                return KeyOrigin(TopicPartition(parsed.topic, parsed.partition), parsed.first)
        found: OtherObject = OtherObject.FOREIGN
        for form in self._forms:
            if not key.startswith(form.prefix):
                continue
            if form.is_hidden(key):
                found = OtherObject.HIDDEN
                continue
            match = form.file.fullmatch(key, len(form.prefix))
            if match is None:
                continue
            if (form.topic, match["end"]) in self._others:
                return OtherObject.ANOTHER_SINKS
            if form.is_of_ours(match["end"]):
                partition, first = int(match["partition"]), int(match["first"])
                if abs(partition) <= MAX_OFFSET and first <= MAX_OFFSET:
                    return KeyOrigin(TopicPartition(form.topic, partition), first)
        return found


@dataclass(frozen=True)
class _Form:
    """Keys that say a topic, a partition and an offset almost as the keys of one shaping do."""

    topic: str
    prefix: str
    delimiter: str
    file: re.Pattern[str]
    plain: str  # the extension without its compression

    def is_hidden(self, key: str) -> bool:
        names = key[len(self.prefix) :].split(self.delimiter)
        return any(name.startswith(".") or (name.startswith("_") and "=" not in name) for name in names)

    def is_of_ours(self, end: str) -> bool:
        """Whether readers of this sink's objects take the object for one: format counts, compression does not."""
        plain = _COMPRESSED.sub("", end)
        return plain.endswith(self.plain) if self.plain else not plain


def _forms(shaping: ObjectSettings, topic: str) -> list[_Form]:
    names = shaping.s3
    front, behind = re.escape(names.directory_delimiter), re.escape(names.file_delimiter)
    numbers = rf"(?P<partition>-?[0-9]+){behind}(?P<first>[0-9]+)(?![0-9])"
    file = re.compile(rf"(.*{front})?{re.escape(topic)}{behind}{numbers}(?P<end>.*)", re.DOTALL)
    plain = _COMPRESSED.sub("", extension(shaping))
    return [_Form(topic, topic_prefix(shaping, topic), names.directory_delimiter, file, plain)]
