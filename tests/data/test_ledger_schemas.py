"""The schemas in a ledger on a real store: no clean-up and no command removes them, and `verify` accepts them."""

from __future__ import annotations

import pytest

from sink_job.api.errors import RegistryChanged
from sink_job.connect.schema import RegisteredSchema
from sink_job.coordinator.context import StopCondition
from sink_job.ledger.schemas.schema_store import SchemaStore
from sink_job.ledger.schemas.schema_table import KnownSchemas, LedgerSchemas
from sink_job.maintenance.forget_schema import forget_schema
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import SyntheticLog

pytestmark = pytest.mark.data

LOG = SyntheticLog(records=25)
SCHEMA = RegisteredSchema("7", "AVRO", '"long"', subject="log-value", version=1)
URL = "https://registry.example.com"
DONE = StopCondition(until_caught_up=True)


@pytest.fixture
def root(sink_fixture: SinkFixture) -> str:
    return sink_fixture.ledger_access().root


def put_schemas(sink: SinkFixture, root: str) -> dict[str, str]:
    """Puts a schema and a marker; returns the files of the folder."""
    store = SchemaStore(sink.s3, root)
    store.put("log", SCHEMA, URL)
    store.put_unknown("log", "8", "the schema registry does not know the schema id 8")
    return files(sink, root)


def files(sink: SinkFixture, root: str) -> dict[str, str]:
    return {listed.key: listed.etag for listed in sink.s3.list(f"{root}schemas/")}


def test_a_schema_is_put_once(sink_fixture: SinkFixture, root: str) -> None:
    before = put_schemas(sink_fixture, root)
    assert put_schemas(sink_fixture, root) == before
    with pytest.raises(RegistryChanged):
        SchemaStore(sink_fixture.s3, root).put("log", RegisteredSchema("7", "AVRO", '"int"'), URL)
    assert files(sink_fixture, root) == before


def test_a_worker_reads_a_schema_of_the_store(sink_fixture: SinkFixture, root: str) -> None:
    put_schemas(sink_fixture, root)
    known = KnownSchemas({"log": frozenset({"7"})})
    assert LedgerSchemas(sink_fixture.s3, root, known).find("log", "7") == SCHEMA


def test_a_forgotten_schema_is_replaced_by_that_of_the_registry(sink_fixture: SinkFixture, root: str) -> None:
    sink_fixture.run(LOG, DONE, flush_size=25)
    put_schemas(sink_fixture, root)
    found = forget_schema(sink_fixture.ledger_access(), "log", "7")
    assert (found.existed, found.published) == (True, 0)
    assert not forget_schema(sink_fixture.ledger_access(), "log", "7").existed
    other = RegisteredSchema("7", "AVRO", '"int"', subject="log-value", version=1)
    assert SchemaStore(sink_fixture.s3, root).put("log", other, URL) == other


def test_schemas_stay_when_orphans_are_removed(sink_fixture: SinkFixture, root: str) -> None:
    before = put_schemas(sink_fixture, root)
    for _ in range(2):  # the second start removes what the first one has left
        sink_fixture.run(LOG, DONE, flush_size=10)
    assert files(sink_fixture, root) == before


def test_schemas_stay_when_open_objects_are_discarded(sink_fixture: SinkFixture, root: str) -> None:
    sink_fixture.run(LOG, DONE, flush_size=10)
    before = put_schemas(sink_fixture, root)
    sink_fixture.discard()
    assert files(sink_fixture, root) == before


def test_schemas_stay_when_offsets_are_reset(sink_fixture: SinkFixture, root: str) -> None:
    sink_fixture.run(LOG, DONE, flush_size=10)
    before = put_schemas(sink_fixture, root)
    sink_fixture.reset(LOG, "Earliest", on_existing="NewPrefix")
    assert files(sink_fixture, root) == before


def test_verify_does_not_report_schemas(sink_fixture: SinkFixture, root: str) -> None:
    put_schemas(sink_fixture, root)
    sink_fixture.run(LOG, DONE, flush_size=10)
    assert [finding for each in sink_fixture.verify(LOG) for finding in each.findings] == []
