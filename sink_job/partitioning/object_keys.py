"""Builds and parses the keys of objects (docs/semantics.md).

A key is `[topicsDir D] [prefix D] topic D path D topic F partition F offset extension`. D is the directory delimiter, F
the file delimiter. The offset is the first one in the object, padded with zeros. The prefix is that of the topic in
`s3.prefixes`; with `topicInPath: false` the first topic is left out. With either of them D contains a character that no
topic has (names_rules), so what follows the last D of a key begins with its topic: two topics never have a common key,
whatever their prefixes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from sink_job.api.enums import CompressionCodec, OutputFormat
from sink_job.api.field_types import RESERVED
from sink_job.api.sections.format_section import BytesSpec
from sink_job.api.spec import ObjectSettings, ledger_folder
from sink_job.records.batch import DEAD_LETTERS

MAX_KEY_BYTES: Final = 1024
"""S3's maximum length of a key."""

MAX_PARTITION: Final = 2**31 - 1
MAX_OFFSET: Final = 2**63 - 1
"""Kafka's maxima."""

_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)
_TEMPORARY: Final = re.compile(rf"(?:^|/){RESERVED}/[^/]+/dead-letters/")
_SUFFIXES: Final = {CompressionCodec.NONE: "", CompressionCodec.GZIP: ".gz", CompressionCodec.ZSTD: ".zst"}
_PARQUET: Final = {
    CompressionCodec.NONE: "",
    CompressionCodec.SNAPPY: ".snappy",
    CompressionCodec.GZIP: ".gz",
    CompressionCodec.ZSTD: ".zstd",
    CompressionCodec.LZ4: ".lz4raw",
    CompressionCodec.BROTLI: ".br",
}


class ObjectName(NamedTuple):
    """The parts of a key: the topic, the path, the Kafka partition and the object's first offset."""

    topic: str
    path: str
    partition: int
    first: int


def extension(object_settings: ObjectSettings) -> str:
    """The extension of the sink's keys, with its dot: format and compression."""
    settings = object_settings.format
    if settings.output is OutputFormat.PARQUET:
        return f"{_PARQUET[settings.compression.codec]}.parquet"
    if settings.output is OutputFormat.AVRO:
        return ".avro"
    name = (settings.bytes or BytesSpec()).extension if settings.output is OutputFormat.BYTES else ".json"
    return name + _SUFFIXES[settings.compression.codec]


def layouts(object_settings: ObjectSettings) -> tuple[ObjectSettings, ...]:
    """The settings of the keys of a sink's objects: its own, and those of its dead-letter objects, if it has any below
    a prefix of the user."""
    dead_letters = object_settings.dead_letters
    has_none = dead_letters is None or dead_letters.staged
    return (object_settings, *filter(None, (None if has_none else dead_letter_layout(object_settings),)))


def is_temporary(path: str, key: str) -> bool:
    """Whether an object with this path and key exists only until its records are in a topic: a dead-letter object in
    the folder of a ledger. The key alone does not decide it: a field of a record may contain the name of the
    folder."""
    return path == DEAD_LETTERS and _TEMPORARY.search(key) is not None


def dead_letter_layout(object_settings: ObjectSettings) -> ObjectSettings | None:
    """The settings of the keys of dead-letter objects: JSON lines below their prefix, by Kafka partition."""
    if object_settings.dead_letters is None:
        return None
    names = object_settings.s3.model_copy(
        update={"topics_dir": object_settings.dead_letters.prefix, "prefixes": [], "topic_in_path": True}
    )
    return ObjectSettings(s3=names)


def topic_prefixes(object_settings: ObjectSettings, topic: str) -> tuple[str, ...]:
    """The common prefixes of a topic's keys: of its objects, and of its dead-letter objects, if it has any."""
    return tuple(topic_prefix(each, topic) for each in layouts(object_settings))


def upload_prefixes(object_settings: ObjectSettings, topic: str) -> tuple[str, ...]:
    """As `topic_prefixes`, with that of dead-letter objects in the ledger's folder."""
    found = (object_settings, *filter(None, (dead_letter_layout(object_settings),)))
    return tuple(topic_prefix(each, topic) for each in found)


def topic_prefix(object_settings: ObjectSettings, topic: str) -> str:
    """The common prefix of a topic's keys, including the delimiter before the path. With `s3.prefixes` and
    `topicInPath: false` keys of other topics and, in the folder of ledgers, other objects may begin with it, too."""
    directory = object_settings.s3.directory(topic)
    return f"{directory}{object_settings.s3.directory_delimiter}" if directory else ""


