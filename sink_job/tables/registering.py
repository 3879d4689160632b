"""What a driver does for tables beside its rounds: it registers objects, and takes the field ids of tables for new
topics. PyIceberg is imported only by sinks with `spec.tables`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, Protocol

from sink_job.api.enums import CatalogType, OutputFormat
from sink_job.api.errors import ConfigurationError
from sink_job.api.report import TableReport
from sink_job.api.spec import Sink
from sink_job.coordinator.context import StopCondition
from sink_job.coordinator.progress import Progress
from sink_job.s3 import S3Client, S3Settings
from sink_job.tables.catalog.access import CatalogSecrets

if TYPE_CHECKING:
    from sink_job.tables.registrar import DriverProgress, Registrar

PARTITION_CATALOGS: Final = frozenset({CatalogType.GLUE_PARTITIONS, CatalogType.HIVE_PARTITIONS})
"""Catalogs of tables of Hive's kind, which have no field ids."""


def check_installed(sink: Sink) -> None:
    """Raises ConfigurationError if the sink has tables and PyIceberg is not installed."""
    if sink.spec.tables and find_spec("pyiceberg") is None:
        raise ConfigurationError(
            'spec.tables needs PyIceberg, which is not installed: pip install "s3sink[job,tables]"'
        )


def registering(
    sink: Sink,
    settings: S3Settings,
    s3: S3Client,
    progress: Progress,
    clock: Callable[[], int],
    redact: Callable[[str], str],
    secrets: CatalogSecrets | None = None,
    held: HeldTopics | None = None,
) -> AbstractContextManager[Registrar | None]:
    """Registers the tables of the sink while the context is active, see `Registrar`. Nothing for a sink without any.
    `secrets` are those of the catalogs, `held` are the topics that wait for a catalog, which are reported, too."""
    if not sink.spec.tables:
        return nullcontext()
    from sink_job.tables.field_ids.reported_topics import with_waiting
    from sink_job.tables.registrar import Registrar

    reported: DriverProgress = progress if held is None else with_waiting(progress, held.reports)
    return Registrar(sink, settings, s3, reported, clock=clock, redact=redact, secrets=secrets)


class HeldTopics(Protocol):
    """Topics that are not read yet, see `WaitingTopics`."""

    def held(self, topics: Collection[str]) -> Collection[str]: ...
    def reports(self) -> list[TableReport]: ...


class NoTopics:
    """No topic waits for a catalog."""

    def held(self, topics: Collection[str]) -> Collection[str]:
        return ()

    def reports(self) -> list[TableReport]:
        return []


def holding_topics(
    sink: Sink,
    settings: S3Settings,
    s3: S3Client,
    redact: Callable[[str], str],
    secrets: CatalogSecrets,
    goal: StopCondition,
) -> AbstractContextManager[HeldTopics]:
    """Holds new topics of the sink until they have the field ids of their tables, while the context is active.
    `goal`: a run with an end of its own ends with the error of a catalog, and one that reads no records asks none."""
    has_ids = any(each.catalog.type not in PARTITION_CATALOGS for each in sink.spec.tables)
    reads = goal.until_caught_up or not goal.publish_open
    if not has_ids or not reads or sink.spec.format.output is not OutputFormat.PARQUET:
        return nullcontext(NoTopics())
    from sink_job.tables.field_ids.waiting_topics import waiting_topics

    return waiting_topics(sink, settings, s3, redact, secrets, ends=goal.ends)
