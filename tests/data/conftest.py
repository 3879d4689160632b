"""Fixtures of the tests that run rounds against a real S3 server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

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
