"""`s3sink forget-schema`: deletes the ledger's copy of a schema."""

from __future__ import annotations

import argparse

from sink_job.cli.common import (
    EXIT_CODES,
    add_output,
    add_sink,
    add_take_over_from,
    open_ledger_access,
    read_sink,
    secret_dirs,
)

DESCRIPTION = """\
Deletes the copy of a registry's schema in the ledger of SINK.yaml, for example
after a run with a wrong registry. The next run takes the schema from the
registry. The command first claims the ledger, which fences and stops a running
driver, and publishes closed objects. It changes nothing while objects of the
topic are open: they may contain records with the schema.

Objects that were published with the copy keep their content. `s3sink verify
--deep` compares them with what the new schema makes of their records.
"""


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "forget-schema",
        help="delete the ledger's copy of a schema",
        description=DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_sink(parser)
    parser.add_argument("--topic", required=True, help="topic of the records")
    parser.add_argument("--id", required=True, help="schema id: a number or a UUID")
    parser.add_argument("--key", action="store_true", help="the schema is one of keys")
    add_take_over_from(parser)
    add_output(parser)


def run(args: argparse.Namespace) -> int:
    """Prints what was deleted; returns 0. Raises the SinkError that ended the command."""
    sink = read_sink(args.manifest)
    secrets = secret_dirs(args, sink)

    import msgspec

    from sink_job.driver import logs, termination_message
    from sink_job.maintenance.forget_schema import forget_schema

    logs.set_up(args.log)
    access = open_ledger_access(sink, secrets, take_over_from=args.take_over_from)
    found = forget_schema(access, args.topic, args.id, is_key=args.key)
    what = "deleted" if found.existed else "the ledger has no copy:"
    text = f"{sink.sink_id}: {what} {access.ledger.s3.bucket}/{found.key}"
    text += f"; published {found.published:,} closed objects" if found.published else ""
    termination_message.write(text)
    print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode() if args.output == "json" else text)
    return 0
