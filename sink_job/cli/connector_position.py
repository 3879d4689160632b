"""`s3sink run --from-connector`: its arguments, and the table of `--dry-run`."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from sink_job.api.errors import InvalidSpec
from sink_job.driver.secret_registry import SECRETS

if TYPE_CHECKING:
    from sink_job.api.spec import Sink
    from sink_job.maintenance.position.cases import PartitionPosition
    from sink_job.maintenance.position.finder import ConnectorPosition
    from sink_job.maintenance.position.start import FromConnector

MAX_COMMANDS = 20
"""Maximum number of objects of a topic-partition for which commands are printed."""

PLACE = "previous-writer"
"""Directory of the bucket to which the commands move objects."""

ASIDE = "OFFSET"
"""In a command: an offset that only the user knows."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments to `s3sink run`."""
    group = parser.add_argument_group("first start in the place of a Kafka Connect connector (docs/migrating.md)")
    group.add_argument(
        "--from-connector",
        action="store_true",
        help="continue the consumer group of a connector: start behind its newest objects if their records are those "
        "in Kafka. Without effect once the sink has a ledger",
    )
    group.add_argument(
        "--dry-run", action="store_true", help="with --from-connector: print where it would start, and change nothing"
    )
    group.add_argument(
        "--start-at-objects",
        action="store_true",
        help="with --from-connector: topic-partitions of which Kafka has forgotten the group's offset start behind "
        "their newest object",
    )
    group.add_argument(
        "--stop-connector",
        metavar="URL",
        help="with --from-connector: stop this connector first, such as http://HOST:8083/connectors/NAME. With "
        "--dry-run: print the command",
    )


def requested(args: argparse.Namespace) -> FromConnector | None:
    """The request of the arguments. Raises InvalidSpec for contradicting ones, InvalidConnector for a wrong URL."""
    options = {
        "--dry-run": args.dry_run,
        "--start-at-objects": args.start_at_objects,
        "--stop-connector": args.stop_connector,
    }
    if not args.from_connector:
        if alone := [name for name, value in options.items() if value]:
            raise InvalidSpec([f"{alone[0]} needs --from-connector"])
        return None
    others = {
        "--start-new-ledger": args.start_new_ledger,
        "--take-over-from": args.take_over_from is not None,
        "--publish-open without --until-caught-up": args.publish_open and not args.until_caught_up,
    }
    if beside := [name for name, value in others.items() if value]:
        raise InvalidSpec([f"--from-connector and {beside[0]} exclude each other"])
    from sink_job.maintenance.position.start import FromConnector

    if args.stop_connector is not None:
        from sink_job.migrate.inputs.worker_rest import connector_url

        at = connector_url(args.stop_connector)
        SECRETS.hide([at.login, at.login.partition(":")[2]])
    return FromConnector(start_at_objects=args.start_at_objects, stop_url=args.stop_connector)


def dry_run(sink: Sink, secrets: Mapping[str, Path], request: FromConnector) -> int:
    """Prints where the sink would start; returns 0, or 7 if it could not. Raises the errors of Kafka and the store."""
    from sink_job.cli.kafka_access import kafka_access, shown_progress
    from sink_job.driver import logs
    from sink_job.kafka.properties import KafkaProperties
    from sink_job.maintenance.position.finder import find_position
    from sink_job.maintenance.position.start import has_ledger
    from sink_job.s3 import S3Settings, connect

    logs.set_up("text")
    settings = S3Settings.of(sink.spec, secrets, reads_only=True)
    properties = KafkaProperties.of(sink.spec.kafka, secrets)
    s3 = connect(settings)
    s3.check_access()
    if has_ledger(sink, s3):
        print(f"The sink {sink.sink_id} has a ledger: it continues there, and --from-connector has no effect.")
        return 0
    with shown_progress() as progress, kafka_access(sink, properties, "position", reads=True) as (admin, engine):
        assert engine is not None
        position = find_position(
            sink, s3, settings, admin, engine, start_at_objects=request.start_at_objects, report=progress
        )
    print("\n".join(output(sink, position, request.stop_url)))
    return position.exit_code


