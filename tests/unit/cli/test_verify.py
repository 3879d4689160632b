"""`s3sink verify`: what it connects to, what it prints and ends with, on a sink in memory."""

from __future__ import annotations

import json
import logging
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from sink_job.api.errors import TransientError
from sink_job.cli import main as cli
from sink_job.driver import standalone_admin
from sink_job.verify import compare_task
from tests.support.memory_sink import PUBLISH_ALL, MemorySinkFixture
from tests.support.synthetic_log import FileConsumerGroup, InlineEngine, SyntheticLog

LOG = SyntheticLog(records=12)
KEYS = [f"topics/log/partition=0/log+0+{first:010d}.json" for first in (0, 5, 10)]


@pytest.fixture
def ended(sink_fixture: MemorySinkFixture, log_formats: list[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The JVMs that have ended, after a sink has copied the log."""
    names: list[str] = []

    @contextmanager
    def admin(properties: object) -> Iterator[FileConsumerGroup]:
        yield FileConsumerGroup(LOG, sink_fixture.group)
        names.append("admin")

    monkeypatch.setattr(standalone_admin, "admin", admin)
    sink_fixture.run(LOG, goal=PUBLISH_ALL)
    return names


def test_a_sink_whose_records_are_all_in_objects_passes(
    ended: list[str], sink_fixture: MemorySinkFixture, sink_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = dict(sink_fixture.s3.objects)
    assert set(KEYS) < set(before)
    assert cli.main(["verify", sink_file, "-o", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["passed"], found["sinkId"], found["bucket"]) == (True, "default.log", "archive")
    [partition] = found["partitions"]
    assert (partition["committed"], partition["objects"], partition["records"]) == (12, 3, 12)
    assert sink_fixture.s3.objects == before
    assert ended == ["admin"]


@pytest.mark.parametrize(
    ("damage", "code", "finding"), [("missing", 5, "ObjectMissing"), ("other", 6, "ObjectMismatch")]
)
def test_damage_is_listed_and_decides_the_exit_code(
    ended: list[str],
    sink_fixture: MemorySinkFixture,
    sink_file: str,
    damage: str,
    code: int,
    finding: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if damage == "missing":
        del sink_fixture.s3.objects[KEYS[1]]
    else:
        sink_fixture.s3.put(KEYS[1], b"other")
    assert cli.main(["verify", sink_file]) == code
    assert f"{finding}" in capsys.readouterr().out


def test_missing_objects_written_before_a_time_count_as_removed(
    ended: list[str], sink_fixture: MemorySinkFixture, sink_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    del sink_fixture.s3.objects[KEYS[1]]
    assert cli.main(["verify", sink_file, "--removed-before", "2001-01-01T00:00:00Z"]) == 5
    capsys.readouterr()
    assert cli.main(["verify", sink_file, "--removed-before", "2100-01-01", "-o", "json"]) == 0
    [partition] = json.loads(capsys.readouterr().out)["partitions"]
    assert (partition["removed"], partition["objects"], partition["findings"]) == (1, 2, [])


def test_a_sink_without_a_ledger_is_a_configuration_error(
    ended: list[str], sink_fixture: MemorySinkFixture, sink_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    sink_fixture.s3.objects.clear()
    assert cli.main(["verify", sink_file]) == 7
    output = capsys.readouterr()
    assert output.out == ""
    assert "no ledger" in output.err


def test_a_bucket_without_access_is_reported_before_a_jvm_is_started(
    ended: list[str], sink_fixture: MemorySinkFixture, sink_file: str
) -> None:
    def no_access(call: str, key: str) -> None:
        raise TransientError("no answer")

    sink_fixture.s3.fault = no_access
    assert cli.main(["verify", sink_file]) == 75
    assert ended == []


# -- --deep ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def spark(ended: list[str], sink_fixture: MemorySinkFixture, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A Spark whose engine runs in this process and reads `log`; `given` are the settings of session and engine."""
    import sink_job.kafka.admin
    import sink_job.spark.engine
    import sink_job.spark.login_jars
    import sink_job.spark.session

    started = SimpleNamespace(given=[], log=LOG)

    @contextmanager
    def session(settings: Any) -> Iterator[Any]:
        started.given.append(settings)
        yield SimpleNamespace(_gateway=None)

    def engine(session: object, client: object, **settings: Any) -> InlineEngine:
        started.given.append(settings)
        return InlineEngine(started.log)

    kafka = nullcontext(FileConsumerGroup(LOG, sink_fixture.group))
    monkeypatch.setattr(sink_job.spark.session, "session", session)
    monkeypatch.setattr(sink_job.spark.engine, "SparkEngine", engine)
    monkeypatch.setattr(sink_job.kafka.admin, "JavaKafkaAdmin", lambda gateway, properties: kafka)
    monkeypatch.setattr(sink_job.spark.login_jars, "kafka_jars", lambda _: [])
    monkeypatch.setattr(compare_task, "connect", lambda settings: sink_fixture.s3)
    return started


def test_deep_compares_each_record_with_kafka(
    spark: SimpleNamespace, sink_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["verify", sink_file, "--deep", "-o", "json"]) == 0
    [partition] = json.loads(capsys.readouterr().out)["partitions"]
    assert partition["compared"]["records"] == 12


def test_deep_reads_with_the_cores_of_its_session(spark: SimpleNamespace, sink_file: str) -> None:
    cli.main(["verify", sink_file, "--deep"])
    settings, engine = spark.given
    assert settings.app_name == "s3sink-verify-default.log"
    assert engine["cores"] == settings.cores


def test_deep_finds_an_object_with_other_bytes_than_kafka(
    spark: SimpleNamespace, sink_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    spark.log = SyntheticLog(records=12, value_bytes=101)
    assert cli.main(["verify", sink_file, "-o", "json"]) == 0
    capsys.readouterr()
    assert cli.main(["verify", sink_file, "--deep", "-o", "json"]) == 6
    [partition] = json.loads(capsys.readouterr().out)["partitions"]
    assert partition["findings"][0]["type"] == "RecordMismatch"


def test_ctrl_c_during_deep_ends_quietly_and_the_handler_is_restored(
    spark: SimpleNamespace, sink_file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sink_job.spark.session

    disabled: list[int] = []

    @contextmanager
    def interrupted(settings: Any) -> Iterator[Any]:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            disabled.append(logging.root.manager.disable)
        yield None

    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(sink_job.spark.session, "session", interrupted)
    assert cli.main(["verify", sink_file, "--deep"]) == 130
    assert disabled == [logging.CRITICAL]
    assert signal.getsignal(signal.SIGINT) is before


def test_steps_are_shown_on_a_terminal_only(
    ended: list[str], sink_file: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cli.main(["verify", sink_file])
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    cli.main(["verify", sink_file])
    assert "requesting the checksums of 3 objects" in capsys.readouterr().err
