"""`s3sink repair`: restores missing and damaged objects with the bytes that the ledger records."""

from __future__ import annotations

import argparse
import uuid
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from sink_job.cli.common import add_output, add_removed_before, add_sink, open_ledger_access, read_sink, secret_dirs

if TYPE_CHECKING:
    from sink_job.api.spec import Sink
    from sink_job.maintenance.repair.damage import Suspect
    from sink_job.maintenance.repair.kafka_source import KafkaReader
    from sink_job.maintenance.repair.results import RepairReport
    from sink_job.s3 import S3Settings

DESCRIPTION = """\
Restores the missing, truncated and changed objects of SINK.yaml that s3sink
verify reports, with the same keys and exactly the recorded bytes: from an older
version of the object in a bucket with versioning, else from its records in Kafka.
The sink may be running. Objects that are as recorded are not written.

The bytes of a damaged object are first copied below the ledger's folder, and stay
there until --discard-damaged. Objects that s3.expireAfter or --removed-before
covers are left alone. Where the bytes cannot be restored, the command reports
what is left and what would be lost, and changes nothing at this key. With --accept-loss
it then claims the ledger, which fences and stops a running driver, and records
these objects as lost: verify reports them as lost records, not as damage.
"""

EXIT_CODES = """\
exit codes:
   0  all objects are as recorded, or were restored; with --dry-run: a source was
      found for each damaged object
   5  objects cannot be restored with the recorded bytes, and their loss was not
      accepted
   7  configuration error, no ledger, or a --key that the ledger does not list
   1, 2, 75  as for s3sink run: unexpected error, invalid manifest or command
      line, transient error; repeat the command
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "repair",
        help="restore missing and damaged objects",
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_sink(parser)
    parser.add_argument(
        "--key",
        action="append",
        default=[],
        dest="keys",
        help="repair only the object with this key, or s3://BUCKET/KEY; its whole content is compared with the "
        "recorded checksum; repeatable",
    )
    parser.add_argument("--dry-run", action="store_true", help="show what would be done, and write nothing")
    others = parser.add_mutually_exclusive_group()
    others.add_argument(
        "--discard-damaged",
        action="store_true",
        help="delete the copies of damaged bytes, with --key those of these objects; repairs nothing",
    )
    others.add_argument(
        "--accept-loss",
        action="store_true",
        help="record objects that cannot be restored as lost; claims the ledger for it, and changes nothing at their "
        "keys",
    )
    add_removed_before(parser)
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Prints what was restored; returns 0, or 5 if objects are not restorable. Raises the SinkError that ended the
    command."""
    sink = read_sink(args.manifest)
    args.keys = [key.removeprefix(f"s3://{sink.spec.s3.bucket}/") for key in args.keys]
    secrets = secret_dirs(args, sink)

    from sink_job.cli import repair_output
    from sink_job.driver import logs, termination_message
    from sink_job.s3 import S3Settings

    logs.set_up(args.log)
    settings = S3Settings.of(sink.spec, secrets)
    if args.discard_damaged:
        text, code = _discard(sink, settings, args), 0
    else:
        report = _repair(sink, settings, secrets, args)
        text = repair_output.as_json(report) if args.output == "json" else repair_output.as_text(report)
        code = report.exit_code
        termination_message.write(repair_output.summary(report))
    print(text)
    return code


def _discard(sink: Sink, settings: S3Settings, args: argparse.Namespace) -> str:
    from sink_job.cli import repair_output
    from sink_job.ledger.first_claim.ledger_place import ledger_root
    from sink_job.maintenance.repair.repairer import discard_damaged
    from sink_job.s3 import connect

    s3 = connect(settings)
    s3.check_access()
    root = ledger_root(s3, sink.spec.s3.topics_dir, sink.sink_id)
    copies, size = discard_damaged(s3, root, args.keys, dry_run=args.dry_run)
    return repair_output.discarded(sink.sink_id, copies, size, dry_run=args.dry_run, as_json=args.output == "json")


def _repair(sink: Sink, settings: S3Settings, secrets: Mapping[str, Path], args: argparse.Namespace) -> RepairReport:
    from sink_job.cli.kafka_access import kafka_access, shown_progress
    from sink_job.engine.in_process import InProcessEngine
    from sink_job.kafka.properties import KafkaProperties
    from sink_job.maintenance.repair.accepted_loss import AcceptedLosses, accept_losses
    from sink_job.maintenance.repair.kafka_source import KafkaReader, KafkaSource
    from sink_job.maintenance.repair.repairer import Repairer, RepairRequest
    from sink_job.s3 import connect
    from sink_job.verify.evidence import collect_evidence

    properties = KafkaProperties.of(sink.spec.kafka, secrets)
    s3 = connect(settings)
    s3.check_access()
    with ExitStack() as stack:
        with shown_progress() as progress, ExitStack() as queries:
            admin, _ = queries.enter_context(kafka_access(sink, properties, "repair", reads=False))
            evidence = collect_evidence(sink, s3, admin, progress, removed_before=args.removed_before)
            if args.dry_run:
                stack.push(queries.pop_all())
        opened: list[KafkaReader] = [KafkaReader(admin, InProcessEngine())] if args.dry_run else []

        def reader() -> KafkaReader:
            """Spark is started for the first object that needs Kafka, once."""
            if not opened:
                client, engine = stack.enter_context(kafka_access(sink, properties, "repair", reads=True))
                assert engine is not None
                opened.append(KafkaReader(client, engine))
            return opened[0]

        source = KafkaSource(
            s3=s3, settings=settings, evidence=evidence, errors=sink.spec.errors, now=s3.server_now_ms()
        )

        def accept_loss(lost: Sequence[Suspect]) -> AcceptedLosses:
            return accept_losses(open_ledger_access(sink, secrets), evidence.current.state.generation, lost)

        request = RepairRequest(
            keys=frozenset(args.keys),
            dry_run=args.dry_run,
            accept_loss=accept_loss if args.accept_loss else None,
        )
        repairer = Repairer(s3, source, uuid.uuid4().hex, connect=reader, request=request)
        return repairer.run(sink.sink_id)
