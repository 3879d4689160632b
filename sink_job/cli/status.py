"""`s3sink status`: shows the progress of a sink, from ledger and Kafka or from a running job's `/report`. Read-only."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sink_job.api.enums import SchemaInference
from sink_job.api.errors import InvalidSpec, SinkError, TransientError
from sink_job.cli.common import EXIT_CODES, OUTPUT_HELP, add_sink, read_sink, secret_dirs
from sink_job.driver.secret_registry import SECRETS

if TYPE_CHECKING:
    from sink_job.api.report import Report
    from sink_job.api.spec import Sink
    from sink_job.api.topic_partition import TopicPartition
    from sink_job.cli.status_output import StatusSummary
    from sink_job.json.typed.field_list import FieldType
    from sink_job.ledger.state import LedgerState
    from sink_job.ledger.store import Ledger

KAFKA_TIMEOUT_MS = 15_000

DESCRIPTION = """\
Shows for each topic-partition of SINK.yaml the committed offset (the first
offset that is not in a visible object), the log end offset, the lag, and open
objects. The data comes from the ledger in S3 and from Kafka; the sink may be
running or not. With --from, the data comes from the running job. The inferred
schemas (spec.format.inference: Once) follow, in the form of
spec.format.schema.text; not with --from.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "status",
        help="show committed offsets, lag and open objects",
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_sink(parser)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help=OUTPUT_HELP)
    parser.add_argument(
        "--from",
        metavar="URL",
        dest="source",
        help="query the running job at URL (see s3sink run --http) instead of ledger and Kafka",
    )


def run(args: argparse.Namespace) -> int:
    """Prints the status; returns 0, also if Kafka does not respond."""
    sink = read_sink(args.manifest)

    from sink_job.cli import status_output

    secrets = secret_dirs(args, sink)
    found = status_output.of_report(_fetch(args.source, sink)) if args.source else _of_ledger(sink, secrets)
    print(status_output.as_json(found) if args.output == "json" else status_output.as_table(found))
    return 0


def _of_ledger(sink: Sink, secrets: Mapping[str, Path]) -> StatusSummary:
    from sink_job.api.topic_partition import TopicPartition
    from sink_job.cli import status_output
    from sink_job.driver.standalone_admin import admin
    from sink_job.kafka.properties import KafkaProperties
    from sink_job.ledger.ownership import recreated_topics

    properties = KafkaProperties.of(sink.spec.kafka, secrets)
    ledger = _ledger(sink, secrets)
    state = ledger.load()
    schemas = _inferred(sink, ledger, state)

    def status(
        state: LedgerState,
        ends: Mapping[TopicPartition, int],
        group: Mapping[TopicPartition, int],
        unknown: str | None = None,
        recreated: Collection[str] = (),
    ) -> StatusSummary:
        return status_output.of_ledger(
            sink,
            state,
            ends=ends,
            group=group,
            unknown=unknown,
            now=time.time_ns() // 1_000_000,
            schemas=schemas,
            recreated=recreated,
        )

    if not state.partitions:
        return status(state, {}, {})
    try:
        committed = sink.spec.kafka.isolation_level == "ReadCommitted"
        with admin(properties, timeout_ms=KAFKA_TIMEOUT_MS, connect_timeout_s=0) as kafka:

            def read() -> StatusSummary:
                state = ledger.load()
                tps = [TopicPartition.parse(name) for name in state.partitions]
                ends = kafka.end_offsets(tps, committed=committed)
                ids = {name: topic.id for name, topic in kafka.topics(sorted({tp.topic for tp in tps})).items()}
                recreated = recreated_topics(state.kafka, ids)
                return status(state, ends, kafka.group_offsets(sink.group_id, tps), recreated=recreated)

            return status_output.settled(read)
    except SinkError as error:
        unknown = SECRETS(str(error))
        print(f"s3sink: Kafka is unavailable, showing the ledger only: {unknown}", file=sys.stderr)
        return status(state, {}, {}, unknown)


def _inferred(sink: Sink, ledger: Ledger, state: LedgerState) -> dict[str, tuple[FieldType, ...]] | None:
    """The inferred schemas in the ledger, by topic; None for a sink without inference."""
    if sink.spec.format.inference is not SchemaInference.ONCE:
        return None
    from sink_job.api.sections.schema_section import INFERRED_ID
    from sink_job.api.topic_partition import TopicPartition
    from sink_job.json.typed.field_list import parse_fields
    from sink_job.ledger.schemas.schema_store import SchemaStore, schemas_root

    store = SchemaStore(ledger.s3, schemas_root(ledger.root, state.generation))
    topics = sorted({TopicPartition.parse(name).topic for name in state.partitions})
    found = ((topic, store.get(topic, INFERRED_ID)) for topic in topics)
    return {topic: parse_fields(schema.text) for topic, schema in found if schema is not None}


def _ledger(sink: Sink, secrets: Mapping[str, Path]) -> Ledger:
    from sink_job.ledger.first_claim.ledger_place import ledger_root
    from sink_job.ledger.store import Ledger
    from sink_job.s3 import S3Settings, connect

    s3 = connect(S3Settings.of(sink.spec, secrets))
    root = ledger_root(s3, sink.spec.s3.topics_dir, sink.sink_id)
    return Ledger(s3, root, "")


def _fetch(url: str, sink: Sink) -> Report:
    """The report of the job at `url`. Raises InvalidSpec for a job of another sink, TransientError without a report."""
    from http.client import HTTPException
    from urllib.request import urlopen

    from sink_job.api.report import Report

    where = _report_url(url)
    try:
        with urlopen(where, timeout=10) as response:
            content = response.read()
    except (OSError, HTTPException) as error:
        raise TransientError(f"cannot read the report at {where}: {getattr(error, 'reason', error)}") from None
    try:
        report = Report.model_validate_json(content)
    except ValueError:
        raise TransientError(
            f"cannot read the report at {where}: the answer is not a report of a job of this version of s3sink"
        ) from None
    if report.sink_id != sink.sink_id:
        raise InvalidSpec(
            [f"--from: the job at {url} runs the sink {report.sink_id}, but the manifest is for {sink.sink_id}"]
        )
    return report


def _report_url(url: str) -> str:
    """The URL of the report: `/report` unless `url` has a path. Raises InvalidSpec."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url if "//" in url else f"http://{url}")
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise InvalidSpec([f"--from: {url} is not an HTTP URL"])
    return (parts._replace(path="/report") if parts.path in ("", "/") else parts).geturl()
