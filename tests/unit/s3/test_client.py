"""The client of a process: one for equal settings."""

import dataclasses
import os
from collections.abc import Iterator

import pytest

from sink_job.api.errors import SecretNotFound
from sink_job.s3 import S3Client, S3Settings, client, connect


@pytest.fixture(autouse=True)
def _own_clients(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Closes the clients that a test has created."""
    created: dict[tuple[int, S3Settings], S3Client] = {}
    monkeypatch.setattr(client, "_clients", created)
    yield
    for each in created.values():
        each.close()


def test_equal_settings_have_one_client(settings: S3Settings) -> None:
    assert connect(settings) is connect(dataclasses.replace(settings))


@pytest.mark.parametrize("change", [{"bucket": "other"}, {"region": "eu-central-1"}, {"read_timeout_s": 1.0}])
def test_other_settings_have_a_client_of_their_own(settings: S3Settings, change: dict[str, object]) -> None:
    other = dataclasses.replace(settings, **change)  # type: ignore[arg-type]
    assert connect(other) is not connect(settings)
    assert connect(other).settings == other


def test_a_forked_process_does_not_use_the_connections_of_its_parent(
    settings: S3Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = connect(settings)
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert connect(settings) is not parent


def test_settings_without_a_usable_secret_leave_no_client(settings: S3Settings) -> None:
    assert settings.credentials_dir is not None
    (settings.credentials_dir / "AWS_ACCESS_KEY_ID").unlink()
    with pytest.raises(SecretNotFound):
        connect(settings)
    (settings.credentials_dir / "AWS_ACCESS_KEY_ID").write_text("a-key")
    assert connect(settings).bucket == "bucket"


def test_a_client_is_shown_by_its_bucket_without_keys(s3: S3Client) -> None:
    assert repr(s3) == "S3Client(s3://bucket)"
    assert (s3.bucket, s3.url) == ("bucket", "s3://bucket")
