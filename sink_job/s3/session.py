"""botocore's session with the credentials of a sink: of a Secret, of the default chain, or of a role."""

from __future__ import annotations

import os
import re
from functools import cache, partial
from typing import Any

import botocore.session
from botocore.config import Config
from botocore.credentials import CredentialProvider, CredentialResolver
from botocore.loaders import Loader, create_loader

from sink_job.s3.access.assumed_role import RoleProvider
from sink_job.s3.access.credentials import DirectoryProvider
from sink_job.s3.proxy import proxies
from sink_job.s3.settings import S3Settings


@cache
def service_descriptions() -> Loader:
    """botocore's descriptions of S3 and its endpoints, parsed once per process. Most of the CPU time of a new client is
    this parsing (50 ms)."""
    return create_loader(botocore.session.Session().get_config_variable("data_path"))


def load_service_descriptions() -> None:
    """Parses botocore's descriptions now, for the processes that this one forks. Sends no request."""
    loader = service_descriptions()
    loader.load_service_model("s3", "service-2")
    loader.load_service_model("s3", "endpoint-rule-set-1")
    loader.load_data("endpoints")
    loader.load_data("partitions")


def new_session(settings: S3Settings) -> Any:
    """A session for clients of S3. Sends no request. Raises SecretNotFound if the Secret has no keys."""
    session = _session()
    through = {}
    if settings.proxy is not None:
        through = proxies(settings.proxy, aws_endpoint(session, "sts", settings.region), settings.ca_file)
    if through:  # also for the requests of botocore's own providers
        session.set_default_client_config(Config(**through))
    if settings.credentials_dir is not None:
        use_provider(session, DirectoryProvider(settings.credentials_dir, f"{settings.section}.credentials"))
    if settings.role is not None:
        session, source = _session(), session
        config = Config(
            connect_timeout=settings.connect_timeout_s,
            read_timeout=settings.read_timeout_s,
            retries={"total_max_attempts": 1, "mode": "standard"},
        )
        create_client = partial(source.create_client, region_name=settings.region, config=config)
        use_provider(session, RoleProvider(settings.role, source, create_client))
    return session


def aws_endpoint(session: Any, service: str, region: str | None) -> str:
    """The URL of a service of AWS in a region: regions in China have another domain. The variable
    AWS_ENDPOINT_URL_<SERVICE> replaces it."""
    chosen = os.environ.get(f"AWS_ENDPOINT_URL_{service.upper()}")
    if chosen:
        return chosen
    name = region or "us-east-1"
    partitions = session.get_component("data_loader").load_data("partitions")["partitions"]
    found = (each["outputs"]["dnsSuffix"] for each in partitions if re.match(each["regionRegex"], name))
    return f"https://{service}.{name}.{next(found, 'amazonaws.com')}"


def use_provider(session: Any, provider: CredentialProvider) -> None:
    """Makes `provider` the only one of the session."""
    session.register_component("credential_provider", CredentialResolver(providers=[provider]))


def _session() -> Any:
    session = botocore.session.Session()
    session.register_component("data_loader", service_descriptions())
    return session
