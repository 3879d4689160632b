"""Tables in Iceberg's own REST server: a catalog that is not PyIceberg's, with lost replies and delayed commits."""

from __future__ import annotations

from pathlib import Path
from typing import Final
from uuid import uuid4

import pytest

from devtools.certificates import self_signed
from devtools.s3 import s3_client
from sink_job.api.errors import TableRolledBack, TransientError
from sink_job.api.sections.secret_refs import SecretKey, SecretRef
from sink_job.tables.catalogs import CommitRejected, CommitUnknown
from sink_job.tables.housekeeping import DAY_MS
from sink_job.tables.plan import Request
from tests.support.catalog_front import (
    BASIC,
    CLIENT,
    CLIENT_SECRET,
    PASSWORD,
    TOKEN,
    USER,
    catalog_front,
    login_folder,
)
from tests.support.lake import VALUES, LakeFixture, expected
from tests.support.rest_table import RestTable, add_at_once, records
from tests.support.sink_fixture import SinkFixture

pytestmark = pytest.mark.data

_SECRETS: Final = {
    "credentials": SecretRef(secret="login"),
    "ca_secret": SecretKey(secret="ca", key="tls.crt"),
}


@pytest.fixture
def table(sink_fixture: SinkFixture, rest: str) -> RestTable:
    """A table that does not exist yet, and a sink with 25 records."""
    lake = LakeFixture(sink_fixture, rest)
    lake.run(25, (2,))
    return RestTable(lake)


def test_the_rows_of_a_table_are_the_records_of_the_sink(sink_fixture: SinkFixture, rest: str) -> None:
    lake = LakeFixture(sink_fixture, rest)
    lake.run(25)
    assert lake.register("--from-beginning") == 0
    lake.run(60, (2,))
    assert lake.register() == 0
    assert lake.register() == 0
    assert lake.read(VALUES) == expected(60, lambda offset: 1 if offset < 25 else 2)


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


def test_two_registrations_at_once_add_each_record_once(table: RestTable) -> None:
    for count in (25, 45):
        table.lake.run(count, (2,))
        add_at_once(table)
        assert table.rows() == records(count)


def test_a_rolled_back_table_stops_and_a_delayed_commit_on_it_has_no_effect(table: RestTable) -> None:
    table.register()
    table.lake.run(45, (2,))
    table.catalog.holds = True
    with pytest.raises(TransientError):
        table.register()
    table.catalog.holds = False
    table.register()
    loaded = table.catalog.load(table.name)
    assert loaded is not None
    with loaded.manage_snapshots() as snapshots:
        snapshots.set_current_snapshot(loaded.history()[0].snapshot_id)
    for land in table.catalog.held:
        with pytest.raises((CommitRejected, CommitUnknown)):
            land()
    with pytest.raises(TableRolledBack):
        table.register(Request())
    assert table.rows() == records(25)


@pytest.mark.parametrize("kind", ["token", "user", "oauth"])
def test_a_catalog_with_a_login_and_lost_replies_gets_each_record_once_and_its_secrets_are_nowhere(
    sink_fixture: SinkFixture, rest: str, tmp_path: Path, kind: str, capfd: pytest.CaptureFixture[str]
) -> None:
    keys = {
        "token": {"token": TOKEN},
        "user": {"username": USER, "password": PASSWORD},
        "oauth": {"clientId": CLIENT, "clientSecret": CLIENT_SECRET},
    }[kind]
    folder, certificate = login_folder(tmp_path / "login", **keys), self_signed(tmp_path)
    name = f"lake.t{uuid4().hex[:12]}"
    lake = LakeFixture(sink_fixture, rest)
    lake.run(25, (2,))
    with catalog_front(certificate, rest) as front:
        lake.spec = lake.spec.model_copy(update={"uri": front.url, **_SECRETS})
        given = ("--secret", f"login={folder}", "--secret", f"ca={tmp_path}", "--debug")
        front.loses = 1
        assert lake.register("--from-beginning", *given, name=name) == 0
        lake.run(45, (2,))
        front.loses = 1
        assert lake.register(*given, name=name) == 0
        front.accepted.clear()
        front.rejects = 401
        assert lake.register(*given, name=name) == 7
    assert lake.read(VALUES, name) == records(45)
    found = "".join(capfd.readouterr())
    assert "AccessDenied" in found or "InvalidCredentials" in found
    for secret in (TOKEN, PASSWORD, BASIC, CLIENT_SECRET, *(f"issued-token-{n}" for n in range(9))):
        assert secret not in found


def test_housekeeping_keeps_each_record_and_few_files_of_metadata(table: RestTable) -> None:
    table.register()
    loaded = table.catalog.load(table.name)
    assert loaded is not None
    with loaded.transaction() as change:
        change.set_properties({"write.metadata.previous-versions-max": "2", "commit.manifest.min-count-to-merge": "3"})
    for count in (35, 45, 55):
        table.lake.run(count, (2,))
        table.register()
    table.ahead_ms = 8 * DAY_MS
    table.lake.run(65, (2,))
    table.register()
    assert table.rows() == records(65)
    loaded = table.catalog.load(table.name)
    assert loaded is not None
    assert len(loaded.metadata.snapshots) == 2
    head = loaded.current_snapshot()
    assert head is not None
    assert len(head.manifests(loaded.io)) < 3
    bucket, _, folder = loaded.location().removeprefix("s3://").partition("/")
    kept = s3_client(table.lake.sink.endpoint).list_objects_v2(Bucket=bucket, Prefix=folder)["Contents"]
    assert sum(each["Key"].endswith(".metadata.json") for each in kept) == 3
    assert table.lake.verify(table.name).findings == []
