"""A store and a client for the tests of the S3 layer."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devtools.s3 import REGION, VersityGW, credentials_secret
from sink_job.s3 import (
    S3Client,
    S3Settings,
)
from tests.support.s3_store import QUICK, running


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VersityGW]:
    with running(VersityGW(tmp_path_factory.mktemp("gateway"))) as server:
        yield server


@pytest.fixture(scope="module")
def settings(gateway: VersityGW, tmp_path_factory: pytest.TempPathFactory) -> S3Settings:
    return S3Settings(
        bucket="archive",
        region=REGION,
        endpoint=gateway.endpoint,
        path_style=True,
        credentials_dir=credentials_secret(tmp_path_factory.mktemp("secret")),
        retry=QUICK,
    )


@pytest.fixture(scope="module")
def s3(settings: S3Settings) -> Iterator[S3Client]:
    client = S3Client(settings)
    yield client
    client.close()


@pytest.fixture
def key(request: pytest.FixtureRequest) -> str:
    """A key for this test, with special characters."""
    return f"topics/a=b %2F+é/{request.node.name}+0+0000000000.json"
