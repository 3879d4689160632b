"""A kill at each effect on the store, with each converter: the same objects byte for byte, and no orphans.

The registry is real, the bucket in memory. The state before an effect is also the state after the effect before it.
`test_schemas` and `test_crash_points` kill processes that use a real store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from devtools.schema_registry.server import schema_registry
from sink_job.api.enums import ConverterType, OutputFormat
from sink_job.coordinator.schemas import schema_resolver
from sink_job.ledger.schemas.field_ids import LedgerFieldIds
from sink_job.ledger.schemas.object_schemas import ObjectSchemas
from sink_job.registry.clients.confluent import ConfluentRegistry
from tests.support.memory_sink import MemorySinkFixture
from tests.support.registry import registry_client
from tests.support.schema_log import UNKNOWN, SchemaLog, schemas_of, seed, settings
from tests.support.sink_fixture import manifest
from tests.support.synthetic_log import sink_of_text

pytestmark = pytest.mark.data

CHANGES = {"put", "create_upload", "upload_part", "complete", "delete", "abort"}
LOGS = {
    "Avro": SchemaLog(records=6),
    "Avro with an unknown id": SchemaLog(records=6, ids=(1, UNKNOWN, 2)),
    "Protobuf": SchemaLog(records=6, converter=ConverterType.PROTOBUF),
    "Avro without wire format": SchemaLog(records=6, ids=(2,), in_wire_format=False),
    "Avro without wire format, with Avro keys in paths": SchemaLog(
        records=6, ids=(2,), in_wire_format=False, keyed=True
    ),
    "JsonSchema": SchemaLog(records=6, converter=ConverterType.JSON_SCHEMA),
    "ConnectJson": SchemaLog(records=6, converter=ConverterType.CONNECT_JSON),
    "Cbor": SchemaLog(records=6, converter=ConverterType.CBOR),
    "MessagePack": SchemaLog(records=6, converter=ConverterType.MESSAGE_PACK),
    "Avro, Backward": SchemaLog(records=7),
    "JsonSchema, Forward": SchemaLog(records=7, converter=ConverterType.JSON_SCHEMA),
    "ConnectJson, Full": SchemaLog(records=7, converter=ConverterType.CONNECT_JSON),
    "Avro to Avro objects": SchemaLog(records=6, output=OutputFormat.AVRO, padding=600),
    "Avro to Avro objects, Backward": SchemaLog(records=7, output=OutputFormat.AVRO),
    "Protobuf to Parquet": SchemaLog(records=4, converter=ConverterType.PROTOBUF, output=OutputFormat.PARQUET),
    "JsonSchema to Avro objects": SchemaLog(records=4, converter=ConverterType.JSON_SCHEMA, output=OutputFormat.AVRO),
    "ConnectJson to Parquet": SchemaLog(
        records=4, ids=(2, UNKNOWN), converter=ConverterType.CONNECT_JSON, output=OutputFormat.PARQUET
    ),
    "Avro to Avro objects with an envelope, Backward": SchemaLog(records=6, output=OutputFormat.AVRO, envelope=True),
    "Avro keys and values to Parquet with an envelope": SchemaLog(
        records=4, ids=(2,), output=OutputFormat.PARQUET, envelope=True, keyed=True
    ),
    "Avro to Avro objects with tombstones, Backward": SchemaLog(
        records=6, output=OutputFormat.AVRO, envelope=True, tombstones=frozenset({2, 3})
    ),
    "ConnectJson to Parquet with tombstones, None": SchemaLog(
        records=5,
        ids=(2,),
        converter=ConverterType.CONNECT_JSON,
        output=OutputFormat.PARQUET,
        envelope=True,
        tombstones=frozenset({0, 2, 3}),
    ),
    "Avro keys and values to Parquet with tombstones, Separate": SchemaLog(
        records=4, ids=(2,), output=OutputFormat.PARQUET, envelope=True, keyed=True, tombstones=frozenset({1, 3})
    ),
    "Avro to Parquet, Backward": SchemaLog(records=5, output=OutputFormat.PARQUET, padding=600_000),
    "Avro with transforms": SchemaLog(records=6, ids=(1, 2, UNKNOWN), transformed=True),
    "Avro to Avro objects with transforms, Backward": SchemaLog(
        records=6, output=OutputFormat.AVRO, padding=600, transformed=True
    ),
    "Protobuf to Parquet with transforms": SchemaLog(
        records=4, converter=ConverterType.PROTOBUF, output=OutputFormat.PARQUET, transformed=True
    ),
    "Avro keys and values to Parquet with an envelope and tombstones and transforms": SchemaLog(
        records=4,
        ids=(2,),
        output=OutputFormat.PARQUET,
        envelope=True,
        keyed=True,
        tombstones=frozenset({1, 3}),
        transformed=True,
    ),
    "JsonSchema without wire format, with transforms": SchemaLog(
        records=4, ids=(2,), converter=ConverterType.JSON_SCHEMA, in_wire_format=False, transformed=True
    ),
}
"""With a value of `schemaCompatibility` that projects, the versions alternate within an object of several rounds."""


class Killed(BaseException):
    """The process ends here."""


@pytest.fixture
def client(name: str) -> Iterator[ConfluentRegistry]:
    with schema_registry() as server, registry_client(server) as connected:
        seed(server, LOGS[name])
        yield connected


class Kills:
    """Sinks of one log, each in a bucket of its own, that are killed at an effect.

    Their drivers share a client of the registry: it remembers schemas, but not which ids are resolved.
    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str, client: ConfluentRegistry) -> None:
        self.folder = folder
        self.monkeypatch = monkeypatch
        self.log = LOGS[name]
        self.compatibility = name.rpartition(", ")[2] if ", " in name else "Separate"
        self.client = client

    def fresh(self, name: object) -> MemorySinkFixture:
        """Another sink and bucket."""
        folder = self.folder / str(name)
        folder.mkdir()
        fixture = MemorySinkFixture(folder, self.monkeypatch)
        given = settings(
            self.log,
            self.client.url,
            self.compatibility,
            unknown_ids="Reject",
            flush_size=5,
            max_records=2,
            errors={"tolerance": "All", "onNullValue": "Write" if self.log.tombstones else "Fail"},
        )
        fixture.sink = sink_of_text(manifest("archive", "http://127.0.0.1:9", **given))
        return fixture

    def run(self, fixture: MemorySinkFixture) -> None:
        for kept in (ObjectSchemas, LedgerFieldIds):
            kept._caches.clear()  # a new process remembers none
        fixture.run(self.log, registry=schemas_of(self.log, self.client))

    def killed(self, fixture: MemorySinkFixture, number: int) -> bool:
        """Runs until the effect `number`; returns whether it occurred."""
        with fixture.faults(kill_at(number)):
            try:
                self.run(fixture)
            except Killed:
                return True
        return False


def kill_at(number: int) -> Callable[[str, str], None]:
    """A fault: the process ends before its call `number` that changes the bucket."""
    left = [number]

    def fault(call: str, key: str) -> None:
        if call in CHANGES:
            left[0] -= 1
            if left[0] == 0:
                raise Killed

    return fault


def contents(fixture: MemorySinkFixture) -> dict[str, bytes]:
    return {key: stored.body for key, stored in fixture.s3.objects.items() if "/_s3sink/" not in key}


@pytest.mark.parametrize("name", LOGS)
def test_a_kill_at_each_effect_leaves_the_same_objects(
    client: ConfluentRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(schema_resolver, "PAUSES_S", (0.0,))
    kills = Kills(tmp_path, monkeypatch, name, client)
    undisturbed = kills.fresh("undisturbed")
    kills.run(undisturbed)
    expected, number = contents(undisturbed), 1
    assert expected
    while kills.killed(fixture := kills.fresh(number), number):
        kills.run(fixture)
        assert contents(fixture) == expected, number
        assert fixture.orphans() == [], number
        number += 1
    assert contents(fixture) == expected
    assert number > 10
