"""Tables in Nessie: a REST catalog that is neither PyIceberg's nor Iceberg's own server.

Its jar has 245 MB, so only the nightly workflow runs them (docs/development.md).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from uuid import uuid4

import pytest

from devtools.nessie import nessie
from devtools.s3 import S3Server
from sink_job.api.errors import TransientError
from sink_job.tables.catalogs import CommitRejected, CommitUnknown
from tests.support.lake import LakeFixture
from tests.support.rest_table import RestTable, add_at_once, records
from tests.support.sink_fixture import SinkFixture

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(not os.environ.get("S3SINK_NESSIE"), reason="S3SINK_NESSIE=1 downloads Nessie, 245 MB"),
]


@pytest.fixture(scope="module")
def catalog(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of Nessie, for all tests of this file."""
    bucket = f"lake-{uuid4().hex[:12]}"
    s3.client().create_bucket(Bucket=bucket)
    with nessie(tmp_path_factory.mktemp("nessie"), s3.endpoint, f"s3://{bucket}/tables") as url:
        yield url


@pytest.fixture
def table(sink_fixture: SinkFixture, catalog: str) -> RestTable:
    """A table that does not exist yet, and a sink with 25 records."""
    lake = LakeFixture(sink_fixture, catalog)
    lake.run(25, (2,))
    return RestTable(lake)


def test_the_rows_of_a_table_are_the_records_of_the_sink(table: RestTable) -> None:
    for count in (25, 45):
        table.lake.run(count, (2,))
        assert table.lake.register("--from-beginning", name=table.name) == 0
        assert table.rows() == records(count)
    assert table.lake.verify(table.name).findings == []


def test_two_registrations_at_once_add_each_record_once(table: RestTable) -> None:
    for count in (25, 45):
        table.lake.run(count, (2,))
        add_at_once(table)
        assert table.rows() == records(count)


def test_a_commit_whose_reply_is_lost_adds_each_record_once(table: RestTable) -> None:
    def lose() -> None:
        table.catalog.after = lambda: None
        raise CommitUnknown("the reply was lost")

    for count in (25, 45):
        table.lake.run(count, (2,))
        table.catalog.after = lose
        table.register()
        assert table.rows() == records(count)
    assert table.catalog.commits == 2


def test_a_commit_that_lands_late_is_rejected(table: RestTable) -> None:
    for count in (25, 45):
        table.lake.run(count, (2,))
        table.catalog.holds = True
        with pytest.raises(TransientError):
            table.register()
        table.catalog.holds = False
        table.register()
        for land in table.catalog.held:
            with pytest.raises(CommitRejected):
                land()
        table.catalog.held.clear()
        assert table.rows() == records(count)
