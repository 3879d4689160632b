"""Tables of Iceberg in Hive's own metastore, with other writers, locks, lost replies and delayed commits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import pytest
from hive_metastore.ttypes import UnlockRequest
from pyiceberg.exceptions import CommitFailedException
from pyiceberg.schema import Schema
from pyiceberg.table.update import AddSchemaUpdate, SetCurrentSchemaUpdate
from pyiceberg.types import LongType, NestedField, StructType
from thrift.transport.TTransport import TTransportException

from devtools.certificates import self_signed
from devtools.loopback_metastore.server import metastore
from sink_job.api.errors import (
    ConfigurationError,
    TableIncompatible,
    TablePositionLower,
    TableReplaced,
    TableRolledBack,
    TransientError,
)
from sink_job.api.sections.secret_refs import SecretKey
from sink_job.tables.catalog import hive_lock
from sink_job.tables.catalog.access import CommitNotSent
from sink_job.tables.plan import Acceptance, Request
from tests.support.hive_lake import HiveTable, records
from tests.support.metastore_front import ALTER, CREATE, MetastoreFront, metastore_front
from tests.support.sink_fixture import SinkFixture

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def hive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URI of the metastore, for all tests of this file."""
    with metastore(tmp_path_factory.mktemp("hive")) as uri:
        yield uri


@pytest.fixture
def front(hive: str) -> Iterator[MetastoreFront]:
    with metastore_front(hive) as found:
        yield found


@pytest.fixture
def table(sink_fixture: SinkFixture, front: MetastoreFront, hive: str) -> HiveTable:
    return HiveTable(sink_fixture, front.uri, hive)


def test_the_command_adds_each_record_once(table: HiveTable) -> None:
    assert table.lake.register("--from-beginning", name=table.name) == 0
    table.write(60)
    assert [table.lake.register(name=table.name) for _ in range(2)] == [0, 0]
    assert table.rows() == records(60)
    assert table.lake.verify(table.name).findings == []


def test_a_commit_whose_reply_is_lost_is_sent_once_and_adds_each_record_once(
    table: HiveTable, front: MetastoreFront
) -> None:
    for count in (25, 45):
        table.write(count)
        front.loses = 1
        table.register()
        assert table.rows() == records(count)
    assert front.commits == [CREATE, ALTER]


def test_a_commit_that_lands_late_is_rejected(table: HiveTable, front: MetastoreFront) -> None:
    for count, error in ((25, "AlreadyExistsException"), (45, "MetaException")):
        table.write(count)
        front.holds = True
        with pytest.raises(TransientError):
            table.register()
        front.holds = False
        table.register()
        assert [land() for land in front.held] == [error] * 6
        front.held.clear()
        assert table.rows() == records(count)


