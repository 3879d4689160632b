"""What `s3sink verify` prints: the verdicts as a table, what is wrong in full, or all of it as JSON."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

import msgspec

from sink_job.api.errors import DataLoss
from sink_job.api.topic_partition import TopicPartition
from sink_job.driver.console import known, size
from sink_job.verify.audit import Finding, Verdict

MOST_SHOWN = 20
"""Findings told of one topic-partition; the JSON has all."""


class Proof(msgspec.Struct, frozen=True, rename="camel"):
    """What was found. `record` is the last one of the ledger that was read, `foreign` counts objects below the topics'
    prefixes whose keys this sink never makes."""

    sink_id: str
    bucket: str
    record: int
    foreign: int
    notes: tuple[str, ...]
    partitions: tuple[Verdict, ...]

    @property
    def wrong(self) -> list[tuple[TopicPartition, Finding]]:
        """Everything that is wrong, by topic-partition and offset."""
        return [(p.topic_partition, finding) for p in self.partitions for finding in p.wrong]


def exit_code(proof: Proof) -> int:
    """0 when all is right; that of data loss when something is missing, else that of the first finding."""
    codes = [finding.wrong.exit_code for _, finding in proof.wrong]
    return DataLoss.exit_code if DataLoss.exit_code in codes else next(iter(codes), 0)


def as_json(proof: Proof) -> str:
    """The proof as one JSON document."""
    code = exit_code(proof)
    document = {"right": code == 0, "exitCode": code, **msgspec.to_builtins(proof)}
    document["partitions"] = [{**msgspec.to_builtins(p), "lag": p.lag} for p in proof.partitions]
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def show(proof: Proof) -> None:
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


def _show_rich(header: Sequence[str], rows: Sequence[Sequence[str]], proof: Proof) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console()
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for number, title in enumerate(header):
        table.add_column(title, justify="left" if number in (0, len(header) - 1) else "right", no_wrap=number == 0)
    for row, verdict in zip(rows, proof.partitions, strict=True):
        table.add_row(*row[:-1], Text(row[-1], style="red" if verdict.wrong else "green"))
    console.print(table)
    for line in _lines(proof):
        console.print(Text(line, style="red" if line.startswith("wrong") else ""))


def _is_deep(proof: Proof) -> bool:
    return any(p.compared is not None for p in proof.partitions)


def _header(proof: Proof) -> list[str]:
    titles = ["TOPIC", "PARTITION", "FROM", "COMMITTED", "END", "LAG", "OBJECTS", "RECORDS", "BYTES", "HOLES"]
    return [*titles, *(["COMPARED", "NOT HELD"] if _is_deep(proof) else []), "VERDICT"]


def _row(p: Verdict, *, deep: bool) -> list[str]:
    numbers = [p.start, p.committed, p.end, p.lag, p.objects, p.records]
    compared = [known(p.compared.objects), known(p.compared.gone)] if deep and p.compared else [""] * (2 * deep)
    return [p.topic, str(p.partition), *map(known, numbers), size(p.bytes), known(p.holes), *compared, _word(p)]


def _word(p: Verdict) -> str:
    if not p.wrong:
        return "right"
    return f"wrong at {p.wrong[0].offset:,}"


def _plain(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Names to the left, numbers to the right, the verdict as it is."""
    table = [header, *rows]
    widths = [max(len(row[column]) for row in table) for column in range(len(header))]
    for row in table:
        middle = [cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1], strict=True)]
        yield "  ".join([row[0].ljust(widths[0]), *middle, row[-1]]).rstrip()


def _lines(proof: Proof) -> Iterator[str]:
    """What is wrong, what a person may wonder about, and the sum of it all."""
    yield ""
    for p in proof.partitions:
        for finding in p.wrong[:MOST_SHOWN]:
            where = f" (s3://{proof.bucket}/{finding.key})" if finding.key else ""
            yield f"wrong: {p.topic_partition} offset {finding.offset}: {finding.message}{where} [{finding.wrong}]"
        if len(p.wrong) > MOST_SHOWN:
            yield f"wrong: {p.topic_partition}: and {len(p.wrong) - MOST_SHOWN:,} more; -o json has all"
    for p in proof.partitions:
        for note in p.notes:
            yield f"note: {p.topic_partition}: {note}"
    for note in proof.notes:
        yield f"note: {note}"
    if proof.foreign:
        yield f"note: {proof.foreign:,} other objects lie below the topics' prefixes; this sink makes no such keys"
    yield _sum(proof)


def _sum(proof: Proof) -> str:
    ps = proof.partitions
    if proof.wrong:
        tp, finding = proof.wrong[0]
        wrong = sum(1 for p in ps if p.wrong)
        return f"wrong: {wrong:,} of {len(ps):,} topic-partitions; first {tp} offset {finding.offset}"
    objects, records = sum(p.objects for p in ps), sum(p.records for p in ps)
    waiting = sum(p.waiting for p in ps)
    rest = f"; {waiting:,} more records are in open objects" if waiting else ""
    one = "one object" if all(p.generation == 1 for p in ps) else "one object of its generation"
    return (
        f"right: every record up to the committed offsets is in exactly {one}: "
        f"{objects:,} objects with {records:,} records ({size(sum(p.bytes for p in ps))}){rest}"
    )
