"""How a catalog is reached, from a manifest."""

from __future__ import annotations

from pathlib import Path

import pytest

from sink_job.api.enums import CatalogType
from sink_job.api.errors import SecretNotFound
from sink_job.api.sections.secret_refs import SecretKey, SecretRef
from sink_job.api.sections.tables_section import CatalogSpec
from sink_job.s3 import S3Settings
from sink_job.s3.proxy import ProxySettings
from sink_job.tables.catalog.access import CatalogAccess, CatalogSecrets

SPEC = CatalogSpec(
    type=CatalogType.REST,
    uri="https://catalog.example.com",
    credentials=SecretRef(secret="login"),
    ca_secret=SecretKey(secret="ca", key="ca.crt"),
)
S3 = S3Settings(bucket="archive", proxy=ProxySettings(url="http://proxy:3128"))


def test_login_and_authorities_are_paths_in_the_mounts_and_the_proxy_is_that_of_s3() -> None:
    secrets = CatalogSecrets({"login": Path("/login"), "ca": Path("/ca")})
    found = CatalogAccess.of(SPEC, secrets, S3)
    assert (found.credentials_dir, found.ca_file, found.proxy) == (Path("/login"), Path("/ca/ca.crt"), S3.proxy)


@pytest.mark.parametrize(("mounted", "field"), [("ca", "credentials"), ("login", "caSecret")])
def test_a_secret_that_is_not_mounted_is_named_with_its_field(mounted: str, field: str) -> None:
    with pytest.raises(SecretNotFound, match=f"spec.tables.catalog.{field}.secret: the Secret .* is not mounted"):
        CatalogAccess.of(SPEC, CatalogSecrets({mounted: Path("/x")}), S3)


def test_a_file_of_authorities_that_does_not_exist_is_named(tmp_path: Path) -> None:
    assert CatalogAccess().authorities() is None
    with pytest.raises(SecretNotFound, match=r"ca\.crt does not exist: check spec\.tables\.catalog\.caSecret"):
        CatalogAccess(ca_file=tmp_path / "ca.crt").authorities()
