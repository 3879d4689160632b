"""The names of record fields in `spec.partitioner`: fields of the value, of the key, headers, topic and partition.

| name | field | in a path |
|---|---|---|
| `a.b` | of the value | `a.b=…` |
| `$value.a.b` | of the value; for a first segment that begins with `$` | `a.b=…` |
| `$key.a.b` | of the key | `key.a.b=…` |
| `$key` | the key itself | `key=…` |
| `$header.a.b` | the last header with the name `a.b` | `header.a.b=…` |
| `$topic`, `$partition` | of the record | `topic=…`, `partition=…` |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from sink_job.api.enums import ConverterType, SchemaNamePosition, TimestampExtractor
from sink_job.api.field_errors import FieldError, Path

if TYPE_CHECKING:
    from sink_job.api.sections.job_sections import PartitionerSpec
    from sink_job.api.spec import Spec

_PARTITIONER: Final = ("spec", "partitioner")
_TYPE: Final = (*_PARTITIONER, "type")
_KEY_CONVERTER: Final = ("spec", "format", "keyConverter")
_ENVELOPE: Final = ("spec", "format", "envelope")

FORMS: Final = "$key, $key.<field>, $header.<name>, $topic, $partition, and $value.<field>"


class FieldSource(StrEnum):
    """Where a field is."""

    VALUE = "$value"
    KEY = "$key"
    HEADER = "$header"
    TOPIC = "$topic"
    PARTITION = "$partition"


@dataclass(frozen=True, slots=True)
class FieldReference:
    """A field of a record. `text` is its name in the manifest. `name` is the name of a header, or the dotted name of a
    field within value or key; it is empty for the key itself, topic and partition."""

    text: str
    source: FieldSource
    name: str

    @classmethod
    def of(cls, text: str) -> FieldReference:
        """The field with this name. A name that begins with `$` and has none of the forms is a field of the value, as
        in the ledgers of earlier versions; `form_error` rejects it in a manifest."""
        first, _, rest = text.partition(".")
        if not text.startswith("$") or form_error(text) is not None:
            return cls(text, FieldSource.VALUE, text)
        return cls(text, FieldSource(first), rest)

    @property
    def label(self) -> str:
        """The name in a path."""
        if self.source is FieldSource.VALUE:
            return self.name
        return self.text.removeprefix("$")


def form_error(text: str) -> str | None:
    """What is wrong with a name that begins with `$`; None if nothing is."""
    if not text.startswith("$"):
        return None
    first, dot, rest = text.partition(".")
    if first in (FieldSource.VALUE, FieldSource.HEADER) and rest:
        return None
    if first == FieldSource.KEY and bool(dot) == bool(rest):
        return None
    if text in (FieldSource.TOPIC, FieldSource.PARTITION):
        return None
    return f"{text} is not a field of a record: names that begin with $ are {FORMS}"


def path_fields(spec: Spec) -> Iterator[tuple[Path, FieldReference]]:
    """The fields that paths and times of the sink need, each with its place in the manifest."""
    partitioner = spec.partitioner
    for text in partitioner.fields or () if partitioner.type.uses_fields else ():
        yield (*_PARTITIONER, "fields"), FieldReference.of(text)
    if partitioner.type.uses_time and partitioner.timestamp_extractor is TimestampExtractor.RECORD_FIELD:
        yield (*_PARTITIONER, "timestampField"), FieldReference.of(partitioner.timestamp_field)


def needs_value(partitioner: PartitionerSpec) -> bool:
    """Whether paths or times need the value of a record, or its schema."""
    fields = list(partitioner.fields or ()) if partitioner.type.uses_fields else []
    if partitioner.type.uses_time and partitioner.timestamp_extractor is TimestampExtractor.RECORD_FIELD:
        fields.append(partitioner.timestamp_field)
    by_value = any(FieldReference.of(text).source is FieldSource.VALUE for text in fields)
    return by_value or partitioner.schema_name is not SchemaNamePosition.NONE


def check_record_fields(spec: Spec) -> Iterator[FieldError]:
    """The errors in the names of fields, and in their combination with the converters."""
    yield from _names(spec)
    yield from _fields_of_value(spec)
    yield from _fields_of_key(spec)


def _names(spec: Spec) -> Iterator[FieldError]:
    here, fields = (*_PARTITIONER, "fields"), list(dict.fromkeys(spec.partitioner.fields or ()))
    for text in fields:
        if (error := form_error(text)) is not None:
            yield FieldError(here, error)
    references = [FieldReference.of(text) for text in fields]
    for label, count in Counter(each.label for each in references).items():
        if count > 1:
            names = " and ".join(each.text for each in references if each.label == label)
            yield FieldError(here, f"{names} have the same name {label} in paths: remove one of them")
    here, text = (*_PARTITIONER, "timestampField"), spec.partitioner.timestamp_field
    if (error := form_error(text)) is not None:
        yield FieldError(here, error)
    elif text in (FieldSource.TOPIC, FieldSource.PARTITION):
        yield FieldError(here, f"{text} is not a time: use a field of the value or key, or a header")


def _fields_of_value(spec: Spec) -> Iterator[FieldError]:
    converter, partitioner = spec.format.converter, spec.partitioner
    if converter not in (ConverterType.TEXT, ConverterType.BYTES):
        return
    needed = {place[-1] for place, each in path_fields(spec) if each.source is FieldSource.VALUE}
    why = f"needs fields of the value, but the converter {converter} does not parse any; use another converter"
    depends = (("spec", "format", "converter"), _TYPE)
    if "fields" in needed:
        yield FieldError(_TYPE, f"{partitioner.type} {why}, or another type", (*depends, (*_PARTITIONER, "fields")))
    if "timestampField" in needed:
        here = (*_PARTITIONER, "timestampExtractor")
        also = (*_PARTITIONER, "timestampField")
        yield FieldError(here, f"{partitioner.timestamp_extractor} {why}, or Record or Wallclock", (*depends, also))


def _fields_of_key(spec: Spec) -> Iterator[FieldError]:
    converter = spec.format.key_converter
    of_key = [(place, each) for place, each in path_fields(spec) if each.source is FieldSource.KEY]
    if converter is None:
        for place, each in of_key[:1]:
            message = f"is missing: {each.text} in {'.'.join(map(str, place))} needs it"
            yield FieldError(_KEY_CONVERTER, message, (place, _TYPE))
        return
    if not of_key and not spec.format.envelope:
        message = (
            f"{converter} has no effect: no setting needs the key; remove it, or use $key in spec.partitioner.fields "
            "or timestampField, or set spec.format.envelope: true"
        )
        depends = (_TYPE, (*_PARTITIONER, "fields"), (*_PARTITIONER, "timestampField"), _ENVELOPE)
        yield FieldError(_KEY_CONVERTER, message, depends)
    for place, each in of_key:
        if (reason := _unreadable(converter, each.name)) is not None:
            yield FieldError(place, f"{each.text} {reason}", (_KEY_CONVERTER, _TYPE))


def _unreadable(converter: ConverterType, name: str) -> str | None:
    """Why the converter of keys does not give the field `name`; None if it does."""
    if converter is ConverterType.BYTES:
        return "cannot be read with keyConverter Bytes: use another one, such as Text"
    if converter is ConverterType.TEXT and name:
        return "cannot be read with keyConverter Text, which has no fields: use $key, or another keyConverter"
    if converter is ConverterType.PROTOBUF and not name:
        return "is a message with keyConverter Protobuf: use $key.<field>"
    return None
