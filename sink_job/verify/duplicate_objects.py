"""Detects untracked objects that contain records of the sink a second time. Pure functions.

Readers of a directory read every object in it. An untracked object is a copy of the sink's records by its key: topic,
partition and offset in the form of this sink's keys, possibly with another padding, directory or compression. Or it is
a copy by its content, which `verify.evidence` compares with the listed objects. All other objects belong to other
programs. Names that begin with `_` or `.` are skipped, as such readers skip them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.partitioning.object_keys import MAX_OFFSET, extension, layouts, parse_key, topic_prefix

_COMPRESSED: Final = re.compile(r"(\.(gz|zst|zstd|bz2|xz|snappy|lz4|lz4raw|br))+(\.parquet)?$")


@dataclass(frozen=True)
class KeyOrigin:
    """The topic-partition and first offset in a key."""

    topic_partition: TopicPartition
    first: int


class OtherObject(Enum):
    """An object without the key of an object of this sink."""

    FOREIGN = auto()
    """Only its content can show whether it is a copy."""

    HIDDEN = auto()
    """Readers of directories skip it."""

    ANOTHER_SINKS = auto()
    """Another sink has claimed its extension for this topic and directory."""


class DuplicateDetector:
    """Classifies the keys of untracked objects."""

    def __init__(
        self,
        settings_of_claims: Iterable[ObjectSettings],
        topics: Iterable[str],
        claimed: Collection[tuple[str, str]] = (),
    ) -> None:
        """`settings_of_claims`: the settings of all claims. `claimed`: topic and extension (with its dot) of the claims
        of all sinks in the same directories, including this one."""
        self._settings_of_claims = list(settings_of_claims)
        self._topics = frozenset(topics)
        own = {extension(object_settings) for object_settings in self._settings_of_claims}
        self._others = {(topic, suffix) for topic, suffix in claimed if suffix not in own}
        self._forms = [
            form
            for object_settings in self._settings_of_claims
            for topic in self._topics
            for layout in layouts(object_settings)
            for form in _forms(layout, topic)
        ]

    def origin(self, key: str) -> KeyOrigin | OtherObject:
        """The origin of the object's records by its key."""
        for object_settings in self._settings_of_claims:
            parsed = parse_key(object_settings, key)
            if parsed is not None and parsed.topic in self._topics:
                return KeyOrigin(TopicPartition(parsed.topic, parsed.partition), parsed.first)
        kind: OtherObject = OtherObject.FOREIGN
        for form in self._forms:
            if not key.startswith(form.prefix):
                continue
            if form.is_hidden(key):
                kind = OtherObject.HIDDEN
                continue
            match = form.file.fullmatch(key, len(form.prefix))
            if match is None:
                continue
            if (form.topic, match["suffix"]) in self._others:
                return OtherObject.ANOTHER_SINKS
            if form.is_same_format(match["suffix"]):
                partition, first = int(match["partition"]), int(match["first"])
                if abs(partition) <= MAX_OFFSET and first <= MAX_OFFSET:
                    return KeyOrigin(TopicPartition(form.topic, partition), first)
        return kind


@dataclass(frozen=True)
class _Form:
    """The form of keys that resemble those of one topic under one object_settings."""

    topic: str
    prefix: str
    delimiter: str
    file: re.Pattern[str]
    plain: str  # the extension without its compression

    def is_hidden(self, key: str) -> bool:
        names = key[len(self.prefix) :].split(self.delimiter)
        return any(name.startswith(".") or (name.startswith("_") and "=" not in name) for name in names)

    def is_same_format(self, suffix: str) -> bool:
        """Whether readers of this sink's objects read an object with this suffix: it has the same format, with any
        compression."""
        plain = _COMPRESSED.sub(r"\3", suffix)
        return plain.endswith(self.plain) if self.plain else not plain


def _forms(object_settings: ObjectSettings, topic: str) -> list[_Form]:
    names = object_settings.s3
    directory, delimiter = re.escape(names.directory_delimiter), re.escape(names.file_delimiter)
    numbers = rf"(?P<partition>-?[0-9]+){delimiter}(?P<first>[0-9]+)(?![0-9])"
    file = re.compile(rf"(.*{directory})?{re.escape(topic)}{delimiter}{numbers}(?P<suffix>.*)", re.DOTALL)
    plain = _COMPRESSED.sub(r"\3", extension(object_settings))
    return [_Form(topic, topic_prefix(object_settings, topic), names.directory_delimiter, file, plain)]
