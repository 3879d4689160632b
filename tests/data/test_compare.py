"""`s3sink compare` on a real S3 server, with the objects of the other writer in another bucket."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sink_job.cli import main as cli
from sink_job.driver import logs
from tests.support.sink_fixture import SinkFixture, manifest
from tests.support.synthetic_log import SyntheticLog
from tests.support.verify_sink import CAUGHT_UP

pytestmark = pytest.mark.data


@pytest.fixture
def command(sink_fixture: SinkFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command, after a sink has copied two topic-partitions, and another writer has to a second bucket."""
    monkeypatch.setattr(logs, "set_up", lambda form: None)
    sink_fixture.run(SyntheticLog(partitions=2), CAUGHT_UP, flush_size=10, max_records=25)
    other = sink_fixture.sibling()
    for key, body in sink_fixture.contents().items():
        other.s3.put(key.replace("topics/", "connect/", 1), body.replace(b'": ', b'":'))
    path = tmp_path / "sink.yaml"
    spec = json.loads(manifest(sink_fixture.bucket, sink_fixture.endpoint, flush_size=10))
    spec["spec"]["s3"]["credentials"] = {"secret": "keys"}
    path.write_text(json.dumps(spec))
    keys = f"keys={sink_fixture.folder / 'secret'}"
    return ["compare", str(path), "--secret", keys, "--with", f"s3://{other.bucket}/connect", "-o", "json"]


def test_equal_records_in_two_buckets_are_equal(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*command, "--deep"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [(p["objects"], p["records"], p["both"]) for p in found["partitions"]] == [(10, 100, [[0, 99]])] * 2


def test_a_deleted_object_of_the_sink_is_missing(
    command: list[str], sink_fixture: SinkFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    key = next(key for key in sink_fixture.contents() if "+1+0000000030" in key)
    sink_fixture.s3.delete([key])
    assert cli.main(command) == 5
    (finding,) = (f for p in json.loads(capsys.readouterr().out)["partitions"] for f in p["findings"])
    assert (finding["type"], finding["offset"], finding["key"]) == ("ObjectMissing", 30, key)


def test_a_bucket_that_does_not_exist_is_a_configuration_error(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*command, "--with", "s3://no-such-bucket-of-this-test/x"]) == 7
    assert "no-such-bucket-of-this-test" in capsys.readouterr().err
