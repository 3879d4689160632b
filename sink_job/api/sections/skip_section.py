"""Records that the sink passes over (`spec.errors.skip`), and the annotation that adds some to those of the spec.

The annotation is a list of `topic-partition@offset`, separated by commas or blanks. `kubectl s3sink skip` writes it;
the operator and `s3sink run` add it to the list of the spec.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from pydantic import AfterValidator, Field, StrictInt, model_validator

from sink_job.api.base_model import SpecModel, description
from sink_job.api.field_errors import FieldError, in_a_line
from sink_job.api.field_types import TopicName, check_topic
from sink_job.api.topic_partition import TopicPartition

SKIP_ANNOTATION: Final = "s3sink.io/skip"
"""Annotation of an S3Sink with records to pass over, in addition to those of its spec."""
MAX_SKIPPED: Final = 1_000
"""Maximum number of records to pass over, those of the annotation included."""
MAX_PARTITION: Final = 2**31 - 1
MAX_OFFSET: Final = 2**53 - 1

_SEPARATORS: Final = re.compile(r"[\s,]+")
_MAX_DIGITS: Final = 20
_FORM: Final = "is not topic-partition@offset, such as flights-0@42"


class SkipSpec(SpecModel):
    """A record that is passed over once."""

    topic: Annotated[TopicName, description(example="flights")]
    """The topic."""
    partition: Annotated[StrictInt, description(example=0, ge=0, le=MAX_PARTITION)]
    """The partition."""
    offset: Annotated[StrictInt, description(example=42, ge=0, le=MAX_OFFSET)]
    """The offset of the record."""

    @model_validator(mode="before")
    @classmethod
    def _is_no_text(cls, value: Any) -> Any:
        if isinstance(value, str):
            raise ValueError("is a text, the form of the annotation: write {topic: …, partition: …, offset: …}")
        return value

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)

    def __str__(self) -> str:
        return f"{self.topic_partition}@{self.offset}"


def _in_order(records: list[SkipSpec]) -> list[SkipSpec]:
    """The order has no meaning: a record that moves from the annotation to the spec changes no setting."""
    return sorted(records, key=lambda each: (each.topic_partition, each.offset))


SkipList = Annotated[
    list[SkipSpec],
    AfterValidator(_in_order),
    Field(max_length=MAX_SKIPPED),
]
"""Records to pass over, in the order of topic, partition and offset."""


def parse_records(text: str) -> list[dict[str, Any]]:
    """The records that the text of an annotation names, as in a manifest, each once. Raises ValueError."""
    found: dict[tuple[TopicPartition, int], dict[str, Any]] = {}
    for word in filter(None, _SEPARATORS.split(text)):
        tp, offset = _record(word)
        found[tp, offset] = {"topic": tp.topic, "partition": tp.partition, "offset": offset}
    return list(found.values())


def as_text(records: list[dict[str, Any]]) -> str:
    """The inverse of `parse_records`."""
    return ",".join(f"{TopicPartition(each['topic'], each['partition'])}@{each['offset']}" for each in records)


def _record(word: str) -> tuple[TopicPartition, int]:
    place, at, offset = word.rpartition("@")
    topic, hyphen, partition = place.rpartition("-")
    numbers = partition, offset
    if not (topic and hyphen and at and all(each.isascii() and each.isdigit() for each in numbers)):
        raise ValueError(f"{in_a_line(word)} {_FORM}")
    tp = TopicPartition(topic, _number(partition))
    try:
        check_topic(tp.topic)
    except ValueError as error:
        raise ValueError(f"the topic of {in_a_line(word)} {error}") from None
    for number, name, most in ((tp.partition, "partition", MAX_PARTITION), (_number(offset), "offset", MAX_OFFSET)):
        if number > most:
            raise ValueError(f"the {name} of {in_a_line(word)} is above {most}")
    return tp, _number(offset)


def _number(digits: str) -> int:
    """The number, or one that is too large: Python converts no text of thousands of digits."""
    return int(digits.lstrip("0")[:_MAX_DIGITS] or "0")


def with_records(spec: Any, text: str) -> Any:
    """The spec with the records of an annotation in `errors.skip`. A spec of another structure is unchanged: the parser
    reports it. Raises ValueError if the text is invalid, or if there are too many records."""
    added = parse_records(text)
    errors = (spec.get("errors") or {}) if isinstance(spec, dict) else None
    listed = (errors.get("skip") or []) if isinstance(errors, dict) else None
    if not isinstance(errors, dict) or not isinstance(listed, list) or not added:
        return spec
    merged = [*listed, *(each for each in added if each not in listed)]
    if len(merged) > MAX_SKIPPED >= len(listed):
        raise ValueError(f"with the records of spec.errors.skip these are {len(merged):,}, more than {MAX_SKIPPED:,}")
    return spec | {"errors": errors | {"skip": merged}}


def with_annotation(document: dict[str, Any]) -> tuple[dict[str, Any], list[FieldError]]:
    """The manifest with the records of its annotation in `spec.errors.skip`, and the error of the annotation."""
    metadata = document.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    text = annotations.get(SKIP_ANNOTATION) if isinstance(annotations, dict) else None
    if text is None:
        return document, []
    here = ("metadata", "annotations", SKIP_ANNOTATION)
    if not isinstance(text, str):
        return document, [FieldError(here, f"is not a text: write it in quotes, such as {_FORM.rpartition(' ')[2]}")]
    try:
        return document | {"spec": with_records(document.get("spec"), text)}, []
    except ValueError as error:
        return document, [FieldError(here, str(error))]
