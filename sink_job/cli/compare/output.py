"""The output of `s3sink compare`: results and findings, as a table or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

import msgspec

from sink_job.api.errors import DataLoss
from sink_job.cli.verify_output import MAX_SHOWN, show_table
from sink_job.compare.results import OffsetRange, PartitionComparison, SideDifference, exit_code
from sink_job.driver.console import known

MAX_RANGES_SHOWN = 3
"""Maximum number of offset ranges of a topic-partition in a line. JSON contains all."""


class ComparisonReport(msgspec.Struct, frozen=True, rename="camel"):
    """The result of a comparison. `other` is the URL of the other directory. `ignored`: number of objects below the
    topics' prefixes in it with keys that no sink with this format writes."""

    sink_id: str
    bucket: str
    other: str
    other_bucket: str
    deep: bool
    ignored: int
    partitions: tuple[PartitionComparison, ...]


def exit_code_of(report: ComparisonReport) -> int:
    """See `results.exit_code`."""
    return exit_code(report.partitions)


def as_json(report: ComparisonReport) -> str:
    """The report as one JSON document."""
    code = exit_code_of(report)
    document = {"equal": code == 0, "exitCode": code, **msgspec.to_builtins(report)}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def show(report: ComparisonReport) -> None:
    """Prints the report as a table: with colours on a terminal, in plain columns elsewhere."""
    titles = ["TOPIC", "PARTITION", "FROM", "TO", "OBJECTS", "OTHER_OBJECTS", "EQUAL_KEYS"]
    header = [*titles, *(["EQUAL_RECORDS"] if report.deep else []), "RESULT"]
    rows = [_row(p, deep=report.deep) for p in report.partitions]
    show_table(header, rows, [bool(p.findings) for p in report.partitions], _lines(report))


def _row(p: PartitionComparison, *, deep: bool) -> list[str]:
    numbers = [p.start, p.end, p.objects, p.other_objects, p.equal_keys, *([p.records] if deep else [])]
    return [p.topic, str(p.partition), *map(known, numbers), _result(p)]


def _result(p: PartitionComparison) -> str:
    if p.findings:
        return f"{_verdict(p.findings)} at {p.findings[0].offset:,}"
    return "EQUAL" if p.objects or p.other_objects else "NOTHING COMPARED"


def _verdict(findings: Sequence[SideDifference]) -> str:
    is_loss = any(finding.type.exit_code == DataLoss.exit_code for finding in findings)
    return "MISSING" if is_loss else "DIFFERENT"


def _lines(report: ComparisonReport) -> Iterator[str]:
    """The lines after the table: findings, offset ranges, notes, and the total."""
    yield ""
    for p in report.partitions:
        for finding in p.findings[:MAX_SHOWN]:
            where = f"{p.topic_partition} offset {finding.offset}"
            yield f"{_verdict([finding])}: {where}: {finding.message}{_keys(report, finding)} [{finding.type}]"
        if len(p.findings) > MAX_SHOWN:
            rest = len(p.findings) - MAX_SHOWN
            yield f"{_verdict(p.findings)}: {p.topic_partition}: {rest:,} more findings; -o json lists them"
        if p.only_sink or p.only_other:
            yield f"offsets: {p.topic_partition}: {_ranges(p)}"
    for p in report.partitions:
        for note in p.notes:
            yield f"note: {p.topic_partition}: {note}"
    if report.ignored:
        yield f"note: {report.ignored:,} objects below {report.other} have other keys or another format"
    yield _total(report)


def _keys(report: ComparisonReport, finding: SideDifference) -> str:
    keys = (f"s3://{report.bucket}/{finding.key}" if finding.key else None, _other_key(report, finding))
    shown = ", ".join(key if key.isprintable() else json.dumps(key) for key in keys if key)
    return f" ({shown})" if shown else ""


def _other_key(report: ComparisonReport, finding: SideDifference) -> str | None:
    return f"s3://{report.other_bucket}/{finding.other_key}" if finding.other_key else None


def _ranges(p: PartitionComparison) -> str:
    sides = (("both", p.both), ("only the sink", p.only_sink), ("only the other", p.only_other))
    return "; ".join(f"{name}: {_shown(ranges)}" for name, ranges in sides if ranges)


def _shown(ranges: Sequence[OffsetRange]) -> str:
    first = ", ".join(f"{first} to {last}" for first, last in ranges[:MAX_RANGES_SHOWN])
    return f"{first} and {len(ranges) - MAX_RANGES_SHOWN:,} more" if len(ranges) > MAX_RANGES_SHOWN else first


def _total(report: ComparisonReport) -> str:
    ps = report.partitions
    different = [p for p in ps if p.findings]
    if different:
        verdict = _verdict([finding for p in different for finding in p.findings])
        result = f"{verdict}: {len(different):,} of {len(ps):,} topic-partitions; "
        return f"{result}first finding: {different[0].topic_partition} offset {different[0].findings[0].offset}"
    objects = sum(p.objects for p in ps)
    same = f"EQUAL: {objects:,} objects have the same keys below {report.other}"
    if not report.deep:
        return f"{same}; --deep compares their records"
    return f"{same} and the same {sum(p.records or 0 for p in ps):,} records"
