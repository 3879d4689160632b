"""The registration of tables beside the rounds of a driver. PyIceberg is imported only by sinks with `spec.tables`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from importlib.util import find_spec
from typing import TYPE_CHECKING

from sink_job.api.errors import ConfigurationError
from sink_job.api.spec import Sink
from sink_job.coordinator.progress import Progress
from sink_job.s3 import S3Client, S3Settings
from sink_job.tables.catalog.access import CatalogSecrets

if TYPE_CHECKING:
    from sink_job.tables.registrar import Registrar


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
) -> AbstractContextManager[Registrar | None]:
    """Registers the tables of the sink while the context is active, see `Registrar`. Nothing for a sink without any.
    `secrets` are those of the catalogs."""
    if not sink.spec.tables:
        return nullcontext()
    from sink_job.tables.registrar import Registrar

    return Registrar(sink, settings, s3, progress, clock=clock, redact=redact, secrets=secrets)
