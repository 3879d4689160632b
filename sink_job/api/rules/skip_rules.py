"""Rules for `spec.errors.skip`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from sink_job.api.field_errors import FieldError, Path

if TYPE_CHECKING:
    from sink_job.api.spec import Spec

_SKIP: Final[Path] = ("spec", "errors", "skip")


def check_skip(spec: Spec) -> Iterator[FieldError]:
    """Each record is listed once. A record of a topic that the sink does not read has no effect, and is reported while
    the sink runs: an edit of the topics does not have to be one of this list, too."""
    for record, count in Counter(map(str, spec.errors.skip)).items():
        if count > 1:
            yield FieldError(_SKIP, f"{record} is listed {count} times")
