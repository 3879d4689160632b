"""The text of `s3sink run --from-connector --dry-run`: a table, and what to do about what prevents a start."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from sink_job.api.spec import Sink
from sink_job.maintenance.position.cases import Case, FoundObject, PartitionPosition
from sink_job.maintenance.position.finder import ConnectorPosition
from sink_job.migrate.inputs.worker_rest import connector_url, stop_command

MAX_COMMANDS = 20
"""Maximum number of objects of a topic-partition for which commands are printed."""

PLACE = "previous-writer"
"""Directory of the bucket to which the commands move objects."""

ASIDE = "OFFSET"
"""In a command: an offset that only the user knows."""

CLIENT_PROPERTIES = "client.properties"
"""In a command: the user's file with the login of Kafka's own commands."""


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
        if not each.case.starts and not position.members:  # a connector commits its offsets when it stops
            yield from _ways_out(sink, each)
    uploads = sum(each.facts.uploads for each in position.partitions)
    if position.unchecked:
        yield (
            "Not checked: whether all records before the committed offsets are in objects "
            f"({position.unchecked}). Check that kafka.groupId is the connector's group"
        )
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
    name = quote(group.removeprefix("connect-"), safe="")
    unknown = f"curl -X PUT 'http://HOST:8083/connectors/{name}/stop'"
    yield "The connector is still running. Stop it, or start with --stop-connector URL:"
    yield f"  {unknown if stop_url is None else stop_command(connector_url(stop_url))}"


def _ways_out(sink: Sink, each: PartitionPosition) -> Iterator[str]:
    """What to do about a topic-partition that cannot start, as commands."""
    if each.case is Case.AHEAD_OF_OBJECTS:
        yield from _ways_out_ahead(sink, each)
        return
    if each.uncovered is not None:
        yield "  either set the offset back, and run this again, which then compares the later objects:"
        yield f"    {_set_offset(sink, each, str(each.uncovered))}"
        yield f"  or leave these records out of all objects; {ASIDE} is the first offset behind the newest object:"
        yield f"    {_set_offset(sink, each, ASIDE)}"
        return
    if each.connectors:
        yield "  if one of these groups is the connector's, set kafka.groupId to it; else set the offset:"
    elif each.can_start_at_objects:
        yield "  start with --start-at-objects, or set the offset:"
    elif each.case is Case.FORGOTTEN or each.case is Case.AHEAD:
        yield f"  set the offset; {ASIDE} is the first offset that is in no object:"
    else:
        objects = each.facts.beyond
        yield f"  either move away {len(objects):,} objects, whose records are then read from Kafka:"
        yield from _moves(sink, objects)
        yield f"  or keep them and set the offset behind them; {ASIDE} is the first offset that is in no object:"
    at = ASIDE if each.after_objects is None or each.case is Case.AHEAD else str(each.after_objects)
    yield f"    {_set_offset(sink, each, at)}"


def _ways_out_ahead(sink: Sink, each: PartitionPosition) -> Iterator[str]:
    at = ASIDE if each.uncovered is None else str(each.uncovered)
    unknown = f"; {ASIDE} is the first offset that is in no object" if each.uncovered is None else ""
    yield "  if the group and the place of the objects are right, either set the offset back: the records are read from"
    yield f"  Kafka{unknown}:"
    yield f"    {_set_offset(sink, each, at)}"
    if beyond := each.facts.beyond:
        yield f"  or leave these records out of all objects: move away {len(beyond):,} objects behind the offset, and"
        yield "  start at the committed offsets, without a comparison:"
        yield from _moves(sink, beyond)
    else:
        yield "  or leave these records out of all objects: start at the committed offsets, without a comparison:"
    yield "    s3sink run SINK.yaml"


def _moves(sink: Sink, objects: Sequence[FoundObject]) -> Iterator[str]:
    for found in objects[:MAX_COMMANDS]:
        yield f"    {_move(sink, found.key)}"
    if len(objects) > MAX_COMMANDS:
        yield f"    … and {len(objects) - MAX_COMMANDS:,} more"


def _move(sink: Sink, key: str) -> str:
    bucket, endpoint = sink.spec.s3.bucket, sink.spec.s3.endpoint
    words = ["aws", "s3", "mv", f"s3://{bucket}/{key}", f"s3://{bucket}/{PLACE}/{key}"]
    return shlex.join([*words, "--endpoint-url", endpoint] if endpoint else words)


def _set_offset(sink: Sink, each: PartitionPosition, at: str) -> str:
    words = ["kafka-consumer-groups.sh", "--bootstrap-server", sink.spec.kafka.bootstrap_servers]
    if sink.spec.kafka.login is not None or "security.protocol" in sink.spec.kafka.properties:
        words += ["--command-config", CLIENT_PROPERTIES]
    words += ["--group", sink.group_id, "--topic", f"{each.tp.topic}:{each.tp.partition}"]
    return shlex.join([*words, "--reset-offsets", "--to-offset", at, "--execute"])


def _result(position: ConnectorPosition) -> str:
    if position.members:
        return (
            "The sink would not start: the group has active members. A connector commits its offsets when it stops: "
            "run this again then. Nothing was changed."
        )
    if rejected := position.rejected:
        return f"The sink would not start: {len(rejected):,} topic-partitions need a decision. Nothing was changed."
    return "The sink would start. Nothing was changed."
