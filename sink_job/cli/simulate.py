"""`s3sink simulate`: shows which objects given records would produce, without Kafka, S3 and Spark.

It reads steps from a file and prints one line for each write. It uses the record pipeline and the rotator of the job.
An invalid line ends the simulation.
"""

from __future__ import annotations

import argparse
import binascii
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec

from sink_job.api.enums import ConverterType
from sink_job.api.errors import InvalidSpec
from sink_job.api.field_types import check_topic
from sink_job.api.topic_partition import TopicPartition
from sink_job.cli.common import EXIT_CODES, add_sink, read_sink
from sink_job.simulate.record_schema import SchemaInput

if TYPE_CHECKING:
    from sink_job.api.sections.format_section import FormatSpec
    from sink_job.api.spec import Sink
    from sink_job.connect.schema import RegisteredSchema
    from sink_job.simulate.simulation import Delivered, StepReport

_DESCRIPTION: Final = """\
Shows which objects the records in FILE would produce with the settings of
SINK.yaml: the objects that each write closes, their keys, and open objects.

FILE contains one step per line, as JSON:

  {"write": [{"topic": "t", "partition": 0, "offset": 0, "timestamp": 0,
              "key": …, "value": …}, …]}
      delivers records and runs one round. Records of a topic-partition must
      be in ascending order of offsets; gaps are allowed. An empty list is a
      round without records. Topic-partitions of earlier steps take part in
      every round.
      "timestamp" is in milliseconds. Without it, the record has no timestamp.
      "value" is any JSON; the sink receives it as compact JSON. With
      format.converter Text or Bytes, a JSON string is the value. With Cbor or
      MessagePack, the sink receives the JSON as an item of that format.
      "value_base64" contains the value as bytes. A record without value, or
      with the value null, is a tombstone.
      "key" and "key_base64" are the key in the same way, for
      format.keyConverter. "headers" is an object of names and texts, or a list
      of {"key": …, "value": …} or {"key": …, "value_base64": …}.
      "schema" is the schema of the value: {"name": …, "version": …,
      "fields": [{"name": …, "type": …, "optional": …, "default": …}]}.
      Types are int8, int16, int32, int64, float32, float64, boolean, string
      and bytes. spec.schemaCompatibility applies to it. The value is not
      checked against it. With the outputs Avro and Parquet, a JSON value is
      checked against the text of format.schema, and not against a schema that
      would be inferred.
  {"advanceClockMs": 60000}
      advances the clock, which does not move otherwise. The next write
      closes objects that are due.

The command prints one line of JSON for each write: "closed" in the order of
closing, "open" in the order of opening (both sorted by topic-partition),
"committable" (the first offset that is not in a closed object, null before the
first commit), and "errors". With errors.tolerance None, a topic-partition stops
at its first error, and later records of it are ignored."""

_MAX_INTEGER: Final = 2**63 - 2
_MAX_CLOCK: Final = 253_402_300_799_999  # the end of the year 9999
_Offset = Annotated[int, msgspec.Meta(ge=0, le=_MAX_INTEGER)]


_FORM: Final = (
    'a line is a round of records with their offsets, such as {"write": [{"topic": "t", "partition": 0, "offset": 0, '
    '"value": {"a": 1}}]}, not a value alone'
)


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    key: str
    value: str | None = None
    value_base64: str | None = None


class _Record(msgspec.Struct, forbid_unknown_fields=True):
    topic: Annotated[str, msgspec.Meta(min_length=1)]
    partition: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
    offset: _Offset
    timestamp: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    key: msgspec.Raw = msgspec.Raw()
    key_base64: str | None = None
    headers: dict[str, str | None] | list[_Header] = []
    value: msgspec.Raw = msgspec.Raw()
    value_base64: str | None = None
    schema: SchemaInput | None = None


class _Step(msgspec.Struct, forbid_unknown_fields=True):
    write: list[_Record] | None = None
    advance: Annotated[int, msgspec.Meta(ge=0, le=_MAX_INTEGER)] | None = msgspec.field(
        name="advanceClockMs", default=None
    )


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "simulate",
        help="show which objects given records would produce; without Kafka, S3 or Spark",
        description=_DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_sink(parser)
    parser.add_argument("--records", metavar="FILE", required=True, help="file with steps; - reads standard input")
    parser.add_argument("--brief", action="store_true", help="do not list the offsets of each object")
    parser.add_argument("--html", metavar="FILE", type=Path, help="also write a page with timelines")
    parser.add_argument(
        "--clock-start-ms",
        metavar="N",
        type=_clock,
        default=0,
        help="start time of the clock, in milliseconds since 1970-01-01 UTC (default: 0)",
    )


