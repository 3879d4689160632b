"""The commands `s3sink reset-offsets` and `discard-open`, with a real broker and a real S3 server."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from devtools.kafka import KafkaBroker
from devtools.s3 import S3Server
from devtools.sink_process import SinkCommand, local_spec, manifest
from devtools.topics import Topics
from sink_job.api.report import FinalReport, ResetReport
from sink_job.driver import termination_message

pytestmark = [pytest.mark.data, pytest.mark.spark]

SinkFactory = Callable[[Mapping[str, Any]], SinkCommand]


@pytest.fixture
def termination_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the termination message, as a kubelet creates it."""
    path = tmp_path / "termination-log"
    path.touch()
    monkeypatch.setenv(termination_message.PATH, str(path))
    return path


@pytest.fixture
def written(
    kafka: KafkaBroker, topics: Topics, s3: S3Server, topic: str, bucket: str, sink_here: SinkFactory
) -> SinkCommand:
    """100 records of one partition, 90 of them in objects and 10 in an open one."""
    topics.create(topic)
    topics.produce_values(topic, [json.dumps({"n": n}).encode() for n in range(100)])
    spec = local_spec(
        bootstrap=kafka.bootstrap, topics=[topic], endpoint=s3.endpoint, bucket=bucket, rotation={"flushSize": 30}
    )
    sink = sink_here(manifest("written", spec))
    sink.must("run", "--until-caught-up")
    return sink


def test_after_reset_offsets_everything_is_copied_and_verified_again(
    written: SinkCommand, topics: Topics, topic: str, termination_file: Path
) -> None:
    output = written.must("reset-offsets", "--to", "Earliest", exit_code=7)
    assert "ExistingObjects: 3 objects hold records at or above the new offsets" in output
    assert f"start after them ({topic}-0 at 90)" in output
    failure = FinalReport.model_validate_json(termination_file.read_text()).failure
    assert failure is not None
    assert failure.reason == "ExistingObjects"

    output = written.must("reset-offsets", "--to", "Offsets", "--offset", f"{topic}:0:101", exit_code=2)
    assert f"101 is not between 0 and 100, the bounds of the log of {topic}-0" in output
    output = written.must("reset-offsets", "--to", "Timestamp", "--timestamp", "99999999999999", exit_code=2)
    assert "is in the future" in output

    report = ResetReport.model_validate_json(
        written.must("reset-offsets", "--to", "Earliest", "--on-existing", "NewPrefix", "-o", "json")
    )
    assert (report.generation, report.topics_dir, report.copied_again) == (2, "topics/generation=2", 90)
    assert ResetReport.model_validate_json(termination_file.read_text()) == report
    assert topics.committed("s3sink-default.written", topic) == {0: 0}

    written.catch_up()
    proof = json.loads(written.must("verify", "--deep", "-o", "json"))
    assert proof["passed"]
    assert [(p["generation"], p["records"]) for p in proof["partitions"]] == [(2, 100), (1, 90)]
    assert "GENERATION" in written.must("verify")


def test_after_discard_open_the_next_run_copies_the_discarded_records(
    written: SinkCommand, termination_file: Path
) -> None:
    output = written.must("discard-open")
    assert "discarded 1 open objects with 10 records" in output
    assert "the next run resumes from offset 90" in output
    assert "discarded 1 open objects" in termination_file.read_text()
    assert "no open objects" in written.must("discard-open")
    written.catch_up()
    assert json.loads(written.must("verify", "-o", "json"))["partitions"][0]["records"] == 100
