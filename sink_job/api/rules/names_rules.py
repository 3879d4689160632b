"""Rules for `spec.s3.prefixes` and `spec.s3.topicInPath`.

With them the directories of a key do not have to name its topic. The name of the object does, so two topics never have
a common key if the directory delimiter ends before that name: it must contain a character that no topic has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sink_job.api.field_errors import FieldError, Path, shown
from sink_job.api.field_types import OF_NO_TOPIC

if TYPE_CHECKING:
    from sink_job.api.spec import Spec

_S3: Final[Path] = ("spec", "s3")
_DELIMITER: Final[Path] = (*_S3, "directoryDelimiter")
_PREFIXES: Final[Path] = (*_S3, "prefixes")
_IN_PATH: Final[Path] = (*_S3, "topicInPath")
_TOPICS: Final[Path] = ("spec", "kafka", "topics")
_DEAD_LETTERS: Final[Path] = ("spec", "errors", "deadLetters", "prefix")


def check_names(spec: Spec) -> Iterator[FieldError]:
    """The errors of the two fields and of what depends on them."""
    names = spec.s3
    if names.has_plain_names:
        return
    yield from _entries(spec)
    delimiter = names.directory_delimiter
    field = _PREFIXES if names.prefixes else _IN_PATH
    if re.search(OF_NO_TOPIC, delimiter) is None:
        message = (
            f"cannot be combined with spec.s3.directoryDelimiter {shown(_DELIMITER, delimiter)}, which may be a part "
            "of a topic: two topics could have the same key; use a delimiter with another character, such as /"
        )
        yield FieldError(field, message, (_DELIMITER,))
    if not names.topics_dir and spec.errors.dead_letters.prefix is not None:
        message = (
            "cannot be combined with spec.errors.deadLetters.prefix if spec.s3.topicsDir is empty: readers of the "
            "objects would read rejected records; set spec.s3.topicsDir"
        )
        yield FieldError(field, message, ((*_S3, "topicsDir"), _DEAD_LETTERS))


def _entries(spec: Spec) -> Iterator[FieldError]:
    delimiter, topics = spec.s3.directory_delimiter, spec.kafka.topics
    done: set[tuple[str | None, str | None]] = set()
    for at, each in enumerate(spec.s3.prefixes):
        here: Path = (*_PREFIXES, at)
        if (each.topic is None) == (each.pattern is None):
            yield FieldError(here, "needs either topic or pattern: set one of them")
        elif (each.topic, each.pattern) in done:
            yield FieldError(here, f"{each.topic or each.pattern} has an earlier entry, which applies: remove one")
        elif each.topic is not None and topics is not None and each.topic not in topics:
            message = f"{each.topic} is not in spec.kafka.topics: add it there, or remove the entry"
            yield FieldError((*here, "topic"), message, (_TOPICS,))
        done.add((each.topic, each.pattern))
        if delimiter != "/" and (each.prefix.startswith(delimiter) or each.prefix.endswith(delimiter)):
            message = (
                f"{shown((*here, 'prefix'), each.prefix)} starts or ends with spec.s3.directoryDelimiter: remove it"
            )
            yield FieldError((*here, "prefix"), message, (_DELIMITER,))
