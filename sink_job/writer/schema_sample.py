"""The sample of records from which the schema of a topic is inferred (`format.inference: Once`, ADR 31).

A task that meets a JSON object in a topic without a schema ends its range there, and observes the values from there to
the end of the range that it was to read: at most `MAX_RECORDS` values and `MAX_BYTES`. The driver merges what the tasks
of the round have observed.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import pyarrow as pa

from sink_job.api.sections.schema_section import INFERRED_ID
from sink_job.connect.limits import deeper
from sink_job.json.typed.inference import SampledValues

MAX_RECORDS: Final = 10_000
"""Maximum number of values of a topic-partition in the sample, without tombstones."""

MAX_BYTES: Final = 16 * 1024**2
"""The sample of a topic-partition ends with the value at which its values reach this size."""


class SchemaSample:
    """The sample of one topic-partition. `observed` is None as long as no schema is to be inferred."""

    def __init__(self) -> None:
        self.observed: SampledValues | None = None
        self._records = self._bytes = 0

    @property
    def is_open(self) -> bool:
        """Whether a schema is to be inferred, from more values than those so far."""
        return self.observed is not None and not self._is_full()

    def add(self, values: pa.BinaryArray, unresolved: Collection[str]) -> None:
        """Adds the values of the next records of the range. `unresolved` are the schema ids in the range that the
        driver has not resolved; without that of an inferred schema, there is nothing to infer."""
        if INFERRED_ID not in unresolved or self._is_full():
            return
        self.observed = self.observed or SampledValues()
        with deeper():
            for value in values:
                if value.is_valid and not self._is_full():
                    self._add(self.observed, value.as_py())

    def _add(self, observed: SampledValues, value: bytes) -> None:
        self._records += 1
        self._bytes += len(value)
        from sink_job.json.typed.converter import json_object

        found = json_object(value)
        if found is not None:
            observed.add(found)

    def _is_full(self) -> bool:
        return self._records >= MAX_RECORDS or self._bytes >= MAX_BYTES
