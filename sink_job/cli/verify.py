"""`s3sink verify`: proves that every record up to the committed offset is in exactly one object. Changes nothing."""

from __future__ import annotations

import argparse
import logging
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from sink_job.cli.common import add_sink, read_sink, secret_dirs

if TYPE_CHECKING:
    from sink_job.api.spec import Sink
    from sink_job.cli.verify_output import VerifyReport
    from sink_job.engine.types import Engine
    from sink_job.kafka.admin import JavaKafkaAdmin
    from sink_job.kafka.properties import KafkaProperties
    from sink_job.verify.evidence import ReportProgress

DESCRIPTION = """\
Proves from the ledger's lists, the bucket and Kafka's own offsets that every
record of SINK.yaml up to the committed offset is in exactly one object: no gap,
no overlap, sizes and checksums as recorded. The sink may be running. Prints a
line for each topic-partition to standard output, then what is wrong, each with
its offset, the first one first.

GAPS are offsets without a record of ours: control records, aborted and
compacted records, refused and ignored ones, and what onDataLoss: Continue gave
up. Without --deep the records in objects and holes are those that the ledger
counted when it wrote them; with --deep each object's records are compared with
Kafka's, byte by byte. Objects of which Kafka no longer holds every record are
counted (EXPIRED), and are not wrong.

An object beside those of the sink is wrong when its key says that it holds
records of the sink (whatever padding, compression or partition it names), or
when its content is that of an object of the sink. Objects from before the sink
began, of other sinks and of other formats are notes.
"""

EXIT_CODES = """\
exit codes:
   0  right
   5  wrong, records are missing: an object is gone, offsets are in no object,
      the group's offset is ahead of the objects, Kafka's log ends before it
   6  wrong, but nothing is missing: an object has other content, offsets are
      in two objects, an object that no list names, a record that differs
   7  configuration or credentials; no ledger
   1, 2, 75  as of s3sink run: another error, a wrong manifest or command
      line, worth trying again
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "verify",
        help="prove that every record is in exactly one object",
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_sink(parser)
    parser.add_argument(
        "--deep", action="store_true", help="read the objects, and compare each record with what Kafka still holds"
    )
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="default: table")


def run(args: argparse.Namespace) -> int:
    """Prints what is proved and what is wrong; returns 0, or the exit code of what is wrong."""
    sink = read_sink(args.manifest)
    secrets = secret_dirs(args, sink)

    from sink_job.cli import verify_output

    found = _verify(sink, secrets, deep=args.deep)
    if args.output == "json":
        print(verify_output.as_json(found))
    else:
        verify_output.show(found)
    return verify_output.exit_code(found)


def _verify(sink: Sink, secrets: Mapping[str, Path], *, deep: bool) -> VerifyReport:
    from sink_job.cli.verify_output import VerifyReport
    from sink_job.driver import logs
    from sink_job.kafka.properties import KafkaProperties
    from sink_job.s3 import S3Settings, connect
    from sink_job.verify.evidence import collect_evidence

    logs.set_up("text")
    settings = S3Settings.of(sink.spec.s3, secrets)
    properties = KafkaProperties.of(sink.spec.kafka, secrets)
    s3 = connect(settings)
    s3.check_access()
    with _telling() as tell, _kafka(sink, properties, deep=deep) as (admin, engine):
        evidence = collect_evidence(sink, s3, admin, tell)
        verdicts = evidence.results()
        if engine is not None:
            from sink_job.verify.compare_job import CompareContext, compare

            verdicts = compare(
                evidence, verdicts, CompareContext(s3=settings, admin=admin, engine=engine), sink.spec.errors, tell
            )
    return VerifyReport(
        sink_id=sink.sink_id,
        bucket=settings.bucket,
        record=evidence.current.state.number,
        foreign=evidence.foreign,
        notes=evidence.notes,
        partitions=tuple(verdicts),
    )


@contextmanager
def _kafka(sink: Sink, properties: KafkaProperties, *, deep: bool) -> Iterator[tuple[JavaKafkaAdmin, Engine | None]]:
    """Kafka's admin client, and with `deep` Spark to read records with; both end at the end."""
    if not deep:
        from sink_job.driver.standalone_admin import admin

        with admin(properties) as client:
            yield client, None
        return
    from sink_job.driver.run import usual_cores
    from sink_job.kafka.admin import JavaKafkaAdmin
    from sink_job.spark.conf import SparkSettings
    from sink_job.spark.engine import SparkEngine
    from sink_job.spark.jars import connector_jars
    from sink_job.spark.session import session

    cores = usual_cores()
    settings = SparkSettings(
        app_name=f"s3sink-verify-{sink.sink_id}", jars=connector_jars(), cores=cores, conf=sink.spec.spark_conf
    )
    with _quiet_end(), session(settings) as spark, JavaKafkaAdmin(spark.sparkContext._gateway, properties) as client:
        group = f"{sink.group_id}-verify"
        yield client, SparkEngine(spark, properties.client(), group_id=group, redact=properties.redact, cores=cores)


@contextmanager
def _quiet_end() -> Iterator[None]:
    """Ctrl-C ends it without the tracebacks that py4j logs when it is interrupted."""

    def stop(number: int, frame: FrameType | None) -> None:
        logging.disable(logging.CRITICAL)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _telling() -> Iterator[ReportProgress]:
    """What is being done, for people who wait: one line that changes on a terminal, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda line: None
        return
    from rich.console import Console

    with Console(stderr=True).status("connecting") as status:
        yield status.update