def listing_prefixes(settings_of_claims: Iterable[ObjectSettings], topics: Iterable[str]) -> list[str]:
    """The prefixes of the keys of these topics, each key below one alone: a prefix may contain another."""
    names = list(topics)
    found = {prefix for settings in settings_of_claims for topic in names for prefix in topic_prefixes(settings, topic)}
    return without_nested(found)


def without_nested(prefixes: Iterable[str]) -> list[str]:
    """The sorted prefixes that begin with no other one."""
    done: list[str] = []
    for prefix in sorted(prefixes):  # a prefix comes right after one that contains it, or after others inside of it
        if not done or not prefix.startswith(done[-1]):
            done.append(prefix)
    return done


def is_internal(object_settings: ObjectSettings, key: str) -> bool:
    """Whether a key is in the folder of ledgers, in which are no objects for readers."""
    return key.startswith(ledger_folder(object_settings.s3.topics_dir, ""))


def object_key(object_settings: ObjectSettings, topic: str, path: str, partition: int, first: int) -> str:
    """The key of the object of `topic` and `partition` with the path `path` and the first offset `first`."""
    if path == DEAD_LETTERS:
        layout = dead_letter_layout(object_settings)
        assert layout is not None, "only a sink with dead letters has this path"
        return object_key(layout, topic, _partition_path(partition), partition, first)
    names = object_settings.s3
    file = names.file_delimiter.join((topic, str(partition), padded(object_settings, first)))
    return f"{topic_prefix(object_settings, topic)}{path}{names.directory_delimiter}{file}{extension(object_settings)}"


def _partition_path(partition: int) -> str:
    return f"partition={partition}"


def padded(object_settings: ObjectSettings, offset: int) -> str:
    """An offset in the form of a key, padded with zeros."""
    return str(offset).rjust(object_settings.s3.offset_pad_width, "0")


def path_elements(object_settings: ObjectSettings, path: str) -> list[str]:
    """The directories of `path`."""
    return path.split(object_settings.s3.directory_delimiter)


def parse_key(object_settings: ObjectSettings, key: str) -> ObjectName | None:
    """The parts of an object's key; None if a sink with these settings does not write such a key.

    If topic names may contain the delimiter, several topics can match. The longest one is returned.
    """
    found = _parse(object_settings, key)
    if found is not None or (layout := dead_letter_layout(object_settings)) is None:
        return found
    found = _parse(layout, key)
    is_dead_letter = found is not None and found.path == _partition_path(found.partition)
    return found._replace(path=DEAD_LETTERS) if found is not None and is_dead_letter else None


def _parse(object_settings: ObjectSettings, key: str) -> ObjectName | None:
    names, end = object_settings.s3, extension(object_settings)
    delimiter, number = names.directory_delimiter, re.escape(names.file_delimiter) + "([0-9]+)"
    file = re.fullmatch(f"(.*){number}{number}", key.removesuffix(end), re.DOTALL) if key.endswith(end) else None
    front = f"{names.topics_dir}{delimiter}" if names.topics_dir else ""
    if not file or not file[1].startswith(front):
        return None
    if not names.has_plain_names:
        return None if is_internal(object_settings, key) else _parse_named(object_settings, key, file)
    middle = file[1].removeprefix(front)
    at = middle.rfind(delimiter)
    while at > 0:
        topic, ending = middle[:at], delimiter + middle[:at]
        path = middle[at + len(delimiter) :].removesuffix(ending)
        found = ObjectName(topic, path, int(file[2]), int(file[3]))
        if path and _TOPIC.fullmatch(topic) and object_key(object_settings, *found) == key:
            return found if found.partition <= MAX_PARTITION and found.first <= MAX_OFFSET else None
        at = middle.rfind(delimiter, 0, at)
    return None


def _parse_named(object_settings: ObjectSettings, key: str, file: re.Match[str]) -> ObjectName | None:
    """The parts of a key whose directories do not have to name the topic: the name of the object does."""
    delimiter = object_settings.s3.directory_delimiter
    topic = file[1].rpartition(delimiter)[2]
    path = file[1].removeprefix(topic_prefix(object_settings, topic)).removesuffix(f"{delimiter}{topic}")
    found = ObjectName(topic, path, int(file[2]), int(file[3]))
    if not (path and _TOPIC.fullmatch(topic) and object_key(object_settings, *found) == key):
        return None
    return found if found.partition <= MAX_PARTITION and found.first <= MAX_OFFSET else None
