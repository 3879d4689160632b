"""`s3sink simulate`: what would these settings do to these records? Reads steps from a file, prints a line for each
write.

It needs neither Kafka nor S3 nor Spark, and cuts with the very code of the job. A line of the file that is not
understood ends it, for a simulation of other records than those meant is worse than none.
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
from sink_job.api.topic_partition import TopicPartition
from sink_job.cli.common import EXIT_CODES, add_sink, read_sink

if TYPE_CHECKING:
    from sink_job.api.spec import Sink
    from sink_job.simulate.simulation import Delivered, StepReport

_DESCRIPTION: Final = """\
Says what the settings of SINK.yaml would do to the records in FILE: which
objects are closed by which write, under which keys, and which stay open.

FILE holds a step a line, as JSON:

  {"write": [{"topic": "t", "partition": 0, "offset": 0, "timestamp": 0,
              "key": …, "value": …}, …]}
      delivers records and lets the cutter run once: one round. Those of a
      topic-partition come in the order of their offsets, which may have gaps.
      An empty list is a round without records; topic-partitions seen earlier
      take part in every round.
      "timestamp" is in milliseconds; without it the record has none.
      "value" is any JSON and reaches the sink as compact JSON; where
      format.converter is Text or Bytes a JSON string is the value itself.
      "value_base64" gives the bytes instead. Without a value, or with null,
      the record is a tombstone.
  {"advanceClockMs": 60000}
      moves the clock, which stands still otherwise. It closes nothing by
      itself: the next write does.

For each write a line of JSON is printed: "closed" in the order of closing,
"open" in the order of opening (both by topic-partition), "committable" (the
first offset not in a closed object; null as long as there is nothing to
commit), and "errors". With errors.tolerance None the first error of a
topic-partition is its end: nothing behind that record is looked at."""

_MOST: Final = 2**63 - 2
_Offset = Annotated[int, msgspec.Meta(ge=0, le=_MOST)]


class _Record(msgspec.Struct, forbid_unknown_fields=True):
    topic: Annotated[str, msgspec.Meta(min_length=1)]
    partition: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
    offset: _Offset
    timestamp: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] | None = None
    key: msgspec.Raw = msgspec.Raw()
    key_base64: str | None = None
    headers: msgspec.Raw = msgspec.Raw()
    value: msgspec.Raw = msgspec.Raw()
    value_base64: str | None = None


class _Step(msgspec.Struct, forbid_unknown_fields=True):
    write: list[_Record] | None = None
    advance: Annotated[int, msgspec.Meta(ge=0, le=_MOST)] | None = msgspec.field(name="advanceClockMs", default=None)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command."""
    parser = subparsers.add_parser(
        "simulate",
        help="what these settings would do to these records; no Kafka, S3 or Spark",
        description=_DESCRIPTION,
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_sink(parser)
    parser.add_argument("--records", metavar="FILE", required=True, help="the steps; - reads standard input")
    parser.add_argument("--brief", action="store_true", help="leave out the list of each object's offsets")
    parser.add_argument(
        "--clock-start-ms",
        metavar="N",
        type=int,
        default=0,
        help="where the clock starts, in milliseconds since 1970-01-01 UTC; default: 0",
    )


def run(args: argparse.Namespace) -> int:
    """Prints the reports. Raises InvalidSpec for a manifest or a step that is wrong."""
    sink = read_sink(args.manifest)
    steps = _lines(args.records)
    for report in simulate(sink, steps, clock_start_ms=args.clock_start_ms, offsets=not args.brief, name=args.records):
        print(msgspec.json.encode(report).decode())
    return 0


def simulate(
    sink: Sink, lines: Iterable[bytes], *, clock_start_ms: int = 0, offsets: bool = True, name: str = "records"
) -> Iterator[StepReport]:
    """A report for each write among the steps in `lines`, which are JSON each; blank ones are passed over.

    `offsets`: whether each object's offsets are listed; `name` is what errors call the lines' source. Raises
    InvalidSpec for the first line that is wrong, after the reports of those before it.
    """
    from sink_job.simulate.simulation import Simulation

    simulation, clock = Simulation(sink, offsets=offsets), clock_start_ms
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            step = _step(line)
            if step.write is None:
                clock += step.advance or 0
                continue
            delivered = _delivered(step.write, sink.spec.format.converter, simulation.next_offset)
        except (ValueError, RecursionError) as wrong:
            raise InvalidSpec([f"{name}, line {number}: {wrong}"]) from None
        yield simulation.write(delivered, clock)


def _lines(file: str) -> Iterator[bytes]:
    if file == "-":
        yield from sys.stdin.buffer
        return
    try:
        with Path(file).open("rb") as lines:
            yield from lines
    except OSError as error:
        raise InvalidSpec([f"{file} cannot be read: {error.strerror}"]) from None


def _step(line: bytes) -> _Step:
    """Raises ValueError with what is wrong."""
    try:
        line.decode()
        step = msgspec.json.decode(line, type=_Step)
    except UnicodeDecodeError as wrong:
        raise ValueError(f"is not UTF-8 (byte {wrong.start})") from None
    except msgspec.DecodeError as wrong:
        raise ValueError(f"{wrong}".replace("JSON is malformed", "is not JSON")) from None
    if (step.write is None) == (step.advance is None):
        raise ValueError('is not a step: give one of "write" and "advanceClockMs"')
    return step


def _delivered(
    records: list[_Record], converter: ConverterType, next_offset: Callable[[TopicPartition], int]
) -> dict[TopicPartition, list[Delivered]]:
    """The records by topic-partition. Raises ValueError for offsets that do not ascend and values that are not
    clear."""
    from sink_job.simulate.simulation import Delivered

    found: dict[TopicPartition, list[Delivered]] = {}
    for record in records:
        tp = TopicPartition(record.topic, record.partition)
        before = found.setdefault(tp, [])
        least = before[-1].offset + 1 if before else next_offset(tp)
        if record.offset < least:
            raise ValueError(f"{tp} offset {record.offset} does not ascend: offset {least - 1} was delivered before it")
        timestamp = -1 if record.timestamp is None else record.timestamp
        try:
            value = _value(record, converter)
        except ValueError as wrong:
            raise ValueError(f"{tp} offset {record.offset}: {wrong}") from None
        before.append(Delivered(record.offset, timestamp, value))
    return found


def _value(record: _Record, converter: ConverterType) -> bytes | None:
    """The value's bytes as Kafka holds them. Raises ValueError when they are not clear."""
    written = bytes(record.value)
    if record.value_base64 is not None:
        if written:
            raise ValueError('give one of "value" and "value_base64"')
        try:
            return binascii.a2b_base64(record.value_base64, strict_mode=True)
        except binascii.Error as wrong:
            raise ValueError(f'"value_base64": {wrong}') from None
    if written in (b"", b"null"):
        return None
    if converter in (ConverterType.TEXT, ConverterType.BYTES) and written.startswith(b'"'):
        return msgspec.json.decode(written, type=str).encode()
    return msgspec.json.format(written, indent=-1)


if __name__ == "__main__":
    from sink_job.cli.main import main

    sys.exit(main(["simulate", *sys.argv[1:]]))
