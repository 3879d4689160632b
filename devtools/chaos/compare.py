"""Compares the records in Kafka with the objects in the bucket, without the product's code.

A plain consumer reads the topic, boto3 the objects. This module computes the directory of a record again, from the
documentation. The comparison is incremental: it reads each object once and expects it not to change.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple
from zoneinfo import ZoneInfo

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from devtools import bucket_listing
from devtools.chaos import containers
from devtools.chaos.value_forms import ValueForm

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_SECONDS = 120.0
_UNSAFE = re.compile(r"[\x00-\x1f/]")


class LoggedRecord(NamedTuple):
    """A record that is or was in Kafka; `timestamp` in ms, `value` as `ValueForm.content`."""

    partition: int
    offset: int
    timestamp: int
    value: bytes | None


class TopicLog:
    """The committed records of a topic; records that Kafka has deleted are kept. `form` is that of its values."""

    def __init__(self, bootstrap: str, topic: str, form: ValueForm | None = None) -> None:
        self.topic = topic
        self.records: dict[int, dict[int, LoggedRecord]] = {}
        self.ends: dict[int, int] = {}
        self.form = form or ValueForm()
        self._offsets: dict[tuple[int, bytes], list[int]] = {}
        self._bootstrap = bootstrap

    def update(self, partitions: Iterable[int]) -> None:
        """Reads up to the last stable offset of each partition."""
        settings: dict[str, Any] = {
            "bootstrap.servers": self._bootstrap,
            "group.id": "chaos-comparison",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "log_level": 0,
            "reconnect.backoff.max.ms": 500,
            # A reply without records reports the end, so it must not wait for more records.
            "fetch.wait.max.ms": 20,
        }
        consumer = Consumer(settings)
        missing = set(partitions)
        deadline = time.monotonic() + _SECONDS
        try:
            consumer.assign([TopicPartition(self.topic, p, self.ends.get(p, 0)) for p in sorted(missing)])
            while missing:
                for message in consumer.consume(10_000, 0.1):
                    self._take(message, missing)
                if missing and time.monotonic() > deadline:
                    raise RuntimeError(
                        f"reading {self.topic}: no records from partitions {sorted(missing)} within {_SECONDS:g} s"
                    )
        finally:
            consumer.close()

    def _take(self, message: Message, missing: set[int]) -> None:
        error = message.error()
        partition = message.partition()
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF and partition is not None:
                offset = message.offset()
                self.ends[partition] = max(self.ends.get(partition, 0), offset or 0)
                missing.discard(partition)
            return
        offset, timestamp = message.offset(), message.timestamp()
        assert partition is not None
        assert offset is not None
        value = message.value()
        kept = LoggedRecord(
            partition, offset, timestamp[1], value if value is None else self.form.content(bytes(value))
        )
        self.records.setdefault(partition, {})[offset] = kept
        self.ends[partition] = offset + 1
        if kept.value is not None:
            self._offsets.setdefault((partition, self.form.identity(kept.value)), []).append(offset)

    def offset_of(self, partition: int, record: bytes, after: int) -> int | None:
        """The first offset above `after` of this record of an object; None if there is none."""
        offsets = self._offsets.get((partition, self.form.identity(record)), ())
        return next((offset for offset in offsets if offset > after), None)


@dataclass(frozen=True)
class ComparisonSettings:
    """The settings of a manifest that the comparison evaluates; `extension` follows the documentation."""

    partitioner: Mapping[str, Any]
    rotation: Mapping[str, Any]
    extension: str
    compatibility: str = "None"

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> ComparisonSettings:
        form = spec.get("format", {})
        name = ".bin" if form.get("output") == "Bytes" else ".json"
        packed = {"Gzip": ".gz", "Zstd": ".zst"}.get(containers.codec_of(form), "")
        extension = containers.extension(form) or name + packed
        compatibility = spec.get("schemaCompatibility", "None")
        return cls(spec.get("partitioner", {}), spec.get("rotation", {}), extension, compatibility)

    def path(self, record: LoggedRecord) -> str | re.Pattern[str]:
        """The directory below the topic; a pattern if it depends on the driver's clock."""
        kind = self.partitioner.get("type", "Default")
        if kind == "Default":
            return f"partition={record.partition}"
        fields = json.loads(record.value or b"null") if self._reads_value(kind) else {}
        elements = [f"{name}={_text(_field(fields, name))}" for name in self.partitioner.get("fields", ())]
        if kind == "Field":
            return "/".join(elements)
        at = self._time(record, fields)
        if at is None:
            front = "".join(re.escape(element) + "/" for element in elements)
            return re.compile(front + re.sub("[0-9]+", "[0-9]+", re.escape(self._formatted(0, kind))))
        return "/".join([*elements, self._formatted(at, kind)])

    def _reads_value(self, kind: str) -> bool:
        return "Field" in kind or self.partitioner.get("timestampExtractor") == "RecordField"

    def _time(self, record: LoggedRecord, fields: Any) -> int | None:
        extractor = self.partitioner.get("timestampExtractor", "Wallclock")
        if extractor == "Wallclock":
            return None
        if extractor == "Record":
            return record.timestamp
        at = _field(fields, self.partitioner["timestampField"])
        if isinstance(at, int) or at.isdigit():
            return int(at)
        return round(datetime.fromisoformat(at).timestamp() * 1000)

    def _formatted(self, at: int, kind: str) -> str:
        local = datetime.fromtimestamp(at / 1000, UTC).astimezone(ZoneInfo(self.partitioner.get("timezone", "UTC")))
        formats = {"Daily": "year=%Y/month=%m/day=%d", "Hourly": "year=%Y/month=%m/day=%d/hour=%H"}
        if kind in formats:
            return local.strftime(formats[kind])
        duration = MINUTES[self.partitioner["duration"]]
        local = local.replace(minute=local.minute - local.minute % duration)
        return local.strftime(STRFTIME[self.partitioner["pathFormat"]])

    def too_large(self, lines: list[bytes], form: ValueForm) -> str | None:
        """The reason why the rotation should have closed an object before it held these lines; None if there is
        none."""
        limit = self.rotation.get("flushSize")
        if limit is not None and len(lines) > limit:
            return f"{len(lines)} records, but flushSize is {limit}"
        largest = self.rotation.get("maxBytes")
        if not isinstance(largest, int):
            return None
        size = sum(form.row_size(line, self.extension) for line in lines[:-1])
        return f"{size} bytes before its last record, but maxBytes is {largest}" if size >= largest else None


