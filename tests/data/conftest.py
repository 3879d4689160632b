"""What tests of the rounds over a real S3 server share."""

from __future__ import annotations

from pathlib import Path

import pytest

from devtools.s3 import S3Server
from tests.support.sink_fixture import SinkFixture


@pytest.fixture
def sink_fixture(s3: S3Server, tmp_path: Path) -> SinkFixture:
    """A bucket of the test's own."""
    return SinkFixture.new(s3.endpoint, tmp_path)
