"""The connection settings of a registry, from a manifest and the directories of mounted Secrets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sink_job.api.enums import RegistryType, SubjectNameStrategy
from sink_job.api.errors import SecretNotFound
from sink_job.api.sections.registry_section import RegistrySpec
from sink_job.registry.settings import RegistrySettings, authorities
from sink_job.s3.access.assumed_role import AssumedRole

URL = "https://registry.example.com:8081"
ROLE = "arn:aws:iam::123456789012:role/schemas"


def registry(**fields: Any) -> RegistrySpec:
    return RegistrySpec.model_validate({"url": [URL], **fields})


def test_the_settings_of_glue_have_the_region_the_registry_and_the_role() -> None:
    spec = registry(
        type="Glue", url=None, region="eu-central-1", name="travel", assumeRole={"arn": ROLE, "externalId": "s3sink"}
    )
    assert RegistrySettings.of(spec, {}) == RegistrySettings(
        type=RegistryType.GLUE,
        region="eu-central-1",
        registry_name="travel",
        role=AssumedRole(arn=ROLE, external_id="s3sink"),
    )


def test_settings_have_the_paths_of_the_mounted_secrets(tmp_path: Path) -> None:
    spec = registry(
        url=[f"{URL}/"],
        credentials={"secret": "login"},
        caSecret={"secret": "ca", "key": "ca.crt"},
        clientSecret={"secret": "client"},
        subjects="RecordName",
    )
    directories = {name: tmp_path / name for name in ("login", "ca", "client")}
    assert RegistrySettings.of(spec, directories) == RegistrySettings(
        urls=(URL,),
        credentials_dir=tmp_path / "login",
        ca_file=tmp_path / "ca" / "ca.crt",
        client_dir=tmp_path / "client",
        subjects=SubjectNameStrategy.RECORD_NAME,
    )


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("credentials", {"secret": "absent"}),
        ("caSecret", {"secret": "absent", "key": "ca.crt"}),
        ("clientSecret", {"secret": "absent"}),
    ],
)
def test_a_secret_that_is_not_mounted_is_reported(field: str, value: dict[str, str]) -> None:
    with pytest.raises(SecretNotFound, match=rf"spec\.format\.registry\.{field}\.secret: the Secret absent"):
        RegistrySettings.of(registry(**{field: value}), {})


def test_messages_name_all_urls_or_the_region_of_glue() -> None:
    assert RegistrySettings(urls=("https://a", "https://b")).url == "https://a, https://b"
    assert RegistrySettings(type=RegistryType.GLUE, region="eu-central-1").url == "AWS Glue in eu-central-1"


def test_the_default_authorities_need_no_file() -> None:
    assert authorities(RegistrySettings(urls=(URL,))) is None


@pytest.mark.parametrize("kind", ["missing", "directory"])
def test_authorities_that_are_no_file_are_reported_with_the_field(tmp_path: Path, kind: str) -> None:
    file = tmp_path / "ca.crt"
    if kind == "directory":
        file.mkdir()
    with pytest.raises(SecretNotFound, match=rf"registry {URL}: the file .*ca\.crt does not exist: check .*caSecret"):
        authorities(RegistrySettings(urls=(URL,), ca_file=file))
    if kind == "missing":
        file.touch()
        assert authorities(RegistrySettings(urls=(URL,), ca_file=file)) == file
