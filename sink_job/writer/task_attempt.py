"""One attempt of one Spark task: the settings, the S3 client and the staging objects that its topic-partitions
share."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from sink_job.api import memory_budget
from sink_job.api.enums import OnNullValue, Tolerance
from sink_job.api.sections.job_sections import ErrorsSpec
from sink_job.api.spec import ObjectSettings
from sink_job.engine.container_memory import keep_freed_memory, memory_limit, release_free_memory
from sink_job.ledger.schemas.field_ids import LedgerFieldIds
from sink_job.ledger.schemas.object_schemas import ObjectSchemas
from sink_job.ledger.schemas.schema_store import schemas_root
from sink_job.ledger.schemas.schema_table import LedgerSchemas
from sink_job.ledger.staging import StagingReader, StagingWriter, new_prefix
from sink_job.s3 import connect
from sink_job.tasks.parameters import RoundParameters
from sink_job.writer.record_pipeline import RecordPipeline
from sink_job.writer.schema_stores import SchemaStores


class TaskAttempt:
    """One attempt of one task. It stages the remainders when it ends, before it returns a result. A failed attempt
    leaves at most a staging object that no record references; the clean-up deletes it."""

    def __init__(self, settings: RoundParameters) -> None:
        self.object_settings, pipeline = parsed_object_settings(settings)
        self.settings = fit_container(settings, memory_limit(), self.object_settings)
        _release_after_shrink(self.settings.budget)
        if self.object_settings.format.output.has_datums:
            keep_freed_memory()
        self.s3 = connect(settings.s3)
        schemas = LedgerSchemas(self.s3, schemas_root(settings.root, settings.generation), settings.schemas)
        self.pipeline = pipeline.with_stores(
            SchemaStores(schemas, ObjectSchemas(self.s3, settings.root), LedgerFieldIds(self.s3, settings.root))
        )
        self.staging = StagingWriter(self.s3, new_prefix(settings.root, settings.epoch, settings.round))
        self.staged = StagingReader(self.s3)
        self._reported = self.s3.meter.snapshot()
        self._promised = 0

    def request_counts(self) -> tuple[dict[str, int], int]:
        """Requests to the store since the last call, by kind, and how many of them were retries.

        The put of the pending staging object is included: it is sent after the last result was returned.
        """
        now, promised = self.s3.meter.snapshot(), int(self.staging.waiting)
        used = now - self._reported
        requests = dict(used.requests)
        if promised != self._promised:
            requests["PutObject"] = requests.get("PutObject", 0) + promised - self._promised
        self._reported, self._promised = now, promised
        return requests, sum(used.retries.values())

    def close(self) -> None:
        """Stages the remainders. Raises the errors of the store."""
        self.staging.flush()


def fit_container(settings: RoundParameters, limit: int | None, object_settings: ObjectSettings) -> RoundParameters:
    """The parameters with the budget of a task in a container with `limit` bytes, if that is less than `memory`.

    Containers are resized one after the other. The task has to fit into its own.
    """
    if settings.slots is None or limit is None or limit >= settings.memory:
        return settings
    part_size, encoding = object_settings.s3.part_size, memory_budget.encoding_memory(object_settings.format)
    total = max(limit, memory_budget.min_total(cores=settings.slots, part_size=part_size, encoding=encoding))
    fitting = memory_budget.divide(total, cores=settings.slots, part_size=part_size, encoding=encoding)
    return replace(settings, memory=limit, budget=fitting.budget, part_buffers=fitting.part_buffers)


_last_budget = 0


def _release_after_shrink(budget: int) -> None:
    """Releases the memory of earlier tasks of this process if they had a larger budget."""
    global _last_budget
    if budget < _last_budget:
        release_free_memory()
    _last_budget = budget


def parsed_object_settings(settings: RoundParameters) -> tuple[ObjectSettings, RecordPipeline]:
    """The settings that shape bytes and keys, and their pipeline; parsed once per process."""
    return _shaped(settings.settings_json, settings.tolerant, settings.on_null)


@cache
def _shaped(object_settings: str, tolerant: bool, on_null: OnNullValue) -> tuple[ObjectSettings, RecordPipeline]:
    settings = ObjectSettings.model_validate_json(object_settings)
    errors = ErrorsSpec(tolerance=Tolerance.ALL if tolerant else Tolerance.NONE, on_null_value=on_null)
    return settings, RecordPipeline.of(settings, errors)
