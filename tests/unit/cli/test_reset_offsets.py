"""The command line of `s3sink reset-offsets`."""

from __future__ import annotations

from pathlib import Path

import pytest

from sink_job.cli import main as cli

MANIFEST = """
apiVersion: s3sink.io/v1alpha1
kind: S3Sink
metadata: {name: flights}
spec:
  kafka: {bootstrapServers: "kafka:9092", topics: [flights]}
  rotation: {flushSize: 1}
  s3: {bucket: archive}
  offsets: {reset: {nonce: first, to: Earliest}}
"""


@pytest.mark.parametrize(
    ("flag", "value"),
    [("--nonce", "second"), ("--on-existing", "NewPrefix"), ("--timestamp", "0"), ("--offset", "flights:0:1")],
)
def test_a_flag_that_needs_to_is_rejected_with_the_request_of_the_manifest(
    flag: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sink.yaml").write_text(MANIFEST)
    assert cli.main(["reset-offsets", str(tmp_path / "sink.yaml"), flag, value]) == 2
    assert f"--to is missing: {flag} has no effect without it" in capsys.readouterr().err
