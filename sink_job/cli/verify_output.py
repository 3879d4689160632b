"""What `s3sink verify` prints: the verdicts as a table, what is wrong in full, or all of it as JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import msgspec

from sink_job.api.errors import DataLoss
from sink_job.api.topic_partition import TopicPartition
from sink_job.driver.console import known, size
from sink_job.verify.results import Finding, PartitionResult

MAX_SHOWN = 20
"""Findings told of one topic-partition; the JSON has all."""


class VerifyReport(msgspec.Struct, frozen=True, rename="camel"):
    """What was found. `record` is the last one of the ledger that was read, `foreign` counts objects below the topics'
    prefixes whose keys this sink never makes."""

    sink_id: str
    bucket: str
    record: int
    foreign: int
    notes: tuple[str, ...]
    partitions: tuple[PartitionResult, ...]

    @property
    def wrong(self) -> list[tuple[TopicPartition, Finding]]:
        """Everything that is wrong, by topic-partition and offset."""
        return [(p.topic_partition, finding) for p in self.partitions for finding in p.findings]


def exit_code(proof: VerifyReport) -> int:
    """0 when all is right; that of data loss when something is missing, else that of the first finding."""
    codes = [finding.type.exit_code for _, finding in proof.wrong]
    return DataLoss.exit_code if DataLoss.exit_code in codes else next(iter(codes), 0)


def as_json(proof: VerifyReport) -> str:
    """The proof as one JSON document."""
    code = exit_code(proof)
    document = {"passed": code == 0, "exitCode": code, **msgspec.to_builtins(proof)}
    document["partitions"] = [{**msgspec.to_builtins(p), "lag": p.lag} for p in proof.partitions]
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def show(proof: VerifyReport) -> None:
    """Prints the proof for people: in colours on a terminal, in plain columns elsewhere."""
    many = any(p.generation > 1 for p in proof.partitions)
    header, rows = _header(proof), [_row(p, deep=_is_deep(proof)) for p in proof.partitions]
    if many:
        header.insert(2, "GENERATION")
        for row, p in zip(rows, proof.partitions, strict=True):
            row.insert(2, str(p.generation))
    if sys.stdout.isatty():
        _show_rich(header, rows, proof)
    else:
        print("\n".join([*_plain(header, rows), *_lines(proof)]))


def _show_rich(header: Sequence[str], rows: Sequence[Sequence[str]], proof: VerifyReport) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for number, title in enumerate(header):
        table.add_column(title, justify="left" if number in (0, len(header) - 1) else "right", no_wrap=number == 0)
    for row, verdict in zip(rows, proof.partitions, strict=True):
        table.add_row(*row[:-1], Text(row[-1], style="red" if verdict.findings else "green"))
    console.print(table)
    for line in _lines(proof):
        console.print(Text(line, style="red" if line.startswith("FAILED") else ""))


def _is_deep(proof: VerifyReport) -> bool:
    return any(p.compared is not None for p in proof.partitions)


def _header(proof: VerifyReport) -> list[str]:
    titles = ["TOPIC", "PARTITION", "FROM", "COMMITTED", "END", "LAG", "OBJECTS", "RECORDS", "BYTES", "GAPS"]
    return [*titles, *(["COMPARED", "EXPIRED"] if _is_deep(proof) else []), "RESULT"]


def _row(p: PartitionResult, *, deep: bool) -> list[str]:
    numbers = [p.start, p.committed, p.end, p.lag, p.objects, p.records]
    compared = (
        [known(p.compared.objects), known(p.compared.expired_objects)] if deep and p.compared else [""] * (2 * deep)
    )
    return [p.topic, str(p.partition), *map(known, numbers), size(p.bytes), known(p.gaps), *compared, _word(p)]


def _word(p: PartitionResult) -> str:
    if not p.findings:
        return "OK"
    return f"FAILED at {p.findings[0].offset:,}"


def _plain(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Names to the left, numbers to the right, the verdict as it is."""
    table = [header, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    for row in table:
        middle = [cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1], strict=True)]
        yield "  ".join([row[0].ljust(widths[0]), *middle, row[-1]]).rstrip()


def _lines(proof: VerifyReport) -> Iterator[str]:
    """What is wrong, what a person may wonder about, and the sum of it all."""
    yield ""
    for p in proof.partitions:
        for finding in p.findings[:MAX_SHOWN]:
            where = f" (s3://{proof.bucket}/{finding.key})" if finding.key else ""
            yield f"FAILED: {p.topic_partition} offset {finding.offset}: {finding.message}{where} [{finding.type}]"
        if len(p.findings) > MAX_SHOWN:
            yield f"FAILED: {p.topic_partition}: {len(p.findings) - MAX_SHOWN:,} more findings; -o json lists all"
    for p in proof.partitions:
        for note in p.notes:
            yield f"note: {p.topic_partition}: {note}"
    for note in proof.notes:
        yield f"note: {note}"
    if proof.foreign:
        yield f"note: {proof.foreign:,} objects under the topic prefixes were not written by this sink"
    yield _sum(proof)


def _sum(proof: VerifyReport) -> str:
    ps = proof.partitions
    if proof.wrong:
        tp, finding = proof.wrong[0]
        wrong = sum(1 for p in ps if p.findings)
        return f"FAILED: {wrong:,} of {len(ps):,} topic-partitions; first {tp} offset {finding.offset}"
    objects, records = sum(p.objects for p in ps), sum(p.records for p in ps)
    waiting = sum(p.pending_records for p in ps)
    rest = f"; {waiting:,} more records are in open objects" if waiting else ""
    one = "one object" if all(p.generation == 1 for p in ps) else "one object of its generation"
    return (
        f"OK: every record up to the committed offsets is in exactly {one}: "
        f"{objects:,} objects with {records:,} records ({size(sum(p.bytes for p in ps))}){rest}"
    )
