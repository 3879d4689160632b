"""The output of `s3sink repair`, as text or JSON."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from sink_job.driver.console import size
from sink_job.maintenance.repair.results import RepairedObject, RepairOutcome, RepairReport, Source

_SOURCES = {
    Source.VERSION: "an older version of it",
    Source.KAFKA: "Kafka",
    Source.ANOTHER_RUN: "another command",
}


def as_json(report: RepairReport) -> str:
    """The report as one JSON document."""
    document = {"exitCode": report.exit_code, **msgspec.to_builtins(report)}
    return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()


def as_text(report: RepairReport) -> str:
    """The report as text: a line for each object, then the totals."""
    return "\n".join([*_lines(report), summary(report)])


def summary(report: RepairReport) -> str:
    """The totals on one line."""
    counts = {outcome: sum(o.outcome is outcome for o in report.objects) for outcome in RepairOutcome}
    if not report.objects:
        return f"{report.sink_id}: no object is missing or damaged"
    done = (
        f"{counts[RepairOutcome.RESTORABLE]:,} objects can be restored"
        if report.dry_run
        else f"{counts[RepairOutcome.RESTORED]:,} objects restored"
    )
    lost = counts[RepairOutcome.NOT_RESTORABLE]
    accepted = counts[RepairOutcome.LOSS_ACCEPTED]
    done += f", {accepted:,} recorded as lost" if accepted else ""
    return f"{report.sink_id}: {done}" + (f", {lost:,} cannot be restored" if lost else "")


def _lines(report: RepairReport) -> Iterator[str]:
    for o in report.objects:
        yield _line(report.bucket, o)
        if o.kept is not None:
            yield f"    its damaged bytes are at s3://{report.kept_bucket or report.bucket}/{o.kept}"
    if report.pending:
        yield (
            f"note: {report.pending:,} damaged objects are not acknowledged yet: the driver reports them "
            "(ObjectConflict). Move them away, and start the sink: it publishes or rebuilds them"
        )
    if report.removed:
        yield f"note: {report.removed:,} missing objects were removed on purpose and are left alone"
    if report.accepted:
        yield (
            f"note: {report.accepted:,} missing or damaged objects were recorded as lost before (--accept-loss) and "
            "are left alone; --key tries one of them again"
        )
    for note in report.notes:
        yield f"note: {note}"


def _line(bucket: str, o: RepairedObject) -> str:
    where = f"{o.topic}-{o.partition} offset {o.first}: s3://{bucket}/{o.key}"
    if o.outcome is RepairOutcome.NOT_RESTORABLE:
        return f"NOT RESTORABLE: {where} ({o.damage}): {o.message}"
    if o.outcome is RepairOutcome.LOSS_ACCEPTED:
        return f"recorded as lost: {where} ({o.damage}): {o.message}"
    source = _SOURCES[o.source] if o.source is not None else ""
    verb = "can be restored" if o.outcome is RepairOutcome.RESTORABLE else "restored"
    return f"{verb} from {source}: {where} ({o.damage})"


def discarded(sink_id: str, copies: int, total: int, *, dry_run: bool, as_json: bool) -> str:
    """What `--discard-damaged` has deleted: the number of copies, and their size in bytes."""
    if as_json:
        document = {"sinkId": sink_id, "dryRun": dry_run, "copies": copies, "bytes": total}
        return msgspec.json.format(msgspec.json.encode(document), indent=2).decode()
    verb = "would delete" if dry_run else "deleted"
    return f"{sink_id}: {verb} {copies:,} copies of damaged bytes ({size(total)})"