def run(args: argparse.Namespace) -> int:
    """Prints the reports. Raises InvalidSpec for an invalid manifest or step, and ConfigurationError for an invalid
    schema in the manifest."""
    if args.manifest == args.records == "-":
        raise InvalidSpec(["standard input cannot be both SINK.yaml and the records: use a file for one of them"])
    sink = read_sink(args.manifest)
    steps = _lines(args.records)
    name = "standard input" if args.records == "-" else args.records
    collect, write = _page(args.html)
    for report in simulate(
        sink, steps, clock_start_ms=args.clock_start_ms, offsets=not args.brief, name=name, collect=collect
    ):
        print(msgspec.json.encode(report).decode())
    write()
    return 0


Collect = Callable[["Iterable[TopicPartition]", "StepReport", int], None]


def _page(file: Path | None) -> tuple[Collect, Callable[[], None]]:
    """What collects the writes for a page, and what writes it. Without a file both do nothing. The latter raises
    InvalidSpec."""
    if file is None:
        return _ignore, lambda: None
    from sink_job.plan.simulated_timelines import SimulatedTimelines
    from sink_job.plan.timeline import objects_page, write_page

    collected = SimulatedTimelines()
    return collected.add, lambda: write_page(file, objects_page("s3sink simulate", collected.timelines()))


def _ignore(delivered: Iterable[TopicPartition], report: StepReport, now: int) -> None:
    pass


def _clock(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(_MAX_CLOCK)) and int(text) <= _MAX_CLOCK):
        raise argparse.ArgumentTypeError(f"{text!r} is not a time in ms from 0 to {_MAX_CLOCK} (the end of year 9999)")
    return int(text)


def simulate(
    sink: Sink,
    lines: Iterable[bytes],
    *,
    clock_start_ms: int = 0,
    offsets: bool = True,
    name: str = "records",
    collect: Collect = _ignore,
) -> Iterator[StepReport]:
    """A report for each write in `lines`. Each line is a step as JSON; blank lines are skipped.

    `offsets`: list the offsets of each object. `name`: the name of the source in errors. `collect` gets the
    topic-partition of each record of a write, its report, and the clock. Raises InvalidSpec for the
    first invalid line, after the reports of the lines before it. Raises ConfigurationError, before the first report, if
    `spec.format.schema` has an invalid text.
    """
    from sink_job.simulate.simulation import Simulation

    simulation, clock = Simulation(sink, offsets=offsets, schema=_value_schema(sink)), clock_start_ms
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            step = _step(line)
            if step.write is None:
                clock = _advanced(clock, step.advance or 0)
                continue
            delivered = _delivered(step.write, sink.spec.format, simulation.next_offset)
        except RecursionError:
            raise InvalidSpec([f"{name}, line {number}: is nested too deeply"]) from None
        except ValueError as error:
            raise InvalidSpec([f"{name}, line {number}: {error}"]) from None
        report = simulation.write(delivered, clock)
        collect((tp for tp, records in delivered.items() for _ in records), report, clock)
        yield report


def _value_schema(sink: Sink) -> RegisteredSchema | None:
    """The schema in the manifest; None if it has none. The text in a ConfigMap is not read. Raises ConfigurationError
    as the driver does."""
    bare_values = sink.spec.format.bare_value_schema
    if bare_values is None or bare_values.text is None:
        return None
    from sink_job.registry.bare_values import bare_value_schema

    return bare_value_schema(sink.spec.format)


def _advanced(clock: int, by: int) -> int:
    if clock + by > _MAX_CLOCK:
        raise ValueError(f"advances the clock beyond {_MAX_CLOCK} (the end of year 9999)")
    return clock + by


def _lines(file: str) -> Iterator[bytes]:
    if file == "-":
        yield from sys.stdin.buffer
        return
    try:
        with Path(file).open("rb") as lines:
            yield from lines
    except OSError as error:
        raise InvalidSpec([f"{file} cannot be read: {error.strerror}"]) from None


