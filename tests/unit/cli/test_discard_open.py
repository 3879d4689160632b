"""`s3sink discard-open`: what it prints, on a ledger that a driver has left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sink_job.api.errors import LedgerFenced
from sink_job.cli import discard_open
from sink_job.cli import main as cli
from sink_job.coordinator.context import StopCondition
from sink_job.maintenance.discard_open import DiscardedPartition, DiscardReport
from tests.support.memory_sink import MemorySinkFixture
from tests.support.synthetic_log import SyntheticLog

FLIGHTS = DiscardedPartition("flights", 3, objects=2, records=1_500, committed=12_000)


@pytest.mark.parametrize(
    ("report", "text"),
    [
        (DiscardReport(None, 0, 0, 0), "sink: no ledger and no open objects"),
        (DiscardReport(7, 0, 0, 0), "sink: no open objects"),
        (DiscardReport(7, 1_200, 0, 0), "sink: no open objects; published 1,200 closed objects"),
        (
            DiscardReport(7, 0, 2, 1_500, (FLIGHTS,)),
            "sink: discarded 2 open objects with 1,500 records\n"
            "flights-3: discarded 2 objects with 1,500 records; the next run resumes from offset 12,000",
        ),
        (
            DiscardReport(7, 4, 2, 1_500, (FLIGHTS,)),
            "sink: discarded 2 open objects with 1,500 records; published 4 closed objects\n"
            "flights-3: discarded 2 objects with 1,500 records; the next run resumes from offset 12,000",
        ),
    ],
    ids=["no ledger", "nothing open", "only published", "discarded", "published and discarded"],
)
def test_the_text_has_the_totals_and_a_line_for_each_partition(report: DiscardReport, text: str) -> None:
    assert discard_open.as_text("sink", report) == text


@pytest.fixture
def taken_over(sink_fixture: MemorySinkFixture, log_formats: list[str], monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The owners that the command was to take over from. Its ledger is that of `sink_fixture`."""
    owners: list[Any] = []

    def access(sink: object, secrets: object, *, take_over_from: object) -> object:
        owners.append(take_over_from)
        return sink_fixture.ledger_access()

    monkeypatch.setattr(discard_open, "open_ledger_access", access)
    return owners


def test_the_first_line_is_the_termination_message_of_the_pod(
    sink_fixture: MemorySinkFixture,
    sink_file: str,
    taken_over: list[Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "termination").touch()
    monkeypatch.setenv("S3SINK_TERMINATION_LOG", str(tmp_path / "termination"))
    sink_fixture.run(SyntheticLog(records=12, partitions=2), goal=StopCondition(until_caught_up=True))
    assert cli.main(["discard-open", sink_file]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "default.log: discarded 2 open objects with 4 records",
        "log-0: discarded 1 objects with 2 records; the next run resumes from offset 10",
        "log-1: discarded 1 objects with 2 records; the next run resumes from offset 10",
    ]
    assert (tmp_path / "termination").read_text() == lines[0]


def test_as_json_the_report_has_the_names_of_the_operator(
    sink_fixture: MemorySinkFixture, sink_file: str, taken_over: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    sink_fixture.run(SyntheticLog(records=12), goal=StopCondition(until_caught_up=True))
    assert cli.main(["discard-open", sink_file, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["partitions"] == [{"topic": "log", "partition": 0, "objects": 1, "records": 2, "committed": 10}]
    assert (found["published"], found["objects"], found["records"]) == (0, 1, 2)


@pytest.mark.parametrize(("words", "owner"), [([], None), (["--take-over-from", "c/n/s/n.s"], ("c", "n", "s", "n.s"))])
def test_the_owner_to_take_over_from_is_optional(
    sink_file: str, taken_over: list[Any], words: list[str], owner: tuple[str, ...] | None
) -> None:
    assert cli.main(["discard-open", sink_file, *words]) == 0
    assert taken_over == [owner]


def test_logs_have_the_requested_format(sink_file: str, taken_over: list[Any], log_formats: list[str]) -> None:
    cli.main(["discard-open", sink_file, "--log", "json"])
    cli.main(["discard-open", sink_file])
    assert log_formats == ["json", "text"]


def test_an_error_has_its_exit_code_and_no_result(
    sink_file: str, taken_over: list[Any], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fenced(*_: object, **__: object) -> None:
        raise LedgerFenced("another driver has claimed the ledger")

    monkeypatch.setattr(discard_open, "open_ledger_access", fenced)
    assert cli.main(["discard-open", sink_file]) == 3
    assert capsys.readouterr().out == ""
