"""The first start of `s3sink run --from-connector`: stops the connector if asked for, waits until its group is empty,
and finds what the first claim records."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Self

from sink_job.api.enums import ObjectsAtStart
from sink_job.api.spec import Sink
from sink_job.engine.kafka_admin import KafkaAdmin
from sink_job.engine.types import Engine
from sink_job.ledger.first_claim.ledger_place import ledger_root
from sink_job.ledger.first_claim.previous_writer import PreviousWriter
from sink_job.ledger.store import Ledger
from sink_job.registry.base import SchemaRegistry
from sink_job.s3 import S3Client, S3Settings

EMPTY_WITHIN_S: Final = 60.0
"""Maximum time in s until the tasks of a stopped connector have left their group."""
_POLL_S: Final = 0.5


@dataclass(frozen=True)
class FromConnector:
    """A first start in the place of a connector. `start_at_objects`: topic-partitions without a committed offset start
    behind their newest object. `stop_url`: the connector to stop before (None: it must be stopped)."""

    start_at_objects: bool = False
    stop_url: str | None = None

    @classmethod
    def of_manifest(cls, sink: Sink, s3: S3Client) -> Self | None:
        """The request of `kafka.existingObjects`; None if there is none, or the sink has a ledger."""
        requested = sink.spec.kafka.existing_objects
        if requested is ObjectsAtStart.REJECT or has_ledger(sink, s3):
            return None
        return cls(start_at_objects=requested is ObjectsAtStart.ACCEPT_NEWEST)


def has_ledger(sink: Sink, s3: S3Client) -> bool:
    """Whether the sink has a ledger: then it continues there."""
    return Ledger(s3, ledger_root(s3, sink.spec.s3.topics_dir, sink.sink_id), "position").exists()


def previous_writer(
    sink: Sink,
    request: FromConnector,
    s3: S3Client,
    s3_settings: S3Settings,
    admin: KafkaAdmin,
    engine: Engine,
    *,
    registry: SchemaRegistry | None = None,
    report: Callable[[str], None],
    stop: threading.Event,
) -> PreviousWriter | None:
    """What the first claim records; None if the sink has a ledger already. `stop` ends the wait for the group.

    Raises InvalidConnector for a connector to stop that is not the sink's, ConfigurationError for active members,
    LedgerLost for topic-partitions that cannot start, and the errors of the worker, Kafka, the store and the engine.
    """
    # Most drivers never compare objects: they import neither readers of Avro and Parquet nor a client of the worker.
    from sink_job.maintenance.position.connector_check import check_connector
    from sink_job.maintenance.position.finder import find_position
    from sink_job.migrate.inputs.worker_rest import stop_connector

    if has_ledger(sink, s3):
        report("the sink has a ledger: it continues there, and --from-connector has no effect")
        return None
    if request.stop_url is not None:
        check_connector(request.stop_url, sink)
        report(stop_connector(request.stop_url))
        wait_until_empty(sink, admin, stop)
    position = find_position(
        sink,
        s3,
        s3_settings,
        admin,
        engine,
        registry=registry,
        start_at_objects=request.start_at_objects,
        report=report,
    )
    previous = position.previous_writer()
    report(position.summary())
    for note in position.notes():
        report(note)
    return previous


def wait_until_empty(sink: Sink, admin: KafkaAdmin, stop: threading.Event, seconds: float = EMPTY_WITHIN_S) -> None:
    """Waits until the group has no members, at most `seconds`."""
    deadline = time.monotonic() + seconds
    while admin.group_members(sink.group_id) and time.monotonic() < deadline and not stop.wait(_POLL_S):
        pass
