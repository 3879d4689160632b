"""`s3sink plan`: its arguments, what it reads, and what it prints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sink_job.api.topic_partition import TopicPartition
from sink_job.cli import kafka_access
from sink_job.cli import main as cli
from sink_job.driver import broker_check
from sink_job.plan.replay_log import ReplayClock, ReplayLog
from tests.unit.plan.samples import partition, sample

MANIFEST = """\
apiVersion: s3sink.io/v1alpha1
kind: S3Sink
metadata: {name: planned}
spec:
  kafka: {bootstrapServers: "127.0.0.1:9", topics: [t]}
  format: {converter: Json, output: Json}
  rotation: {flushSize: FLUSH}
  s3: {bucket: planned, region: eu-central-1, credentials: {secret: missing}}
"""


class _Kafka(ReplayLog):
    def offsets_for_times(self, partitions: Sequence[TopicPartition], ms: int) -> dict[TopicPartition, int]:
        return self.beginning_offsets(partitions)


@pytest.fixture
def kafka(log_formats: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """300 records of one partition, a second apart."""
    log = _Kafka(sample({0: partition([1_000 * n for n in range(300)])}), ReplayClock(1 << 60))

    @contextmanager
    def access(*_: object, reads: bool) -> Iterator[tuple[Any, Any]]:
        assert reads
        yield log, log

    monkeypatch.setattr(kafka_access, "kafka_access", access)
    monkeypatch.setattr(broker_check, "wait_for_broker", lambda *_, **__: None)


def _manifest(folder: Path, name: str, flush: int, topic: str = "t") -> str:
    file = folder / name
    file.write_text(MANIFEST.replace("FLUSH", str(flush)).replace("[t]", f"[{topic}]"))
    return str(file)


def _run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.main(["plan", *words])
    found = capsys.readouterr()
    return code, found.out, found.err


@pytest.mark.usefixtures("kafka")
def test_a_plan_needs_no_bucket_and_no_secret_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = _run(capsys, _manifest(tmp_path, "sink.yaml", 100), "--records", "300")
    assert code == 0
    assert "Sample: 300 records" in out
    row = next(line for line in out.splitlines() if line.startswith("  closed by"))
    assert row.split()[2:] == ["flushSize", "3"]


@pytest.mark.usefixtures("kafka")
def test_two_manifests_are_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, other = _manifest(tmp_path, "one.yaml", 100), _manifest(tmp_path, "other.yaml", 50)
    _, out, _ = _run(capsys, one, other, "--records", "300")
    row = next(line for line in out.splitlines() if line.startswith("  closed by"))
    assert row.split()[2:] == ["flushSize", "3", "flushSize", "6"]


@pytest.mark.usefixtures("kafka")
def test_the_output_can_be_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = _run(capsys, _manifest(tmp_path, "sink.yaml", 100), "--records", "300", "-o", "json")
    found = json.loads(out)
    assert found["sample"]["records"] == 300
    assert found["plans"][0]["topics"][0]["reasons"] == {"flushSize": 3}
    assert found["plans"][0]["cost"]["currency"] == "USD"


@pytest.mark.usefixtures("kafka")
def test_the_page_and_the_prices_are_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    prices, page = tmp_path / "prices.yaml", tmp_path / "plan.html"
    prices.write_text("writes: 1\nreads: 1\nstorage: 1\ncurrency: EUR\n")
    words = [_manifest(tmp_path, "sink.yaml", 100), "--records", "300", "--prices", str(prices), "--html", str(page)]
    code, out, err = _run(capsys, *words)
    assert code == 0
    assert " EUR" in out
    assert f"{page}: written" in err
    assert "closed by flushSize" in page.read_text()


WRONG = {
    "three manifests": (["one", "one", "one"], [], "at most two manifests"),
    "other topics": (["one", "topic"], [], "read different topics"),
    "no file of prices": (["one"], ["--prices", "absent.yaml"], "absent.yaml cannot be read"),
    "a page in no folder": (["one"], ["--records", "9", "--html", "absent/plan.html"], "cannot be written"),
    "a time in the future": (["one"], ["--from", "2999-01-01"], "--from is in the future"),
}


@pytest.mark.usefixtures("kafka")
@pytest.mark.parametrize("case", WRONG.values(), ids=WRONG)
def test_wrong_arguments_are_one_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, case: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    files = {"one": _manifest(tmp_path, "one.yaml", 1), "topic": _manifest(tmp_path, "topic.yaml", 1, topic="u")}
    names, more, message = case
    code, out, err = _run(capsys, *(files[name] for name in names), *more)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "words", [["--sample", "0s"], ["--sample", "ten"], ["--records", "0"], ["--records", "-1"], ["--from", "today"]]
)
def test_wrong_amounts_are_rejected(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["plan", "sink.yaml", *words])
    assert words[0] in capsys.readouterr().err
