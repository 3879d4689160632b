"""The output of `s3sink verify`: results and findings, as a table or JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from sink_job.api.errors import DataLoss
from sink_job.api.topic_partition import TopicPartition
from sink_job.driver.console import known, size
from sink_job.verify.results import Finding, FindingType, PartitionResult

MAX_SHOWN = 20
"""Maximum number of findings of a topic-partition in the table. JSON contains all."""


class VerifyReport(msgspec.Struct, frozen=True, rename="camel"):
    """The result of a verification.

    `record`: number of the last ledger record that was read. `foreign`: number of objects under the topic prefixes with
    keys that this sink never writes.
    """

    sink_id: str
    bucket: str
    record: int
    foreign: int
    notes: tuple[str, ...]
    partitions: tuple[PartitionResult, ...]

    @property
    def findings(self) -> list[tuple[TopicPartition, Finding]]:
        """All findings, sorted by topic-partition and offset."""
        return [(p.topic_partition, finding) for p in self.partitions for finding in p.findings]


def exit_code(report: VerifyReport) -> int:
    """0 without findings; the code of data loss if records are missing; else the code of the first finding."""
    codes = [finding.type.exit_code for _, finding in report.findings]
    return DataLoss.exit_code if DataLoss.exit_code in codes else next(iter(codes), 0)


def as_json(report: VerifyReport) -> str:
    """The report as one JSON document."""
    code = exit_code(report)
    document = {"passed": code == 0, "exitCode": code, **msgspec.to_builtins(report)}
    document["partitions"] = [{**msgspec.to_builtins(p), "lag": p.lag} for p in report.partitions]
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def show(report: VerifyReport) -> None:
    """Prints the report as a table: with colours on a terminal, in plain columns elsewhere."""
    many = any(p.generation > 1 for p in report.partitions)
    header, rows = _header(report), [_row(p, deep=_is_deep(report)) for p in report.partitions]
    if many:
        header.insert(2, "GENERATION")
        for row, p in zip(rows, report.partitions, strict=True):
            row.insert(2, str(p.generation))
    if any(p.dead_letters for p in report.partitions):
        at = header.index("BYTES")
        header.insert(at, "DEAD_LETTERS")
        for row, p in zip(rows, report.partitions, strict=True):
            row.insert(at, known(p.dead_letters))
    if any(p.removed for p in report.partitions):
        at = header.index("RECORDS")
        header.insert(at, "REMOVED")
        for row, p in zip(rows, report.partitions, strict=True):
            row.insert(at, known(p.removed))
    show_table(header, rows, [bool(p.findings) for p in report.partitions], _lines(report))


def show_table(
    header: Sequence[str], rows: Sequence[Sequence[str]], failed: Sequence[bool], lines: Iterable[str]
) -> None:
    """Prints a table whose last column is the result, and the lines after it: with colours on a terminal. `failed`: the
    rows whose result is not good."""
    if sys.stdout.isatty():
        _show_rich(header, rows, failed, lines)
    else:
        print("\n".join([*_plain(header, rows), *lines]))


def _show_rich(
    header: Sequence[str], rows: Sequence[Sequence[str]], failed: Sequence[bool], lines: Iterable[str]
) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for number, title in enumerate(header):
        table.add_column(title, justify="left" if number in (0, len(header) - 1) else "right", no_wrap=number == 0)
    for row, is_failed in zip(rows, failed, strict=True):
        table.add_row(*row[:-1], Text(row[-1], style="red" if is_failed else "green"))
    console.print(table)
    for line in lines:
        console.print(Text(line, style="red" if line.startswith(("FAILED", "MISSING", "DIFFERENT")) else ""))


def _is_deep(report: VerifyReport) -> bool:
    return any(p.compared is not None for p in report.partitions)


def _header(report: VerifyReport) -> list[str]:
    titles = ["TOPIC", "PARTITION", "FROM", "COMMITTED", "END", "LAG", "OBJECTS", "RECORDS", "BYTES", "GAPS"]
    return [*titles, *(["COMPARED", "KAFKA_GONE"] if _is_deep(report) else []), "RESULT"]


def _row(p: PartitionResult, *, deep: bool) -> list[str]:
    numbers = [p.start, p.committed, p.end, p.lag, p.objects, p.records]
    compared = (
        [known(p.compared.objects), known(p.compared.kafka_gone_objects)] if deep and p.compared else [""] * (2 * deep)
    )
    return [p.topic, str(p.partition), *map(known, numbers), size(p.bytes), known(p.gaps), *compared, _result(p)]


def _result(p: PartitionResult) -> str:
    if not p.findings:
        return "OK"
    return f"FAILED at {p.findings[0].offset:,}"


def _plain(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """The lines of a table: names aligned left, numbers aligned right, the result unaligned."""
    table = [header, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    for row in table:
        middle = [cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1], strict=True)]
        yield "  ".join([row[0].ljust(widths[0]), *middle, row[-1]]).rstrip()


def _lines(report: VerifyReport) -> Iterator[str]:
    """The lines after the table: findings, notes, and the total."""
    yield ""
    for p in report.partitions:
        for finding in p.findings[:MAX_SHOWN]:
            where = f" (s3://{report.bucket}/{finding.key})" if finding.key else ""
            yield f"FAILED: {p.topic_partition} offset {finding.offset}: {finding.message}{where} [{finding.type}]"
        if len(p.findings) > MAX_SHOWN:
            yield f"FAILED: {p.topic_partition}: {len(p.findings) - MAX_SHOWN:,} more findings; -o json lists all"
    yield from _how_to_repair(report)
    for p in report.partitions:
        for note in p.notes:
            yield f"note: {p.topic_partition}: {note}"
    for note in report.notes:
        yield f"note: {note}"
    if report.foreign:
        yield f"note: {report.foreign:,} objects under the topic prefixes were not written by this sink"
    yield _total(report)


def _how_to_repair(report: VerifyReport) -> Iterator[str]:
    found = {finding.type for _, finding in report.findings}
    if found & {FindingType.OBJECT_MISSING, FindingType.OBJECT_MISMATCH}:
        yield (
            "note: s3sink repair SINK.yaml restores missing and changed objects, also those that readers have moved "
            "away; --dry-run shows which"
        )
    if FindingType.RECORD_MISMATCH in found:
        yield "note: s3sink repair SINK.yaml --key KEY compares all bytes of an object with the ledger, and restores it"


def _total(report: VerifyReport) -> str:
    ps = report.partitions
    if report.findings:
        tp, finding = report.findings[0]
        failed = sum(1 for p in ps if p.findings)
        return f"FAILED: {failed:,} of {len(ps):,} topic-partitions; first finding: {tp} offset {finding.offset}"
    objects, records = sum(p.objects for p in ps), sum(p.records for p in ps)
    pending = sum(p.pending_records for p in ps)
    rest = f"; {pending:,} more records are in open objects" if pending else ""
    one = "one object" if all(p.generation == 1 for p in ps) else "one object of its generation"
    return (
        f"OK: every record up to the committed offsets is in exactly {one}: "
        f"{objects:,} objects with {records:,} records{_dead_letters(ps)} ({size(sum(p.bytes for p in ps))}){rest}"
    )


def _dead_letters(ps: Sequence[PartitionResult]) -> str:
    """The number of dead letters and of their objects, which are among all objects."""
    count, objects = sum(p.dead_letters for p in ps), sum(p.dead_letter_objects for p in ps)
    if not count:
        return ""
    return f" and {count:,} dead letters, which are in {f'{objects:,} of the objects' if objects else 'their topic'}"
