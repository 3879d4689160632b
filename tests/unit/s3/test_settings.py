import pickle
from pathlib import Path

import pytest

from sink_job.api.errors import SecretNotFound
from sink_job.api.sections.job_sections import S3Spec
from sink_job.s3 import S3Settings, connect

SPEC = {
    "bucket": "archive",
    "region": "eu-central-1",
    "endpoint": "https://store.example.com",
    "pathStyle": True,
    "credentials": {"secret": "keys"},
    "caSecret": {"secret": "authority", "key": "ca.crt"},
}


def test_settings_are_derived_from_the_manifest_and_the_directories_of_its_secrets() -> None:
    settings = S3Settings.of(S3Spec.model_validate(SPEC), {"keys": Path("/k"), "authority": Path("/a")})
    assert settings == S3Settings(
        bucket="archive",
        region="eu-central-1",
        endpoint="https://store.example.com",
        path_style=True,
        credentials_dir=Path("/k"),
        ca_file=Path("/a/ca.crt"),
    )


def test_without_secrets_the_defaults_of_botocore_and_the_system_are_used() -> None:
    settings = S3Settings.of(S3Spec(bucket="archive"), {})
    assert (settings.credentials_dir, settings.ca_file) == (None, None)


@pytest.mark.parametrize(
    ("given", "missing"), [("keys", "spec.s3.caSecret.secret: the Secret authority"), ("authority", "keys")]
)
def test_the_error_for_a_secret_without_a_directory_names_it(given: str, missing: str) -> None:
    with pytest.raises(SecretNotFound, match=missing):
        S3Settings.of(S3Spec.model_validate(SPEC), {given: Path("/x")})


def test_pickled_settings_contain_no_secret(secret: Path) -> None:
    settings = S3Settings(bucket="archive", credentials_dir=secret)
    pickled = pickle.dumps(settings)
    assert pickle.loads(pickled) == settings
    assert b"the-secret-key" not in pickled
    assert "the-secret-key" not in repr(settings)


def test_equal_settings_share_a_client(settings: S3Settings) -> None:
    assert connect(settings) is connect(pickle.loads(pickle.dumps(settings)))


def test_different_settings_have_different_clients(settings: S3Settings) -> None:
    assert connect(settings) is not connect(S3Settings(**{**vars(settings), "bucket": "another"}))


def test_the_error_for_a_missing_file_of_authorities_names_it(tmp_path: Path, secret: Path) -> None:
    with pytest.raises(SecretNotFound, match=r"ca\.crt does not exist"):
        connect(S3Settings(bucket="archive", region="x", credentials_dir=secret, ca_file=tmp_path / "ca.crt"))
