"""The catalog of AWS Glue: its client, and what AWS' errors mean. tests/data/test_glue_catalog.py sends commits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from botocore import exceptions as boto

from sink_job.api.enums import CatalogType
from sink_job.api.errors import AccessDenied, ConfigurationError, InvalidCredentials, TransientError
from sink_job.api.sections.tables_section import CatalogSpec
from sink_job.tables.catalog.access import CatalogAccess
from sink_job.tables.catalog.glue import aws_error, open_glue
from sink_job.tables.catalogs import CommitUnknown, IcebergCatalog

SPEC = CatalogSpec(type=CatalogType.GLUE, region="eu-central-1", warehouse="s3://lake/tables")


def answered(code: str) -> boto.ClientError:
    return boto.ClientError({"Error": {"Code": code, "Message": "why"}}, "UpdateTable")


def test_the_client_sends_each_request_once_to_the_endpoint_of_the_region() -> None:
    client: Any = open_glue("default", SPEC, CatalogAccess(), {}).glue
    assert client.meta.endpoint_url == "https://glue.eu-central-1.amazonaws.com"
    assert client.meta.config.retries["total_max_attempts"] == 1


def test_certificates_that_are_none_are_a_configuration_error(tmp_path: Path) -> None:
    path = tmp_path / "ca.crt"
    path.write_text("none")
    with pytest.raises(ConfigurationError, match=r"check spec\.tables\.catalog\.caSecret"):
        open_glue("default", SPEC, CatalogAccess(ca_file=path), {})


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (answered("AccessDeniedException"), AccessDenied),
        (answered("UnrecognizedClientException"), InvalidCredentials),
        (answered("ThrottlingException"), TransientError),
        (answered("InternalServiceException"), TransientError),
        (boto.NoCredentialsError(), InvalidCredentials),
        (boto.SSLError(endpoint_url="https://x", error=ValueError("certificate verify failed")), ConfigurationError),
        (boto.ReadTimeoutError(endpoint_url="https://x"), TransientError),
    ],
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_errors_of_aws_have_their_meaning(error: Exception, kind: type[Exception]) -> None:
    assert type(aws_error(error)) is kind


def test_other_errors_are_not_those_of_aws() -> None:
    assert aws_error(ValueError("x")) is None


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (answered("InternalServiceException"), CommitUnknown),
        (boto.ReadTimeoutError(endpoint_url="https://x"), CommitUnknown),
        (answered("AccessDeniedException"), AccessDenied),
    ],
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_a_commit_that_may_have_been_applied_is_unknown(error: Exception, kind: type[Exception]) -> None:
    class _Failing:
        def commit_table(self, *_: object) -> None:
            raise error

    failing: Any = _Failing()
    table: Any = None
    with pytest.raises(kind):
        IcebergCatalog(failing, "Glue at eu-central-1", aws_error).commit(table, (), ())
