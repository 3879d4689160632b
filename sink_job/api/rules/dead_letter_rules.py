"""Rules for `spec.errors.deadLetters`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sink_job.api.enums import OnNullValue, Tolerance
from sink_job.api.field_errors import FieldError, Path, shown

if TYPE_CHECKING:
    from sink_job.api.spec import Spec

_DEAD_LETTERS: Final[Path] = ("spec", "errors", "deadLetters")
_ON_NULL: Final[Path] = ("spec", "errors", "onNullValue")
_TOLERANCE: Final[Path] = ("spec", "errors", "tolerance")
_TOPICS_DIR: Final[Path] = ("spec", "s3", "topicsDir")
_DELIMITER: Final[Path] = ("spec", "s3", "directoryDelimiter")


def check_dead_letters(spec: Spec) -> Iterator[FieldError]:
    """The errors of the section and of what depends on it."""
    dead_letters = spec.errors.dead_letters
    for name, value in (("topic", dead_letters.topic), ("prefix", dead_letters.prefix)):
        if value is not None and spec.errors.tolerance is not Tolerance.ALL:
            here = (*_DEAD_LETTERS, name)
            message = f"{shown(here, value)} has no effect without spec.errors.tolerance: All"
            yield FieldError(here, message, (_TOLERANCE,))
    yield from _topic(spec)
    yield from _prefix(spec)
    yield from _null_values(spec)


def _null_values(spec: Spec) -> Iterator[FieldError]:
    dead_letters, here = spec.errors.dead_letters, (*_DEAD_LETTERS, "nullValues")
    if not dead_letters.null_values:
        return
    if dead_letters.topic is None and dead_letters.prefix is None:
        message = f"{shown(here, True)} has no effect without spec.errors.deadLetters.topic or prefix"
        yield FieldError(here, message, ((*_DEAD_LETTERS, "topic"), (*_DEAD_LETTERS, "prefix")))
    if spec.errors.on_null_value is not OnNullValue.IGNORE:
        message = (
            f"{shown(here, True)} has no effect without spec.errors.onNullValue: Ignore: with Fail and tolerance All "
            "such records are dead letters in any case"
        )
        yield FieldError(here, message, (_ON_NULL,))


def _topic(spec: Spec) -> Iterator[FieldError]:
    """The sink does not read its own dead letters."""
    dead_letters, here = spec.errors.dead_letters, (*_DEAD_LETTERS, "topic")
    topic = dead_letters.topic
    if topic is None:
        # An object of an earlier topic may still have to be produced, with the delivery of the manifest.
        if not dead_letters.headers:
            path = (*_DEAD_LETTERS, "headers")
            message = f"{shown(path, False)} has no effect without spec.errors.deadLetters.topic"
            yield FieldError(path, message, (here,))
    elif topic in (spec.kafka.topics or ()):
        message = f"{topic} is also in spec.kafka.topics: the sink would read its own dead letters; use another topic"
        yield FieldError(here, message, (("spec", "kafka", "topics"),))
    elif spec.reads(topic):
        pattern = ("spec", "kafka", "topicsPattern")
        message = (
            f"{topic} matches spec.kafka.topicsPattern {shown(pattern, spec.kafka.topics_pattern)}: the sink would "
            f"read its own dead letters; use another topic, or a pattern that begins with (?!{topic}$)"
        )
        yield FieldError(here, message, (pattern,))


def _prefix(spec: Spec) -> Iterator[FieldError]:
    """Dead letters have a directory of their own: readers of the objects must not read them."""
    prefix, topics_dir, delimiter = spec.errors.dead_letters.prefix, spec.s3.topics_dir, spec.s3.directory_delimiter
    if prefix is None:
        return
    here = (*_DEAD_LETTERS, "prefix")
    written = shown(here, prefix)
    if delimiter != "/" and (prefix.startswith(delimiter) or prefix.endswith(delimiter)):
        message = f"{written} starts or ends with spec.s3.directoryDelimiter: remove it there"
        yield FieldError(here, message, (_DELIMITER,))
    elif not topics_dir:
        first = prefix.split(delimiter)[0].split("/")[0]
        if spec.reads(first):
            message = f"{written} begins with the topic {first}, below which are its objects: use another directory"
            yield FieldError(here, message, (_TOPICS_DIR, ("spec", "kafka", "topics")))
    elif overlap(prefix, topics_dir, delimiter):
        message = (
            f"{written} and spec.s3.topicsDir {shown(_TOPICS_DIR, topics_dir)} must not contain each other: readers of "
            "the objects would read rejected records; use a directory of its own"
        )
        yield FieldError(here, message, (_TOPICS_DIR,))


def overlap(one: str, other: str, delimiter: str) -> bool:
    """Whether one of two directories is the other one, or contains it."""
    shorter, longer = sorted((one, other), key=len)
    return longer == shorter or any(longer.startswith(f"{shorter}{end}") for end in (delimiter, "/"))
