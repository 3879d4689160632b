"""A sink with output, and a way to damage it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from devtools.s3 import S3Server
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import SyntheticLog
from tests.support.verify_sink import (
    CAUGHT_UP,
    Tamper,
)


@pytest.fixture
def written(sink_fixture: SinkFixture) -> SinkFixture:
    """Two partitions of 100 records in published objects of 10; the last ones are not acknowledged yet."""
    sink_fixture.run(SyntheticLog(partitions=2), CAUGHT_UP, flush_size=10, max_records=25)
    return sink_fixture


@pytest.fixture
def tamper(s3: S3Server) -> Tamper:
    """Changes an object's bytes on the server's disk: its ETag and checksum stay the same."""

    def change_file(sink_fixture: SinkFixture, key: str, change: Callable[[bytes], bytes]) -> None:
        (path,) = s3.directory.rglob(f"{sink_fixture.bucket}/{key}")
        path.write_bytes(change(path.read_bytes()))

    return change_file