def _is_no_step(line: bytes) -> bool:
    """Whether a line of JSON has nothing of a step: the value of a record alone, such as a console consumer prints."""
    found = msgspec.json.decode(line)
    return not isinstance(found, dict) or not found.keys() & {"write", "advanceClockMs"}


def _step(line: bytes) -> _Step:
    """The step in `line`. Raises ValueError for an invalid line."""
    try:
        line.decode()
        step = msgspec.json.decode(line, type=_Step)
    except msgspec.ValidationError as error:
        raise ValueError(f"{error}; {_FORM}" if _is_no_step(line) else str(error)) from None
    except UnicodeDecodeError as error:
        raise ValueError(f"is not UTF-8 (byte {error.start})") from None
    except msgspec.DecodeError as error:
        raise ValueError(f"{error}".replace("JSON is malformed", "is not JSON")) from None
    if (step.write is None) == (step.advance is None):
        raise ValueError('is not a step: set either "write" or "advanceClockMs"')
    return step


def _delivered(
    records: list[_Record], converters: FormatSpec, next_offset: Callable[[TopicPartition], int]
) -> dict[TopicPartition, list[Delivered]]:
    """The records by topic-partition. Raises ValueError for offsets in the wrong order and for invalid values."""
    from sink_job.simulate.simulation import Delivered

    found: dict[TopicPartition, list[Delivered]] = {}
    for record in records:
        tp = TopicPartition(record.topic, record.partition)
        try:
            check_topic(record.topic)
        except ValueError as error:
            raise ValueError(f'"topic": {record.topic!r} {error}') from None
        previous = found.setdefault(tp, [])
        minimum = previous[-1].offset + 1 if previous else next_offset(tp)
        if record.offset < minimum:
            raise ValueError(
                f"{tp} offset {record.offset} is not in ascending order: offset {minimum - 1} was delivered before"
            )
        timestamp = -1 if record.timestamp is None else record.timestamp
        try:
            value = _content("value", record.value, record.value_base64, converters.converter)
            key = _content("key", record.key, record.key_base64, converters.key_converter)
            schema = record.schema.schema() if record.schema else None
            headers = _headers(record.headers)
        except ValueError as error:
            raise ValueError(f"{tp} offset {record.offset}: {error}") from None
        previous.append(Delivered(record.offset, timestamp, value, schema, key, headers))
    return found


def _headers(given: dict[str, str | None] | list[_Header]) -> tuple[tuple[str, bytes | None], ...]:
    """The names and bytes of headers. Raises ValueError for invalid ones."""
    if isinstance(given, dict):
        given = [_Header(name, value) for name, value in given.items()]
    return tuple((each.key, _header_value(each)) for each in given)


def _header_value(header: _Header) -> bytes | None:
    if header.value_base64 is None:
        return None if header.value is None else header.value.encode()
    if header.value is not None:
        raise ValueError('set either "value" or "value_base64" of a header')
    return _from_base64("value_base64", header.value_base64)


def _from_base64(name: str, text: str) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except binascii.Error as error:
        raise ValueError(f'"{name}": {error}') from None


def _content(name: str, json: msgspec.Raw, base64: str | None, converter: ConverterType | None) -> bytes | None:
    """The bytes of a value or key, as in Kafka. Raises ValueError if it is set twice, or for invalid base64."""
    value = bytes(json)
    if base64 is not None:
        if value:
            raise ValueError(f'set either "{name}" or "{name}_base64"')
        return _from_base64(f"{name}_base64", base64)
    if value in (b"", b"null"):
        return None
    if converter in (ConverterType.TEXT, ConverterType.BYTES) and value.startswith(b'"'):
        return msgspec.json.decode(value, type=str).encode()
    if converter is ConverterType.CBOR:
        import cbor2

        return cbor2.dumps(msgspec.json.decode(value))
    if converter is ConverterType.MESSAGE_PACK:
        return _message_pack(name, msgspec.json.decode(value))
    return msgspec.json.format(value, indent=-1)


def _message_pack(name: str, value: object) -> bytes:
    try:
        return msgspec.msgpack.encode(value)
    except OverflowError:
        raise ValueError(f"the {name} contains an integer that MessagePack cannot represent") from None


if __name__ == "__main__":
    from sink_job.cli.main import main

    sys.exit(main(["simulate", *sys.argv[1:]]))
