"""Deliberate defects of the first start after another writer, as in `devtools.simulation.mutations`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any
from unittest.mock import patch

import msgspec

from sink_job.ledger.first_claim import checks
from sink_job.maintenance.position import comparison, finder

Patches = Sequence[AbstractContextManager[Any]]


def previous_objects_not_listed_again() -> Patches:
    """What the previous writer makes visible after the comparison is not noticed."""
    return [patch.object(checks, "check_objects", lambda *_: None)]


def previous_uploads_not_aborted() -> Patches:
    """The unfinished uploads of the previous writer are left, and can be completed at any time."""
    return [patch.object(checks, "abort_uploads", lambda *_: 0)]


def previous_objects_listed_before_the_uploads_are_aborted() -> Patches:
    """The objects are not listed after the uploads were aborted: the first driver to ask believes its claim."""
    calls: list[None] = []
    original = checks.check_objects

    def once_for_each_start(*arguments: Any) -> None:
        calls.append(None)
        if len(calls) % 2:
            original(*arguments)

    return [patch.object(checks, "check_objects", once_for_each_start)]


def starts_at_the_committed_offset() -> Patches:
    """The accepted objects are recorded, and their records are copied again."""

    def at_the_offset(partitions: Any, previous: Any, committed: Any) -> Any:
        return partitions

    return [patch.object(checks, "continued", at_the_offset)]


def records_between_objects_accepted() -> Patches:
    """Objects are accepted without a comparison of their ends: each has one record more than it holds."""
    original = comparison.compare_objects

    def ends_later(*arguments: Any) -> Any:
        found = original(*arguments)
        for tp, result in found.items():
            found[tp] = msgspec.structs.replace(result, ends=[_one_more(each) for each in result.ends])
        return found

    def _one_more(each: Any) -> Any:
        return type(each)(each.key, each.status, each.last + 1, each.records, each.message, each.rows)

    return [patch.object(finder, "compare_objects", ends_later)]


PREVIOUS_WRITER_MUTATIONS: dict[str, Callable[[], Patches]] = {
    each.__name__: each
    for each in (
        previous_objects_not_listed_again,
        previous_uploads_not_aborted,
        previous_objects_listed_before_the_uploads_are_aborted,
        starts_at_the_committed_offset,
        records_between_objects_accepted,
    )
}

PREVIOUS_WRITER_INCLUDE = dict.fromkeys(PREVIOUS_WRITER_MUTATIONS, ("previous-writer",))
"""The features that a run needs to find a defect."""
