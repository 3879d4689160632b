"""`s3sink check-store` against a real S3 server."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from devtools.bucket_listing import objects, uploads
from devtools.s3 import S3Server, credentials_secret
from sink_job.cli import main as cli

pytestmark = pytest.mark.data


def words(s3: S3Server, bucket: str, credentials: Path) -> list[str]:
    place = ["--bucket", bucket, "--endpoint", s3.endpoint, "--region", "us-east-1", "--path-style"]
    return ["check-store", *place, "--credentials", str(credentials)]


def test_a_real_server_passes_the_checks_and_keeps_nothing(
    s3: S3Server, bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main([*words(s3, bucket, credentials_secret(tmp_path)), "--json"]) == 0
    *checks, rules = json.loads(capsys.readouterr().out)["checks"]
    names = ["access", "clock", "object lock", "conditional writes", "multipart upload", "checksums"]
    assert [(check["name"], check["outcome"]) for check in checks] == [(name, "OK") for name in names]
    assert (rules["name"], rules["outcome"] in ("OK", "WARNING")) == ("lifecycle rules", True)
    assert (objects(s3.client(), bucket, ledger=True), uploads(s3.client(), bucket)) == ({}, {})


def test_a_missing_bucket_ends_with_7_and_what_to_do(
    s3: S3Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words(s3, "there-is-no-such-bucket", credentials_secret(tmp_path))) == 7
    assert "access              FAILED (BucketNotFound)\n    s3://there-is-no-such-bucket" in capsys.readouterr().out


def test_wrong_keys_end_with_7_and_are_not_shown(
    s3: S3Server, bucket: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = "a-wrong-secret-key"
    assert cli.main(words(s3, bucket, credentials_secret(tmp_path, secret_key=secret))) == 7
    shown = capsys.readouterr()
    assert "FAILED (InvalidCredentials)" in shown.out
    assert secret not in shown.out + shown.err
