import pickle
from pathlib import Path

import pytest

from sink_job.api import spec
from sink_job.api.errors import SecretNotFound
from sink_job.s3 import S3Settings, connect

SPEC = {
    "bucket": "archive",
    "region": "eu-central-1",
    "endpoint": "https://store.example.com",
    "pathStyle": True,
    "credentials": {"secret": "keys"},
    "caSecret": {"secret": "authority", "key": "ca.crt"},
}


def test_settings_come_from_the_manifest_and_the_directories_of_its_secrets() -> None:
    settings = S3Settings.of(spec.S3Spec.model_validate(SPEC), {"keys": Path("/k"), "authority": Path("/a")})
    assert settings == S3Settings(
        bucket="archive",
        region="eu-central-1",
        endpoint="https://store.example.com",
        path_style=True,
        credentials_dir=Path("/k"),
        ca_file=Path("/a/ca.crt"),
    )


def test_without_secrets_the_default_chain_and_the_systems_authorities_are_used() -> None:
    settings = S3Settings.of(spec.S3Spec(bucket="archive"), {})
    assert (settings.credentials_dir, settings.ca_file) == (None, None)


@pytest.mark.parametrize(("given", "missing"), [("keys", "spec.s3.caSecret.secret: authority"), ("authority", "keys")])
def test_a_secret_without_a_directory_is_named(given: str, missing: str) -> None:
    with pytest.raises(SecretNotFound, match=missing):
        S3Settings.of(spec.S3Spec.model_validate(SPEC), {given: Path("/x")})


def test_settings_travel_without_secrets(secret: Path) -> None:
    settings = S3Settings(bucket="archive", credentials_dir=secret)
    travelling = pickle.dumps(settings)
    assert pickle.loads(travelling) == settings
    assert b"the-secret-key" not in travelling
    assert "the-secret-key" not in repr(settings)


def test_equal_settings_share_a_client(settings: S3Settings) -> None:
    assert connect(settings) is connect(pickle.loads(pickle.dumps(settings)))


def test_other_settings_get_a_client_of_their_own(settings: S3Settings) -> None:
    assert connect(settings) is not connect(S3Settings(**{**vars(settings), "bucket": "another"}))


def test_a_file_of_authorities_that_is_not_there_is_named(tmp_path: Path, secret: Path) -> None:
    with pytest.raises(SecretNotFound, match=r"ca\.crt is not there"):
        connect(S3Settings(bucket="archive", region="x", credentials_dir=secret, ca_file=tmp_path / "ca.crt"))
