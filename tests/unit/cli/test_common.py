"""Common parts of the commands: reading the manifest and locating its secrets."""

from __future__ import annotations

import argparse
import io
from pathlib import Path

import pytest

from sink_job.api.errors import InvalidSpec, SecretNotFound
from sink_job.api.parser import load_sink
from sink_job.api.spec import Sink
from sink_job.cli import common
from sink_job.driver.secret_registry import SECRETS

MANIFEST = """
apiVersion: s3sink.io/v1alpha1
kind: S3Sink
metadata: {name: flights}
spec:
  kafka: {bootstrapServers: "localhost:9092", topics: [flights]}
  rotation: {flushSize: 100}
  s3: {bucket: archive, credentials: {secret: s3-keys}}
"""


def arguments(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    common.add_sink(parser)
    return parser.parse_args(["sink.yaml", *words])


@pytest.fixture
def sink() -> Sink:
    return load_sink(MANIFEST)


def test_a_manifest_is_read_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "sink.yaml"
    path.write_text(MANIFEST)
    assert common.read_sink(str(path)).name == "flights"


def test_a_dash_reads_the_manifest_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(MANIFEST))
    assert common.read_sink("-").name == "flights"


def test_a_missing_manifest_is_an_invalid_spec(tmp_path: Path) -> None:
    with pytest.raises(InvalidSpec, match=r"absent\.yaml cannot be read: No such file"):
        common.read_sink(str(tmp_path / "absent.yaml"))


def test_a_manifest_that_is_not_utf_8_is_an_invalid_spec(tmp_path: Path) -> None:
    path = tmp_path / "sink.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidSpec, match="is not UTF-8 text"):
        common.read_sink(str(path))


def test_secrets_are_found_by_argument_and_in_the_secrets_directory(tmp_path: Path, sink: Sink) -> None:
    (tmp_path / "all" / "s3-keys").mkdir(parents=True)
    (tmp_path / "all" / "..data").mkdir()
    (tmp_path / "kafka").mkdir()
    found = common.secret_dirs(
        arguments("--secret", f"kafka={tmp_path}/kafka"), sink, {"S3SINK_SECRETS_DIR": f"{tmp_path}/all"}
    )
    assert found["s3-keys"] == tmp_path / "all" / "s3-keys"
    assert found["kafka"] == tmp_path / "kafka"


def test_an_argument_takes_precedence_over_the_secrets_directory(tmp_path: Path, sink: Sink) -> None:
    (tmp_path / "all" / "s3-keys").mkdir(parents=True)
    (tmp_path / "mine").mkdir()
    environ = {"S3SINK_SECRETS_DIR": f"{tmp_path}/all"}
    found = common.secret_dirs(arguments("--secret", f"s3-keys={tmp_path}/mine"), sink, environ)
    assert found == {"s3-keys": tmp_path / "mine"}


def test_a_missing_directory_of_a_secret_is_reported(tmp_path: Path, sink: Sink) -> None:
    with pytest.raises(SecretNotFound, match=r"--secret s3-keys: .*absent is not a directory"):
        common.secret_dirs(arguments("--secret", f"s3-keys={tmp_path}/absent"), sink, {})
    with pytest.raises(SecretNotFound, match=r"S3SINK_SECRETS_DIR: .*absent is not a directory"):
        common.secret_dirs(arguments(), sink, {"S3SINK_SECRETS_DIR": f"{tmp_path}/absent"})


@pytest.mark.parametrize("word", ["s3-keys", "=dir", "name=", ""])
def test_a_secret_argument_without_name_or_directory_is_rejected(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        arguments("--secret", word)
    assert end.value.code == 2
    assert "is not NAME=DIR" in capsys.readouterr().err


def test_the_secrets_of_a_sink_are_redacted_in_the_output(tmp_path: Path, sink: Sink) -> None:
    (tmp_path / "AWS_SECRET_ACCESS_KEY").write_text("very+secret/key\n")
    (tmp_path / "AWS_ACCESS_KEY_ID").write_text("AKIAEXAMPLE")
    common.secret_dirs(arguments("--secret", f"s3-keys={tmp_path}"), sink, {"AWS_SESSION_TOKEN": "a-long-token"})
    assert SECRETS("AKIAEXAMPLE very+secret/key a-long-token") == "AKIAEXAMPLE [hidden] [hidden]"


BEHIND_A_PROXY = """
apiVersion: s3sink.io/v1alpha1
kind: S3Sink
metadata: {name: flights}
spec:
  kafka: {bootstrapServers: "localhost:9092", topics: [flights]}
  rotation: {flushSize: 100}
  s3: {bucket: archive, proxy: {url: "http://proxy:3128"}}
  format: {converter: Avro, registry: {url: ["https://registry:8081"]}}
"""


def test_commands_reach_the_registry_through_the_proxy_of_the_store() -> None:
    settings = common.registry_settings(load_sink(BEHIND_A_PROXY), {})
    assert settings is not None
    assert settings.proxy is not None
    assert settings.proxy.url == "http://proxy:3128"
    with common.schemas_of(load_sink(BEHIND_A_PROXY), {}) as schemas:
        assert schemas is not None


def test_a_sink_without_schemas_has_no_registry(sink: Sink) -> None:
    assert common.registry_settings(sink, {}) is None
    with common.schemas_of(sink, {}) as schemas:
        assert schemas is None


@pytest.mark.parametrize("text", ["2025-11-24T16:00:00Z", "2025-11-24T17:00:00+01:00", "1764000000000"])
def test_a_time_is_a_text_with_its_zone_or_milliseconds(text: str) -> None:
    assert common.parse_time(text) == 1_764_000_000_000


@pytest.mark.parametrize("text", ["20251124", "1" * 20, "now"])
def test_another_text_is_no_time(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        common.parse_time(text)
