"""What `s3sink check-store` prints and ends with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import sink_job.s3
from sink_job.api.errors import AccessDenied
from sink_job.cli import main as cli
from tests.unit.cli.checked_store import NAMES, Store


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def settings(store: Store, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Settings that the command connects with; the store behind them is `store`, with the clock of this host."""
    connected: list[Any] = []
    store.clock = None

    def connect(settings: Any) -> Store:
        connected.append(settings)
        return store

    monkeypatch.setattr(sink_job.s3, "connect", connect)
    return connected


def test_the_table_has_a_line_for_each_check_and_says_what_follows(
    settings: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["check-store", "--bucket", "archive", "--endpoint", "http://store:7070"]) == 0
    first, *lines, last = capsys.readouterr().out.splitlines()
    assert first == "s3://archive/topics/_s3sink/default.check-store/ at http://store:7070"
    assert lines == [f"{name:<20}OK" for name in NAMES]
    assert last == "A sink can use this store."


def test_a_failed_check_is_on_its_line_with_reason_and_message(
    settings: list[Any], store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    def denied(call: str, key: str) -> None:
        raise AccessDenied("access denied: the credentials need s3:ListBucket")

    store.fault = denied
    assert cli.main(["check-store", "--bucket", "archive"]) == 7
    lines = capsys.readouterr().out.splitlines()
    assert lines[1:3] == [
        "access              FAILED (AccessDenied)",
        "    access denied: the credentials need s3:ListBucket",
    ]
    assert lines[-1] == "A sink cannot use this store: access."


@pytest.mark.parametrize("flag", [["-o", "json"], ["--json"]])
def test_as_json_the_checks_have_outcome_reason_and_message(
    settings: list[Any], store: Store, flag: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    store.rules = ()
    assert cli.main(["check-store", "--bucket", "archive", *flag]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["usable"] is True
    assert [(check["name"], check["outcome"]) for check in found["checks"]] == [
        *((name, "OK") for name in NAMES[:-1]),
        ("lifecycle rules", "WARNING"),
    ]


def test_the_bucket_of_a_manifest_is_checked_below_the_ledger_of_the_sink(
    settings: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["check-store", "examples/flights.yaml"]) == 0
    assert capsys.readouterr().out.startswith("s3://archive/lake/_s3sink/default.flights/ at http://127.0.0.1:7070\n")
    assert (settings[0].bucket, settings[0].path_style) == ("flights", True)


@pytest.mark.parametrize(
    ("flag", "kind"), [("--credentials", "a directory"), ("--ca-file", "a file")], ids=["credentials", "ca-file"]
)
def test_a_missing_file_is_reported_by_the_flag_that_names_it(
    settings: list[Any], flag: str, kind: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["check-store", "--bucket", "archive", flag, f"{tmp_path}/none"]) == 7
    assert capsys.readouterr().err == f"s3sink: SecretNotFound: {flag} {tmp_path}/none is not {kind}\n"
    assert settings == []


def test_flags_become_the_settings_of_the_connection(settings: list[Any], tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    words = ["--bucket", "archive", "--region", "eu-central-1", "--path-style", "--credentials", str(tmp_path)]
    cli.main(["check-store", *words, "--ca-file", str(tmp_path / "ca.pem")])
    (used,) = settings
    assert (used.bucket, used.region, used.path_style) == ("archive", "eu-central-1", True)
    assert (used.credentials_dir, used.ca_file) == (tmp_path, tmp_path / "ca.pem")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no bucket: specify SINK.yaml or --bucket NAME"),
        (["examples/flights.yaml", "--bucket", "b"], "--bucket: not allowed with SINK.yaml, which names the bucket"),
        (["--bucket", "No_Bucket"], "spec.s3.bucket: No_Bucket is not a valid bucket name"),
        (["--bucket", "archive", "--endpoint", "store"], "spec.s3.endpoint: store is not the URL of a store"),
    ],
)
def test_an_invalid_command_line_exits_with_2_before_any_request(
    settings: list[Any], words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["check-store", *words]) == 2
    assert message in capsys.readouterr().err
    assert settings == []
