"""Deliberate defects of records without a value, as in `devtools.simulation.mutations`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from sink_job.records.batch import REJECTED, Rows
from sink_job.writer import row_selection

Patches = Sequence[AbstractContextManager[Any]]


def nulls_not_rebuilt() -> Patches:
    """A rebuild selects records by their own schema, which those without a value do not have."""
    original = row_selection.select_rows

    def select_rows(objects: Any, rows: Rows, clock: int) -> Any:
        if rows.nulls is not None and rows.schemas is not None:
            codes = rows.codes.copy()
            codes[rows.schemas < 0] = REJECTED
            rows = replace(rows, codes=codes)
        return original(objects, rows, clock)

    return [patch.object(row_selection, "select_rows", select_rows)]


NULL_MUTATIONS: dict[str, Callable[[], Patches]] = {each.__name__: each for each in (nulls_not_rebuilt,)}
