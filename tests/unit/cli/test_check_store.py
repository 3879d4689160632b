"""What `s3sink check-store` checks, prints and ends with."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import sink_job.s3
from sink_job.api.errors import AccessDenied, BucketNotFound, TransientError
from sink_job.cli import main as cli
from sink_job.cli.store_checks import Check, Outcome, check_store, exit_code
from sink_job.s3 import ChecksumMismatch, InvalidPart, PutResult, UploadedPart
from sink_job.s3.checksums import crc64nvme
from tests.support.memory_s3 import NOW, MemoryS3

PREFIX = "topics/_s3sink/default.flights/"
NAMES = ["access", "clock", "conditional writes", "multipart upload", "checksums", "lifecycle rules"]


class Store(MemoryS3):
    """A store that has all that a sink needs, until a test takes something away."""

    def __init__(self) -> None:
        super().__init__()
        self.clock: int | None = NOW
        self.verifies_checksums = True
        self.rules: Sequence[Mapping[str, Any]] = (
            {"Status": "Enabled", "Filter": {}, "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}},
        )

    def check_access(self) -> None:
        self.fault("check_access", "")

    def clock_ms(self) -> int | None:
        return self.clock

    def lifecycle_rules(self) -> Sequence[Mapping[str, Any]]:
        self.fault("lifecycle_rules", "")
        return self.rules

    def keeps_versions(self) -> bool:
        return False

    def upload_part(self, key: str, upload_id: str, number: int, body: bytes, crc: int | None = None) -> UploadedPart:
        if self.verifies_checksums and crc not in (None, crc64nvme(body)):
            raise ChecksumMismatch(key, key)
        return super().upload_part(key, upload_id, number, body)


@pytest.fixture
def store() -> Store:
    return Store()


def results(store: Store) -> dict[str, Check]:
    return {check.name: check for check in check_store(store, PREFIX, lambda: NOW)}  # type: ignore[arg-type]


def not_ok(store: Store) -> list[Check]:
    return [check for check in results(store).values() if check.outcome is not Outcome.OK]


def test_a_suitable_store_passes_all_checks_and_nothing_is_left_behind(store: Store) -> None:
    assert [(name, check.outcome) for name, check in results(store).items()] == [(name, "OK") for name in NAMES]
    assert (store.objects, store.uploads) == ({}, {})


def test_without_access_the_other_checks_are_skipped(store: Store) -> None:
    def no_bucket(call: str, key: str) -> None:
        raise BucketNotFound("s3://archive: no such bucket: create it")

    store.fault = no_bucket
    access, *others = results(store).values()
    assert access == Check(
        "access", Outcome.FAILED, "s3://archive: no such bucket: create it", "BucketNotFound", exit_code=7
    )
    assert {check.outcome for check in others} == {Outcome.SKIPPED}


def test_clocks_that_are_more_than_5_minutes_apart_fail_the_check(store: Store) -> None:
    store.clock = NOW + 301_000
    (failed,) = not_ok(store)
    assert (failed.name, failed.reason, failed.exit_code) == ("clock", "ClockSkew", 7)


def test_a_store_that_ignores_if_none_match_fails_the_conditional_writes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def put(key: str, body: bytes, **ignored: object) -> PutResult:
        return MemoryS3.put(store, key, body)

    monkeypatch.setattr(store, "put", put)
    (failed,) = not_ok(store)
    assert (failed.name, failed.reason) == ("conditional writes", "UnsupportedStore")
    assert "ignores If-None-Match: a put replaced an object" in failed.message


def test_a_store_that_demands_equal_parts_fails_the_multipart_upload(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    complete = MemoryS3.complete

    def equal_parts_only(key: str, upload_id: str, parts: Sequence[UploadedPart], crc: int | None = None) -> str:
        if len({part.size for part in parts[:-1]}) > 1:
            raise InvalidPart("All non-trailing parts must have the same length", key)
        return complete(store, key, upload_id, parts)

    monkeypatch.setattr(store, "complete", equal_parts_only)
    (failed,) = not_ok(store)
    assert (failed.name, failed.reason) == ("multipart upload", "UnsupportedStore")
    assert "parts have different sizes" in failed.message
    assert (store.objects, store.uploads) == ({}, {})


def test_a_store_that_accepts_a_wrong_checksum_gets_a_warning(store: Store) -> None:
    store.verifies_checksums = False
    checks = results(store)
    assert checks["checksums"].outcome is Outcome.WARNING
    assert exit_code(list(checks.values())) == 0
    assert store.uploads == {}


def test_missing_lifecycle_rules_are_a_warning_with_the_rule_to_add(store: Store) -> None:
    store.rules = ()
    (warning,) = not_ok(store)
    assert (warning.name, warning.outcome) == ("lifecycle rules", Outcome.WARNING)
    assert "AbortIncompleteMultipartUpload" in warning.message


def test_lifecycle_rules_that_cannot_be_read_are_a_warning(store: Store) -> None:
    def denied(call: str, key: str) -> None:
        if call == "lifecycle_rules":
            raise AccessDenied("access denied")

    store.fault = denied
    (warning,) = not_ok(store)
    assert warning.outcome is Outcome.WARNING
    assert "cannot be read: " in warning.message


def test_the_first_failure_decides_the_exit_code(store: Store) -> None:
    def busy(call: str, key: str) -> None:
        if call == "create_upload":
            raise TransientError("no answer")

    store.fault = busy
    store.clock = NOW + 301_000
    assert exit_code(list(results(store).values())) == 7
    store.clock = None
    assert exit_code(list(results(store).values())) == 75


# The command


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