def output(sink: Sink, position: ConnectorPosition, stop_url: str | None) -> Iterator[str]:
    """The lines of a dry run."""
    rows = [_HEADER, *(_row(each) for each in position.partitions)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEADER))]
    for row in rows:
        cells = [row[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1], strict=True)]
        yield "  ".join([*cells, row[-1]]).rstrip()
    yield ""
    yield f"consumer group {position.group}: {position.members:,} active members"
    if position.members:
        yield from _stop(position.group, stop_url)
    for each in position.partitions:
        for o in each.accepted:
            yield (
                f"{each.tp}: s3://{sink.spec.s3.bucket}/{o.key}: offsets {o.first} to {o.last}, {o.records:,} records, "
                f"equal to Kafka's ({position.comparison})"
            )
        if each.message:
            yield f"{each.tp}: {each.message}"
        if not each.case.starts:
            yield from _ways_out(sink, each)
    uploads = sum(each.facts.uploads for each in position.partitions)
    if uploads:
        yield f"{uploads:,} unfinished uploads at keys of this sink are aborted after the first claim"
    yield _result(position)


_HEADER = ["PARTITION", "COMMITTED", "LOG_START", "LOG_END", "AFTER_OBJECTS", "BEYOND", "UPLOADS", "START", "CASE"]


def _row(each: PartitionPosition) -> list[str]:
    facts = each.facts
    beyond = 0 if facts.committed is None else len(facts.beyond)
    numbers = [facts.committed, facts.begin, facts.end, each.after_objects, beyond, facts.uploads, each.start]
    return [str(each.tp), *("-" if number is None else str(number) for number in numbers), str(each.case)]


def _stop(group: str, stop_url: str | None) -> Iterator[str]:
    from sink_job.migrate.inputs.worker_rest import connector_url, stop_command

    name = quote(group.removeprefix("connect-"), safe="")
    unknown = f"curl -X PUT 'http://HOST:8083/connectors/{name}/stop'"
    yield "The connector is still running. Stop it, or start with --stop-connector URL:"
    yield f"  {unknown if stop_url is None else stop_command(connector_url(stop_url))}"


def _ways_out(sink: Sink, each: PartitionPosition) -> Iterator[str]:
    """What to do about a topic-partition that cannot start, as commands."""
    from sink_job.maintenance.position.cases import Case

    if each.case is Case.FORGOTTEN and each.after_objects is not None:
        yield "  start with --start-at-objects, or set the offset:"
    elif each.case is Case.FORGOTTEN or each.case is Case.AHEAD:
        yield f"  set the offset; {ASIDE} is the first offset that is in no object:"
    else:
        objects = each.facts.beyond
        yield f"  either move away {len(objects):,} objects, whose records are then read from Kafka:"
        for found in objects[:MAX_COMMANDS]:
            yield f"    {_move(sink, found.key)}"
        if len(objects) > MAX_COMMANDS:
            yield f"    … and {len(objects) - MAX_COMMANDS:,} more"
        yield f"  or keep them and set the offset behind them; {ASIDE} is the first offset that is in no object:"
    at = ASIDE if each.after_objects is None or each.case is Case.AHEAD else str(each.after_objects)
    yield f"    {_set_offset(sink, each, at)}"


def _move(sink: Sink, key: str) -> str:
    bucket, endpoint = sink.spec.s3.bucket, sink.spec.s3.endpoint
    words = ["aws", "s3", "mv", f"s3://{bucket}/{key}", f"s3://{bucket}/{PLACE}/{key}"]
    return shlex.join([*words, "--endpoint-url", endpoint] if endpoint else words)


def _set_offset(sink: Sink, each: PartitionPosition, at: str) -> str:
    words = ["kafka-consumer-groups.sh", "--bootstrap-server", sink.spec.kafka.bootstrap_servers]
    words += ["--group", sink.group_id, "--topic", f"{each.tp.topic}:{each.tp.partition}"]
    return shlex.join([*words, "--reset-offsets", "--to-offset", at, "--execute"])


def _result(position: ConnectorPosition) -> str:
    if position.members:
        return "The sink would not start: the group has active members. Nothing was changed."
    if rejected := position.rejected:
        return f"The sink would not start: {len(rejected):,} topic-partitions need a decision. Nothing was changed."
    return "The sink would start. Nothing was changed."