def test_two_registrations_at_once_add_each_record_once(table: HiveTable) -> None:
    for count in (25, 45):
        table.write(count)
        threads = [Thread(target=table.register) for _ in range(3)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        assert table.rows() == records(count)


def test_a_metastore_that_ignores_the_condition_is_rejected_and_gets_no_commit(
    table: HiveTable, front: MetastoreFront
) -> None:
    front.strips = True
    with pytest.raises(ConfigurationError, match=r"HIVE-26882.*Hive 2\.3\.10, or 4\.0\.1 or later"):
        table.register()
    assert front.commits == []
    with table.client() as client:
        assert client.get_all_tables(table.database) == []


def test_a_delayed_commit_does_not_replace_those_of_other_programs(table: HiveTable, front: MetastoreFront) -> None:
    table.register()
    table.write(45)
    front.holds = True
    with pytest.raises(TransientError):
        table.register()
    front.holds = False
    with table.other().load_table(table.name).transaction() as change:
        change.set_properties({"by": "other"})
    assert {land() for land in front.held} == {"MetaException"}
    table.register()
    assert table.rows() == records(45)
    assert table.other().load_table(table.name).properties["by"] == "other"


def test_a_delayed_replacement_by_a_client_without_the_condition_is_found(
    table: HiveTable, front: MetastoreFront
) -> None:
    table.register()
    front.holds = True
    with (
        pytest.raises(TTransportException),
        table.other(front.uri).load_table(table.name).transaction() as change,
    ):
        change.set_properties({"by": "other"})
    front.holds = False
    with table.client() as client:  # the metastore ends its lock
        for each in table.locks():
            client.unlock(UnlockRequest(each.lockid))
    table.write(45)
    table.register()
    (land,) = front.held
    assert land() == ""
    with pytest.raises(TablePositionLower):
        table.register(Request())
    table.register(Request(accepted=frozenset({Acceptance.POSITION_LOWER})))
    assert table.rows() == records(45)


def test_commits_of_pyiceberg_at_the_same_time_are_kept(table: HiveTable) -> None:
    table.register()

    def others() -> None:
        for number in range(5):
            for _ in range(100):
                try:
                    with table.other().load_table(table.name).transaction() as change:
                        change.set_properties({f"by.{number}": "other"})
                except CommitFailedException:
                    continue
                break

    thread = Thread(target=others)
    thread.start()
    for count in (35, 45, 55):
        table.write(count)
        table.register_until_done()
    thread.join()
    assert table.rows() == records(55)
    properties = table.other().load_table(table.name).properties
    assert [f"by.{number}" in properties for number in range(5)] == [True] * 5


def test_a_table_that_another_client_has_locked_gets_no_commit(
    table: HiveTable, front: MetastoreFront, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hive_lock, "WAIT_S", 0.2)
    table.register()
    table.write(45)
    with table.locked() as number:
        with pytest.raises(CommitNotSent, match=rf"{table.name} is locked by other@host \(x, lock {number}\)"):
            table.register()
        assert front.commits == [CREATE]
        assert [each.lockid for each in table.locks()] == [number]
    table.register()
    assert table.rows() == records(45)
    assert table.locks() == []


def test_a_lock_whose_reply_is_lost_does_not_stay(table: HiveTable, front: MetastoreFront) -> None:
    table.register()
    table.write(45)
    front.loses_replies_of = "lock"
    with pytest.raises(CommitNotSent, match="cannot be taken"):
        table.register()
    assert table.locks() == []
    front.loses_replies_of = ""
    table.register()
    assert table.rows() == records(45)


def test_a_table_without_locks_is_changed_by_the_condition_alone(table: HiveTable, front: MetastoreFront) -> None:
    table.register()
    with table.other().load_table(table.name).transaction() as change:
        change.set_properties({"engine.hive.lock-enabled": "false"})
    table.write(45)
    table.lock()
    table.register()
    assert table.rows() == records(45)
    assert "lock" not in [each.method for each in front.requests]


def test_a_rolled_back_table_stops_and_a_delayed_commit_on_it_has_no_effect(
    table: HiveTable, front: MetastoreFront
) -> None:
    table.register()
    table.write(45)
    front.holds = True
    with pytest.raises(TransientError):
        table.register()
    front.holds = False
    table.register()
    loaded = table.other().load_table(table.name)
    with loaded.manage_snapshots() as snapshots:
        snapshots.set_current_snapshot(loaded.history()[0].snapshot_id)
    assert {land() for land in front.held} == {"MetaException"}
    with pytest.raises(TableRolledBack):
        table.register(Request())
    assert table.rows() == records(25)


def test_a_table_that_was_dropped_and_created_again_stops(table: HiveTable, front: MetastoreFront) -> None:
    table.register()
    table.write(45)
    front.holds = True
    with pytest.raises(TransientError):
        table.register()
    front.holds = False
    others = table.other()
    schema = others.load_table(table.name).schema()
    others.drop_table(table.name)
    assert {land() for land in front.held} == {"InvalidOperationException"}
    others.create_table(table.name, schema)
    with pytest.raises(TableReplaced):
        table.register(Request())


def test_parameters_of_others_stay_and_columns_follow_the_objects(sink_fixture: SinkFixture, hive: str) -> None:
    table = HiveTable(sink_fixture, hive, hive, ids=(1,))
    table.register()
    with table.client() as client:
        found = client.get_table(table.database, "log")
        assert "seats" not in [each.name for each in found.sd.cols]
        found.parameters["comment"] = "of another program"
        found.sd.serdeInfo.serializationLib = "org.example.Other"
        client.alter_table(table.database, "log", found)
    table.write(45)
    table.register()
    with table.client() as client:
        found = client.get_table(table.database, "log")
    assert ("seats", "bigint") in [(each.name, each.type) for each in found.sd.cols]
    assert found.sd.serdeInfo.serializationLib == "org.example.Other"
    expected = {"comment": "of another program", "numRows": "45", "external.table.purge": "false", "EXTERNAL": "TRUE"}
    assert expected.items() <= found.parameters.items()
    previous = found.parameters["previous_metadata_location"]
    assert previous != found.parameters["metadata_location"]


def test_a_nested_column_changes_in_the_table_where_the_metastore_does_not_allow_it(table: HiveTable) -> None:
    """`hive.metastore.disallow.incompatible.col.type.changes` is true by default."""
    table.register()
    x, y = (NestedField(101 + at, name, LongType(), required=False) for at, name in enumerate("xy"))
    for number, nested in enumerate((StructType(x), StructType(x, y)), 1):
        loaded = table.lake.catalog.load(table.name)
        assert loaded is not None
        fields = [*loaded.schema().fields[:4], NestedField(100, "nested", nested, required=False)]
        added = AddSchemaUpdate(schema=Schema(*fields, schema_id=number))
        current = SetCurrentSchemaUpdate.model_validate({"schema-id": number})
        table.lake.catalog.commit(loaded, (), (added, current))
    loaded = table.other().load_table(table.name)
    assert loaded.schema().find_type("nested") == StructType(x, y)
    with table.client() as client:
        columns = {each.name: each.type for each in client.get_table(table.database, "log").sd.cols}
    assert columns["nested"] == "struct<x:bigint>"


def test_a_table_that_is_not_icebergs_stops(table: HiveTable, front: MetastoreFront) -> None:
    table.register()
    with table.client() as client:
        found = client.get_table(table.database, "log")
        del found.parameters["table_type"]
        client.alter_table(table.database, "log", found)
    table.write(45)
    with pytest.raises(TableIncompatible, match="is no table of Iceberg"):
        table.register()
    assert front.commits == [CREATE]


def test_a_new_database_is_in_the_warehouse_and_a_table_in_its_database(table: HiveTable) -> None:
    table.register()
    with table.client() as client:
        assert client.get_database(table.database).locationUri == f"{table.spec.warehouse}/{table.database}.db"
    assert table.other().load_table(table.name).location() == f"{table.spec.warehouse}/{table.database}.db/log"


def test_a_connection_has_tls_with_a_certificate_authority(
    sink_fixture: SinkFixture, hive: str, tmp_path: Path
) -> None:
    with metastore_front(hive, self_signed(tmp_path)) as front:
        table = HiveTable(sink_fixture, front.uri, hive)
        table.spec = table.lake.spec = table.spec.model_copy(
            update={"ca_secret": SecretKey(secret="ca", key="tls.crt")}
        )
        given = ("--from-beginning", "--secret", f"ca={tmp_path}")
        assert table.lake.register(*given, name=table.name) == 0
        assert table.other().load_table(table.name) is not None
        (tmp_path / "other").mkdir()
        with metastore_front(hive, self_signed(tmp_path / "other")) as untrusted:
            table.lake.spec = table.spec.model_copy(update={"uri": untrusted.uri})
            assert table.lake.register(*given, name=table.name) == 7