STRFTIME = {
    "'d'=yyyy-MM-dd/'h'=HH": "d=%Y-%m-%d/h=%H",
    "'year'=YYYY/'month'=MM/'at'=HH-mm": "year=%Y/month=%m/at=%H-%M",
    "'minute'=HH-mm": "minute=%H-%M",
}
"""Joda patterns as strftime formats."""

MINUTES = {"1h": 60, "30m": 30, "1m": 1}
"""Durations that divide an hour, in minutes. The UTC offsets of their zones are multiples of them."""


def _field(fields: Any, name: str) -> Any:
    for part in name.split("."):
        fields = fields[part]
    return fields


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    text = str(value)
    if text == "..":
        return "%2E%2E"
    return re.sub("[%/\x00-\x1f]", lambda match: f"%{ord(match[0]):02X}", text) if _UNSAFE.search(text) else text


class ComparedObject(NamedTuple):
    """A compared object; `size` in bytes."""

    etag: str
    records: int
    size: int


class Comparison:
    """Compares a sink's topic with its objects. `ignored(value)` returns whether the sink skips such a value."""

    def __init__(
        self,
        log: TopicLog,
        client: S3Client,
        bucket: str,
        *,
        ignored: Callable[[bytes | None], bool],
        topics_dir: str = "topics",
    ) -> None:
        self.log = log
        self.settings: list[ComparisonSettings] = []
        self.objects: dict[str, ComparedObject] = {}
        self.moved: set[str] = set()
        self.key_of_record: dict[tuple[int, int], str] = {}
        self._client = client
        self._bucket = bucket
        self._ignored = ignored
        self._key = re.compile(
            rf"{topics_dir}/{re.escape(log.topic)}/(?P<path>.+)/{re.escape(log.topic)}\+(?P<partition>[0-9]+)\+"
            r"(?P<first>[0-9]{10,})(?P<extension>\.(json|bin)(\.gz|\.zst)?|\.avro|(\.[a-z0-9]+)?\.parquet)",
            re.DOTALL,
        )

    def compare_visible(self, committed: Mapping[int, int], partitions: Iterable[int]) -> list[str]:
        """The current differences. `committed` are the group's offsets, read before this call."""
        listed = self._listed()
        self.log.update(partitions)
        wrong = []
        for key, (etag, size) in listed.items():
            known = self.objects.get(key)
            if key in self.moved:
                wrong.append(f"{key}: re-created after a reader had moved it")
            elif known is None:
                wrong += self._object(key, etag, size)
            elif known.etag != etag:
                wrong.append(f"{key}: its ETag was {known.etag} and is {etag}")
        wrong += [
            f"{key}: was visible and is now missing"
            for key in self.objects
            if key not in listed and key not in self.moved
        ]
        wrong += [
            f"{record} is below the committed offset {end} but in no object" for record, end in self._gaps(committed)
        ]
        return wrong

    def compare_all(self, committed: Mapping[int, int], partitions: Iterable[int]) -> list[str]:
        """The differences after everything is published: each record in one object, all offsets committed."""
        wrong = self.compare_visible(committed, partitions)
        wrong += [f"{record} is in no object" for record, _ in self._gaps(self.log.ends)]
        for partition, end in self.log.ends.items():
            last = max(self.log.records.get(partition, {-1: None}))
            if committed.get(partition, 0) <= last:
                wrong.append(f"partition {partition}: committed {committed.get(partition)}, the log ends at {end}")
        return list(dict.fromkeys(wrong))

    def _gaps(self, ends: Mapping[int, int]) -> list[tuple[str, int]]:
        """Records below the offsets `ends` that are in no object, each with its partition's end."""
        found = []
        for partition, end in ends.items():
            for offset, record in self.log.records.get(partition, {}).items():
                if offset < end and (partition, offset) not in self.key_of_record and not self._ignored(record.value):
                    found.append((f"record {self.log.topic}-{partition} offset {offset}", end))
        return found

    def _listed(self) -> dict[str, tuple[str, int]]:
        found = {}
        for page in self._client.get_paginator("list_objects_v2").paginate(Bucket=self._bucket):
            for each in page.get("Contents", []):
                if "_s3sink/" not in each["Key"]:
                    found[each["Key"]] = (each["ETag"], each["Size"])
        return found

    def _object(self, key: str, etag: str, size: int) -> list[str]:
        name = self._key.fullmatch(key)
        if name is None:
            return [f"{key}: not a key of this sink"]
        try:
            lines = self.log.form.records(key, bucket_listing.body(self._client, self._bucket, key))
        except Exception as error:
            return [f"{key}: cannot be read: {type(error).__name__}: {error}"]
        self.objects[key] = ComparedObject(etag, len(lines), size)
        partition, offset = int(name["partition"]), int(name["first"]) - 1
        wrong = []
        records = []
        for number, line in enumerate(lines):
            found = self.log.offset_of(partition, line, offset)
            if found is None or (number == 0 and found != int(name["first"])):
                wrong.append(f"{key}: line {number + 1} is not the expected record: {line[:80]!r}")
                break
            offset = found
            other = self.key_of_record.setdefault((partition, offset), key)
            if other != key:
                wrong.append(f"record {self.log.topic}-{partition} offset {offset} is in {other} and in {key}")
            records.append(self.log.records[partition][offset])
        return wrong[:5] + self._misplaced(key, name["path"], name["extension"], records, lines)

    def _misplaced(
        self, key: str, path: str, extension: str, records: list[LoggedRecord], lines: list[bytes]
    ) -> list[str]:
        reasons = []
        for settings in self.settings:
            reason = self._why_not(settings, path, extension, records, lines)
            if reason is None:
                return []
            reasons.append(reason)
        return [f"{key}: {'; '.join(reasons)}"]

    def _why_not(
        self, settings: ComparisonSettings, path: str, extension: str, records: list[LoggedRecord], lines: list[bytes]
    ) -> str | None:
        if extension != settings.extension:
            return f"ends with {extension} instead of {settings.extension}"
        for record in records:
            expected = settings.path(record)
            fits = path == expected if isinstance(expected, str) else expected.fullmatch(path)
            if not fits:
                return f"offset {record.offset} belongs below {expected}"
        form, contents = self.log.form, [record.value or b"" for record in records]
        return settings.too_large(lines, form) or form.why_not(settings.compatibility, contents, lines)
