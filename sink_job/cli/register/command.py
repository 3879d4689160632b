"""`s3sink register`: adds published objects to the Iceberg tables of `spec.tables`."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sink_job.api.errors import InvalidSpec, SinkError
from sink_job.cli.common import add_output, add_sink, failure_message, read_sink, report_failure, secret_dirs

if TYPE_CHECKING:
    from sink_job.api.spec import Sink
    from sink_job.tables.plan import Request
    from sink_job.tables.registrations.topic_table import RegistrationOutcome

ACCEPTED = ("TableReplaced", "TableRolledBack", "TablePositionMissing", "TablePositionLower")

DESCRIPTION = """\
Adds the published objects of SINK.yaml to its tables (spec.tables), each once.
Only metadata is written: objects are neither read, but for their footers or
headers, nor changed. Tables in the catalogs GluePartitions and HivePartitions get the
directories of the objects as partitions. The sink may be running, and several commands at once do no harm.

A table has the position of the sink: the record of the ledger up to which it has
all objects. The command continues there. A table that has none gets all objects
that the sink has published with --from-beginning, and is created if it does not
exist. After an offset reset with NewPrefix these are the objects since then.

A table that was dropped, replaced, rolled back or restored by another program stops
the command with a reason. --accept REASON accepts the change; the
error says what happens then.
"""

EXIT_CODES = """\
exit codes:
   0  all objects that were published when the command began are in the tables
   7  configuration error: for example an object that is missing, columns that do
      not fit, a changed table, no ledger; other tables were registered
  75  transient error: the catalog or S3 did not answer; run the command again
   1, 2  as for s3sink run: unexpected error, invalid manifest or command line
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "register",
        help="add published objects to the Iceberg tables of spec.tables",
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_sink(parser)
    parser.add_argument(
        "--table", metavar="NAME", action="append", default=[], dest="tables", help="only this table; repeatable"
    )
    parser.add_argument("--dry-run", action="store_true", help="show the first commit of each table, and write nothing")
    parser.add_argument(
        "--from-beginning",
        action="store_true",
        help="add everything that the sink has published to tables without a position, and skipped objects that exist "
        "again to the others",
    )
    parser.add_argument(
        "--accept",
        action="append",
        default=[],
        choices=ACCEPTED,
        metavar="REASON",
        help=f"accept a change of a table: {', '.join(ACCEPTED)}; repeatable",
    )
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Registers the tables one after the other; returns 0, or the highest exit code of an error. An error of one table
    does not keep the others from being registered."""
    sink = read_sink(args.manifest)
    if not sink.spec.tables:
        raise InvalidSpec(["spec.tables is missing: it names the catalog and the tables"])
    secrets = secret_dirs(args, sink)

    from sink_job.cli.register import output
    from sink_job.driver import logs
    from sink_job.tables.plan import Acceptance, Request

    logs.set_up(args.log)
    request = Request(args.from_beginning, frozenset(Acceptance(each) for each in args.accept))
    results = list(_registered(sink, secrets, request, args))
    if args.output == "json":
        print(output.as_json(sink.sink_id, results))
    else:
        for outcome, error in results:
            if error is None:
                print(output.as_text(outcome, dry_run=args.dry_run, accepts=bool(args.accept)))
    codes = [0]
    for outcome, error in results:
        if error is not None:
            codes.append(report_failure(_named(error, outcome.table), debug=args.debug, as_json=args.log == "json"))
    return max(codes)


def _registered(
    sink: Sink, secrets: Mapping[str, Path], request: Request, args: argparse.Namespace
) -> Iterator[tuple[RegistrationOutcome, SinkError | None]]:
    """The outcome of each table, and its error."""
    from sink_job.driver.secret_registry import SECRETS
    from sink_job.tables.catalog.access import CatalogSecrets
    from sink_job.tables.hive_tables.choice import registration_in
    from sink_job.tables.registrations.topic_table import RegistrationOutcome
    from sink_job.tables.sink_tables import open_tables

    opened = open_tables(sink, CatalogSecrets(secrets, SECRETS.hide), creates_nothing=args.dry_run)
    for catalog, name, topic in opened.tables(args.tables):
        try:
            target = opened.target(name, topic, time.sleep)
            registration = registration_in(catalog, opened.s3, opened.root, target)
            yield registration.run(request, dry_run=args.dry_run), None
        except InvalidSpec:
            raise
        except SinkError as error:
            yield RegistrationOutcome(name, topic), error


def _named(error: SinkError, table: str) -> SinkError:
    """The error with the name of the table."""
    named = type(error)(f"table {table}: {failure_message(error).removeprefix(f'table {table}: ')}")
    return named.with_traceback(error.__traceback__)
