"""Clients of services of AWS: region, endpoint, one attempt, proxy. tests/data/registry/test_glue.py sends requests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from sink_job.api.errors import SecretNotFound
from sink_job.s3.access.aws_clients import AwsAccess, aws_client
from sink_job.s3.proxy import ProxySettings

ACCESS = AwsAccess(region="eu-central-1", setting="spec.x.credentials")


def test_a_client_sends_one_request_with_a_timeout() -> None:
    config = aws_client("glue", replace(ACCESS, timeout_s=7)).meta.config
    assert (config.retries["total_max_attempts"], config.connect_timeout, config.read_timeout) == (1, 7, 7)


def test_the_endpoint_is_that_of_the_settings_or_of_the_region() -> None:
    of_tests = replace(ACCESS, endpoint="http://localhost:1")
    urls = [aws_client("glue", each).meta.endpoint_url for each in (ACCESS, of_tests)]
    assert urls == ["https://glue.eu-central-1.amazonaws.com", "http://localhost:1"]


def test_the_proxy_is_used_unless_the_endpoint_is_excluded() -> None:
    proxy = ProxySettings(url="http://proxy:3128", no_proxy=("localhost",))
    through = aws_client("glue", replace(ACCESS, proxy=proxy)).meta.config.proxies
    beside = aws_client("glue", replace(ACCESS, proxy=proxy, endpoint="http://localhost:1")).meta.config.proxies
    assert (through["https"], beside) == ("http://proxy:3128", {})


def test_a_secret_without_keys_is_named_with_its_field(tmp_path: Path) -> None:
    with pytest.raises(SecretNotFound, match=r"spec\.x\.credentials"):
        aws_client("glue", replace(ACCESS, credentials_dir=tmp_path))
