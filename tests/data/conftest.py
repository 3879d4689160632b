"""Fixtures of the tests that run rounds against a real S3 server."""

from __future__ import annotations

from pathlib import Path

import pytest

from devtools.s3 import S3Server
from tests.support.sink_fixture import SinkFixture


@pytest.fixture
def sink_fixture(s3: S3Server, tmp_path: Path) -> SinkFixture:
    """A sink with its own bucket."""
    return SinkFixture.new(s3.endpoint, tmp_path)
