"""Fixtures of the tests that run rounds against a real S3 server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from devtools.iceberg_rest.server import iceberg_rest_server
from devtools.s3 import S3Server
from sink_job.s3 import client
from tests.support.sink_fixture import SinkFixture


@pytest.fixture
def sink_fixture(s3: S3Server, tmp_path: Path) -> SinkFixture:
    """A sink with its own bucket."""
    return SinkFixture.new(s3.endpoint, tmp_path)


@pytest.fixture(scope="module", autouse=True)
def closed_connections() -> Iterator[None]:
    """Closes the connections of all clients of this process: each bucket has a client, which keeps up to 32 of them."""
    yield
    for each in list(client._clients.values()):
        each.close()


@pytest.fixture(scope="module")
def rest(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of Iceberg's REST server, for all tests of a file."""
    bucket = f"lake-{uuid4().hex[:12]}"
    s3.client().create_bucket(Bucket=bucket)
    folder = tmp_path_factory.mktemp("rest")
    with iceberg_rest_server(folder, s3.endpoint, f"s3://{bucket}/tables") as url:
        yield url
