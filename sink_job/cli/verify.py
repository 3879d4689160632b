"""`s3sink verify`: verifies that every record up to the committed offset is in exactly one object. Read-only."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sink_job.api.errors import InvalidSpec
from sink_job.cli.common import OUTPUT_HELP, add_removed_before, add_sink, read_sink, secret_dirs

if TYPE_CHECKING:
    from sink_job.api.spec import Sink
    from sink_job.cli.verify_output import VerifyReport

DESCRIPTION = """\
Verifies that every record of SINK.yaml up to the committed offset is in exactly
one object: no missing and no duplicate offsets, sizes and checksums as recorded.
The command compares the audit log of the ledger with the bucket and with Kafka's
offsets. The sink may be running. The output has one line for each
topic-partition, followed by the findings in the order of their offsets.

GAPS is the number of offsets without a copied record: control records, aborted
and compacted records, dropped and ignored records, and records lost with
onDataLoss: Continue. Without --deep, the numbers of records and gaps are those
in the ledger. With --deep, the command compares the records of each object with
Kafka byte by byte. KAFKA_GONE is the number of objects with records that Kafka has
deleted since; they are not an error. REMOVED is the number of objects that are no
longer in the bucket because of a lifecycle rule (s3.expireAfter, or
--removed-before); they are not an error either.

An untracked object is an error if its key denotes records of this sink (with any
padding, compression or partition), or if its content is equal to an object of
this sink. Objects from before the first run, of other sinks and of other formats
are reported as notes.
"""

EXIT_CODES = """\
exit codes:
   0  OK
   5  failed, records are missing: a missing object, missing offsets, a group
      offset ahead of the objects, or a log end before the group offset
   6  failed, no records are missing: an object or record with different
      content, duplicate offsets, or an untracked object
   7  configuration error, or no ledger
   1, 2, 75  as for s3sink run: unexpected error, invalid manifest or command
      line, transient error
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "verify",
        help="verify that every record is in exactly one object",
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_sink(parser)
    parser.add_argument(
        "--deep",
        action="store_true",
        help="read the objects and compare each record with Kafka, if it still exists; with --table, read the rows of "
        "files that the sink has not written, such as those of a compaction",
    )
    parser.add_argument(
        "--table",
        action="store_true",
        help="compare the tables of spec.tables with the ledger, by metadata alone without --deep, instead of the "
        "objects with Kafka",
    )
    add_removed_before(parser)
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help=OUTPUT_HELP)


def run(args: argparse.Namespace) -> int:
    """Prints the results and findings; returns 0, or the exit code of the findings."""
    sink = read_sink(args.manifest)
    secrets = secret_dirs(args, sink)

    if args.table:
        if args.removed_before is not None:
            raise InvalidSpec(["--table cannot be combined with --removed-before: it does not list the bucket"])
        from sink_job.cli.register import audit
        from sink_job.driver import logs

        logs.set_up("text")
        return audit.run(args, sink, secrets)

    from sink_job.cli import verify_output

    found = _verify(sink, secrets, deep=args.deep, removed_before=args.removed_before)
    if args.output == "json":
        print(verify_output.as_json(found))
    else:
        verify_output.show(found)
    return verify_output.exit_code(found)


def _verify(sink: Sink, secrets: Mapping[str, Path], *, deep: bool, removed_before: int | None) -> VerifyReport:
    from sink_job.cli.kafka_access import kafka_access, shown_progress
    from sink_job.cli.verify_output import VerifyReport
    from sink_job.driver import logs
    from sink_job.kafka.properties import KafkaProperties
    from sink_job.s3 import S3Settings, connect
    from sink_job.verify.evidence import collect_evidence

    logs.set_up("text")
    settings = S3Settings.of(sink.spec, secrets, reads_only=True)
    properties = KafkaProperties.of(sink.spec.kafka, secrets)
    s3 = connect(settings)
    s3.check_access()
    with shown_progress() as progress, kafka_access(sink, properties, "verify", reads=deep) as (admin, engine):
        evidence = collect_evidence(sink, s3, admin, progress, removed_before=removed_before)
        results = evidence.results()
        if engine is not None:
            from sink_job.verify.compare_job import CompareContext, compare

            context = CompareContext(s3=settings, admin=admin, engine=engine)
            results = compare(evidence, results, context, sink.spec.errors, progress)
    return VerifyReport(
        sink_id=sink.sink_id,
        bucket=settings.bucket,
        record=evidence.current.state.number,
        foreign=evidence.foreign,
        notes=evidence.notes,
        partitions=tuple(results),
    )
