"""What `s3sink repair` prints."""

from __future__ import annotations

import json

from sink_job.cli import repair_output
from sink_job.maintenance.repair.results import RepairedObject, RepairOutcome, RepairReport, Source


def repaired(outcome: RepairOutcome, source: Source | None = None, **given: str) -> RepairedObject:
    return RepairedObject("topics/k", "log", 3, 10, 19, 10, 1_000, "it is not in the bucket", outcome, source, **given)


def test_each_object_has_a_line() -> None:
    report = RepairReport(
        "sink",
        "archive",
        False,
        (
            repaired(RepairOutcome.RESTORED, Source.VERSION, kept="topics/_s3sink/sink/repair/damaged/topics/k/e"),
            repaired(RepairOutcome.RESTORED, Source.ANOTHER_RUN),
            repaired(RepairOutcome.NOT_RESTORABLE, message="Kafka holds 3 of its 10 records"),
        ),
        removed=2,
        pending=1,
        notes=("older versions were not searched",),
    )
    assert repair_output.as_text(report).splitlines() == [
        "restored from an older version of it: log-3 offset 10: s3://archive/topics/k (it is not in the bucket)",
        "    its damaged bytes are at s3://archive/topics/_s3sink/sink/repair/damaged/topics/k/e",
        "restored from another command: log-3 offset 10: s3://archive/topics/k (it is not in the bucket)",
        "NOT RESTORABLE: log-3 offset 10: s3://archive/topics/k (it is not in the bucket): Kafka holds 3 of its 10 "
        "records",
        "note: 1 damaged objects are not acknowledged yet: the driver reports them (ObjectConflict). Move them away, "
        "and start the sink: it publishes or rebuilds them",
        "note: 2 missing objects were removed on purpose and are left alone",
        "note: older versions were not searched",
        "sink: 2 objects restored, 1 cannot be restored",
    ]


def test_a_dry_run_states_what_can_be_restored() -> None:
    report = RepairReport("sink", "archive", True, (repaired(RepairOutcome.RESTORABLE, Source.KAFKA),))
    assert repair_output.as_text(report).splitlines() == [
        "can be restored from Kafka: log-3 offset 10: s3://archive/topics/k (it is not in the bucket)",
        "sink: 1 objects can be restored",
    ]


def test_json_has_the_exit_code() -> None:
    report = RepairReport("sink", "archive", False, (repaired(RepairOutcome.NOT_RESTORABLE, message="gone"),))
    document = json.loads(repair_output.as_json(report))
    assert (document["exitCode"], document["sinkId"], document["objects"][0]["message"]) == (5, "sink", "gone")


def test_the_copies_of_damaged_bytes_are_counted() -> None:
    text = repair_output.discarded("sink", 2, 1_500, dry_run=False, as_json=False)
    assert text == "sink: deleted 2 copies of damaged bytes (1.5 kB)"
