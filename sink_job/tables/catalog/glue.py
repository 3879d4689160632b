"""PyIceberg's catalog of AWS Glue with the connections of a sink, and what AWS' errors mean.

A commit is one UpdateTable with the `VersionId` of the table that the commit was checked against, so AWS rejects it if
anything was changed since, also if it arrives late. A new table is one CreateTable, which AWS rejects if the table
exists. The client sends each request once: botocore's retries would repeat a commit whose reply was lost.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from botocore import exceptions as boto
from pyiceberg.catalog.glue import GlueCatalog

from sink_job.api.errors import AccessDenied, ConfigurationError, InvalidCredentials, SinkError, TransientError
from sink_job.api.sections.tables_section import CatalogSpec
from sink_job.s3.access.aws_clients import DENIALS, INVALID_KEYS, AwsAccess, aws_client
from sink_job.tables.catalog.access import SECTION, CatalogAccess

_NEEDS: Final = (
    "the driver's identity needs glue:GetTable, UpdateTable, CreateTable, GetDatabase and CreateDatabase, and "
    f"sts:AssumeRole for {SECTION}.assumeRole"
)
_KEYS: Final = (
    f"AWS does not accept the credentials: fix the Secret of {SECTION}.credentials, or without it of "
    "spec.s3.credentials"
)
_NO_KEYS: Final = (
    f"no credentials: give the driver's pod an IAM role, set {SECTION}.credentials, or set AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY"
)


def open_glue(name: str, spec: CatalogSpec, access: CatalogAccess, properties: Mapping[str, str]) -> GlueCatalog:
    """The catalog. Sends no request. Raises ConfigurationError."""
    return GlueCatalog(name, glue_client(spec, access), **properties)


def glue_client(spec: CatalogSpec, access: CatalogAccess) -> Any:
    """botocore's client of AWS Glue, which sends each request once. Raises ConfigurationError."""
    own = AwsAccess(
        region=spec.region,
        endpoint=spec.uri,
        credentials_dir=access.credentials_dir,
        setting=f"{SECTION}.credentials",
        role=access.role,
        ca_file=access.authorities(),
        proxy=access.proxy,
        timeout_s=access.timeout_s,
    )
    try:
        return aws_client("glue", own)
    except OSError as error:
        raise ConfigurationError(
            f"the certificates cannot be read ({type(error).__name__}): check {SECTION}.caSecret; they must be PEM"
        ) from None


def aws_error(error: Exception, needs: str = _NEEDS) -> SinkError | None:
    """What an error of botocore means; None for other errors. `needs`: the permissions of the driver.
    After a ConfigurationError AWS has done nothing."""
    if isinstance(error, boto.ClientError):
        answer = error.response.get("Error", {})
        code, message = str(answer.get("Code", "")), str(answer.get("Message", ""))
        text = f"{error.operation_name}: {code}: {message}"
        if code in DENIALS:
            return AccessDenied(f"{needs} ({text})")
        return InvalidCredentials(f"{_KEYS} ({text})") if code in INVALID_KEYS else TransientError(text)
    if isinstance(error, boto.NoCredentialsError | boto.PartialCredentialsError):
        return InvalidCredentials(_NO_KEYS)
    if isinstance(error, boto.SSLError) and "certificate verify failed" in str(error):
        return ConfigurationError(
            f"the certificate of the endpoint is not trusted: set its certificate authority in {SECTION}.caSecret"
        )
    return TransientError(f"{type(error).__name__}: {error}") if isinstance(error, boto.BotoCoreError) else None
