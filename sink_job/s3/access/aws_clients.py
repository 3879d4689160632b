"""Clients of services of AWS other than S3, such as Glue: endpoint, credentials, the role that is assumed, proxy."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final

import botocore.session
from botocore.config import Config

from sink_job.api.version import package_version
from sink_job.s3.access.assumed_role import AssumedRole, RoleProvider
from sink_job.s3.access.credentials import DirectoryProvider
from sink_job.s3.proxy import ProxySettings, proxies
from sink_job.s3.session import aws_endpoint, use_provider

_MAX_CONNECTIONS: Final = 10

DENIALS: Final = frozenset(("AccessDeniedException", "AccessDenied", "NotAuthorized", "OptInRequired"))
"""The codes of errors with which AWS rejects a request for its identity."""
INVALID_KEYS: Final = frozenset(
    (
        "UnrecognizedClientException",
        "InvalidClientTokenId",
        "InvalidSignatureException",
        "SignatureDoesNotMatch",
        "IncompleteSignature",
        "MissingAuthenticationToken",
        "MissingAuthenticationTokenException",
        "InvalidIdentityToken",
    )
)
"""Those with which AWS does not accept the credentials of a request."""


@dataclass(frozen=True, kw_only=True)
class AwsAccess:
    """`endpoint`: None: that of the region. `credentials_dir`: directory of a mounted Secret; None: botocore's default
    chain. `setting`: the field of the manifest with this Secret. `role`: the role that is assumed with these
    credentials. `ca_file`: certificate authorities; None: the default ones. `proxy`: None: that of the environment.
    `timeout_s`: maximum time without a response on a connection."""

    region: str | None
    setting: str
    endpoint: str | None = None
    credentials_dir: Path | None = None
    role: AssumedRole | None = None
    ca_file: Path | None = None
    proxy: ProxySettings | None = None
    timeout_s: float = 15.0


def aws_client(service: str, access: AwsAccess) -> Any:
    """A client that sends each request once. Raises SecretNotFound, botocore's errors, and OSError for certificates
    that cannot be read."""
    ca_file, session = access.ca_file, botocore.session.Session()
    through: dict[str, Any] = {}
    through_sts: dict[str, Any] = {}
    if access.proxy is not None:
        url = access.endpoint or aws_endpoint(session, service, access.region)
        through = proxies(access.proxy, url, ca_file)
        through_sts = proxies(access.proxy, aws_endpoint(session, "sts", access.region), ca_file)
    if through_sts:
        session.set_default_client_config(Config(**through_sts))
    if ca_file is not None:
        ssl.create_default_context(cafile=str(ca_file))  # botocore reads it with the first request
    if access.credentials_dir is not None:
        use_provider(session, DirectoryProvider(access.credentials_dir, access.setting))
    if access.role is not None:
        session, source = botocore.session.Session(), session
        create_client = partial(source.create_client, region_name=access.region, config=_config(access, through_sts))
        use_provider(session, RoleProvider(access.role, source, create_client))
    return session.create_client(
        service,
        region_name=access.region,
        endpoint_url=access.endpoint,
        verify=None if ca_file is None else str(ca_file),
        config=_config(access, through),
    )


def _config(access: AwsAccess, through: Mapping[str, Any]) -> Config:
    """One attempt: callers retry. `through`: options of `proxies`."""
    return Config(
        connect_timeout=access.timeout_s,
        read_timeout=access.timeout_s,
        **through,
        max_pool_connections=_MAX_CONNECTIONS,
        user_agent_extra=f"s3sink/{package_version()}",
        retries={"total_max_attempts": 1, "mode": "standard"},
    )
