"""Edits of how records are read and written, while objects are open: converters, registries, schemas, outputs.

Each edit is made and reverted between runs of the sink. The producers change with it. The objects of the previous
settings are closed with the bytes that they would have had, also where their remainders and uploads are lost: they are
rebuilt under the previous settings, with the schemas in the ledger. The registry has lost these by then.
"""

from __future__ import annotations

import decimal
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import fastavro
import pyarrow.parquet as pq
import pytest

from devtools.bucket_listing import decompressed
from devtools.schema_registry.server import SchemaRegistryServer, schema_registry
from sink_job.api.enums import ConverterType, SubjectNameStrategy
from sink_job.api.parser import load_sink
from sink_job.coordinator.context import StopCondition
from sink_job.registry.bare_values import BareValueSchema, bare_value_schema
from sink_job.registry.base import SchemaRegistry
from tests.support.crash_points import crash_before_publishing
from tests.support.registry import registry_client
from tests.support.schema_log import (
    AIRPORT,
    KEY_PROTOBUF,
    UNKNOWN,
    SchemaLog,
    protobuf_schema,
    schemas_of,
    seed,
    settings,
)
from tests.support.sink_fixture import SinkFixture, manifest
from tests.support.verify_sink import CAUGHT_UP, LEFT_OPEN, deep, findings, shallow

pytestmark = pytest.mark.data

RECORDS: Final = 7
"""The records of each phase. They fill no object."""
OTHER_KEY_ID: Final = 17
SEPARATOR: Final = b"<end>\n"


@dataclass(frozen=True)
class Phase:
    """Producers of `log`, and the settings that read it. `edit` changes sections of the manifest; a value that is a
    section is merged."""

    log: SchemaLog
    edit: dict[str, Any] = field(default_factory=dict)
    compatibility: str = "Separate"

    def settings(self, url: str) -> dict[str, Any]:
        given = settings(self.log, url, self.compatibility)
        given["spec"] = _merged({"format": {"compression": {"codec": "None"}}, **given["spec"]}, self.edit)
        return given


def _merged(section: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    inner = {k: _merged(section.get(k, {}), v) if isinstance(v, dict) else v for k, v in changes.items()}
    return section | inner


@dataclass(frozen=True)
class EditedLog(SchemaLog):
    """The records of phases, one after the other."""

    phases: tuple[SchemaLog, ...] = ()

    def at(self, offset: int) -> SchemaLog:
        return self.phases[offset // RECORDS]

    def value(self, partition: int, offset: int) -> bytes:
        return self.at(offset).value(partition, offset)

    def key(self, offset: int) -> bytes:
        return self.at(offset).key(offset)

    def item(self, partition: int, offset: int) -> dict[str, object]:
        return self.at(offset).item(partition, offset)


@dataclass(frozen=True)
class TextKeys(SchemaLog):
    """Keys without a schema: 0 or 1, as a text or as JSON."""

    def key(self, offset: int) -> bytes:
        return b"%d" % (offset % 2)


@dataclass(frozen=True)
class OtherKeys(SchemaLog):
    """Protobuf keys with another schema id."""

    def key(self, offset: int) -> bytes:
        return b"\0" + OTHER_KEY_ID.to_bytes(4) + b"\2\2\x08" + bytes([offset % 2])


LOGICAL: Final[dict[str, Any]] = {
    "type": "record",
    "name": "example.Price",
    "fields": [
        {"name": "offset", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    ],
}


@dataclass(frozen=True)
class Prices(SchemaLog):
    """Avro bare values, with a decimal and a timestamp."""

    def value(self, partition: int, offset: int) -> bytes:
        out = io.BytesIO()
        price = decimal.Decimal(offset) / 100
        fastavro.schemaless_writer(out, LOGICAL, {"offset": offset, "price": price, "at": 1000 * offset})
        return out.getvalue()


def _text(text: str, **given: Any) -> dict[str, Any]:
    return {"format": {"schema": {"text": text, **given}}}


def _prices(**given: Any) -> Phase:
    prices = Prices(records=0, ids=(1,), in_wire_format=False)
    return Phase(prices, _merged(_text(json.dumps(LOGICAL)), {"format": given}))


def _columns(**given: Any) -> Phase:
    return _prices(output="Parquet", compression={"codec": "Snappy"}, parquet=given)


def _registry(**given: Any) -> dict[str, Any]:
    return {"format": {"registry": given}}


def _keys(log: SchemaLog, converter: str | None) -> Phase:
    paths = {"partitioner": {"type": "Field", "fields": ["kind" if converter is None else "$key"]}}
    return Phase(log, paths | ({"format": {"keyConverter": converter}} if converter else {}))


AVRO: Final = SchemaLog(records=0)
NEXT: Final = SchemaLog(records=0, ids=(UNKNOWN,))
BARE_VALUES: Final = SchemaLog(records=0, ids=(1,), in_wire_format=False)
MESSAGES: Final = _text(
    protobuf_schema(1, before="message Other { int64 partition = 1; int64 offset = 2; string kind = 3; }")
)
PROTOBUF: Final = replace(BARE_VALUES, converter=ConverterType.PROTOBUF)
TRANSFORMED: Final = replace(AVRO, transformed=True)
KEYED: Final = SchemaLog(records=0, keyed=True)
TEXT_KEYS: Final = TextKeys(records=0, ids=(1,), in_wire_format=False)


def _converters(before: ConverterType, after: ConverterType) -> tuple[Phase, Phase]:
    return Phase(replace(AVRO, converter=before)), Phase(replace(NEXT, converter=after))


EDITS: Final[dict[str, tuple[Phase, Phase]]] = {
    "Avro to Json": _converters(ConverterType.AVRO, ConverterType.JSON),
    "Avro to Protobuf": _converters(ConverterType.AVRO, ConverterType.PROTOBUF),
    "Protobuf to Avro": _converters(ConverterType.PROTOBUF, ConverterType.AVRO),
    "JsonSchema to ConnectJson": _converters(ConverterType.JSON_SCHEMA, ConverterType.CONNECT_JSON),
    "ConnectJson to Cbor": _converters(ConverterType.CONNECT_JSON, ConverterType.CBOR),
    "Confluent to Apicurio": (Phase(AVRO), Phase(NEXT, _registry(type="Apicurio"))),
    "other subjects": (Phase(AVRO), Phase(NEXT, _registry(subjects="RecordName"))),
    "other subjects of the same schemas": (Phase(AVRO), Phase(AVRO, _registry(subjects="RecordName"))),
    "ids in values only": (Phase(AVRO), Phase(NEXT, _registry(idIn="Value"))),
    "None to Separate": (Phase(AVRO, compatibility="None"), Phase(AVRO)),
    "Separate to Backward": (Phase(AVRO), Phase(AVRO, compatibility="Backward")),
    "Backward to Forward": (Phase(AVRO, compatibility="Backward"), Phase(AVRO, compatibility="Forward")),
    "Full to None": (Phase(AVRO, compatibility="Full"), Phase(AVRO, compatibility="None")),
    "wire format to none": (Phase(AVRO), Phase(BARE_VALUES)),
    "another schema": (Phase(BARE_VALUES), Phase(replace(BARE_VALUES, ids=(2,)))),
    "another message": (
        Phase(PROTOBUF, _merged(MESSAGES, _text(MESSAGES["format"]["schema"]["text"], message="example.Flight"))),
        Phase(PROTOBUF, _merged(MESSAGES, _text(MESSAGES["format"]["schema"]["text"], message="example.Other"))),
    ),
    "decimals and timestamps": (
        _prices(decimals="Base64", timestamps="Number"),
        _prices(decimals="Numeric", timestamps="Iso"),
    ),
    "times of the schema to microseconds": (_columns(timeUnit="AsSchema"), _columns(timeUnit="Micros")),
    "microseconds to times of the schema": (_columns(), _columns(timeUnit="AsSchema")),
    "Bloom filters": (_columns(bloomFilters=["offset"]), _columns(bloomFilters=["offset", "at", "price"])),
    "None to Zstd": (Phase(AVRO), Phase(AVRO, {"format": {"compression": {"codec": "Zstd"}}})),
    "Zstd to Gzip": (
        Phase(AVRO, {"format": {"compression": {"codec": "Zstd"}}}),
        Phase(AVRO, {"format": {"compression": {"codec": "Gzip"}}}),
    ),
    "Json to Bytes": (
        Phase(AVRO),
        Phase(AVRO, {"format": {"output": "Bytes", "bytes": {"separator": SEPARATOR.decode()}}}),
    ),
    "values to transformed ones": (Phase(AVRO), Phase(TRANSFORMED)),
    "values to envelopes": (Phase(AVRO), Phase(replace(AVRO, envelope=True))),
    "envelopes with keys of bytes to Text": (
        Phase(replace(TEXT_KEYS, envelope=True)),
        Phase(replace(TEXT_KEYS, envelope=True), {"format": {"keyConverter": "Text"}}),
    ),
    "no key to Avro keys": (Phase(AVRO), Phase(KEYED)),
    "Avro to Protobuf keys": (
        Phase(KEYED),
        Phase(OtherKeys(records=0, keyed=True, key_converter=ConverterType.PROTOBUF)),
    ),
    "paths of values to paths of keys": (_keys(TEXT_KEYS, None), _keys(TEXT_KEYS, "Text")),
    "keys of Text to Json": (_keys(TEXT_KEYS, "Text"), _keys(TEXT_KEYS, "Json")),
}


@pytest.fixture(scope="module")
def server() -> Iterator[SchemaRegistryServer]:
    with schema_registry() as running:
        yield running


class EditedSink:
    """A sink whose settings are edited. `phases` are run in turn."""

    def __init__(self, fixture: SinkFixture, server: SchemaRegistryServer, phases: tuple[Phase, ...]) -> None:
        self.fixture = fixture
        self.server = server
        self.phases = phases

    def log(self, count: int) -> EditedLog:
        """The records of the first `count` phases."""
        return EditedLog(records=RECORDS * count, phases=tuple(phase.log for phase in self.phases))

    def seed(self, phase: Phase) -> None:
        """The registry has the schemas of this phase alone."""
        self.server.reset()
        log = phase.log
        if log.in_wire_format and log.converter.needs_registry:
            if log.converter is ConverterType.PROTOBUF and 1 not in log.ids:
                self.server.seed("airport.proto", 1, 100, AIRPORT, language="PROTOBUF")
            seed(self.server, log, *log.ids)
        if isinstance(log, OtherKeys):
            self.server.seed("log-key", 2, OTHER_KEY_ID, KEY_PROTOBUF, language="PROTOBUF")

    def run(self, number: int, goal: StopCondition, monkeypatch: pytest.MonkeyPatch | None = None) -> None:
        """Runs phase `number`; with `monkeypatch` until objects are closed and none of them is visible."""
        phase = self.phases[number]
        self.seed(phase)
        subjects = phase.edit.get("format", {}).get("registry", {}).get("subjects", "TopicName")
        with registry_client(self.server, subjects=SubjectNameStrategy(subjects)) as client:
            given = phase.settings(self.server.url)
            given |= {"context": {"registry": self._schemas(phase, given, client)}}
            log = self.log(number + 1)
            if monkeypatch is not None:
                crash_before_publishing(self.fixture, monkeypatch, log, **given)
            else:
                self.fixture.run(log, goal, **given)

    def _schemas(self, phase: Phase, given: dict[str, Any], client: SchemaRegistry) -> SchemaRegistry | None:
        if phase.log.in_wire_format:
            return schemas_of(phase.log, client)
        found = bare_value_schema(load_sink(manifest("archive", self.server.url, **given)).spec.format)
        return None if found is None else BareValueSchema(found)

    def verify(self) -> list[tuple[str, str, int]]:
        """What `verify` and `verify --deep` find, without a registry."""
        log, given = self.log(len(self.phases)), self.phases[-1].settings("http://127.0.0.1:1")
        return findings(shallow(self.fixture, log, **given)) + findings(deep(self.fixture, log, **given))


def offsets(sink: EditedSink) -> list[list[int]]:
    """The offsets in each visible object, ascending by their first ones. Each record of the phases is in an object of
    its phase."""
    found = []
    for key, body in sink.fixture.contents().items():
        if body.startswith(b"PAR1"):
            found.append(pq.read_table(io.BytesIO(body)).column("offset").to_pylist())
            continue
        content = decompressed(body, key)
        rows = content.split(SEPARATOR)[:-1] if SEPARATOR in content else content.splitlines()
        found.append([_offset(sink, row) for row in rows])
    return sorted(found)


def _offset(sink: EditedSink, row: bytes) -> int:
    """The offset of a record. With the output Bytes, the row is its value."""
    if row.startswith(b"{"):
        return int(json.loads(row)["offset"])
    log = sink.log(len(sink.phases))
    (offset,) = (n for n in range(log.records) if log.value(0, n) == row)
    return offset


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_closes_the_open_objects_with_the_bytes_of_the_previous_settings(
    sink_fixture: SinkFixture, server: SchemaRegistryServer, monkeypatch: pytest.MonkeyPatch, edit: str
) -> None:
    before, after = EDITS[edit]
    undisturbed = EditedSink(sink_fixture.sibling(), server, (before,))
    undisturbed.run(0, CAUGHT_UP)
    sink = EditedSink(sink_fixture, server, (before, after, before))
    sink.run(0, LEFT_OPEN)
    sink_fixture.delete_staging()
    sink.run(1, LEFT_OPEN, monkeypatch)
    sink_fixture.abort_uploads_of("")
    sink.run(1, LEFT_OPEN)
    expected = undisturbed.fixture.contents()
    assert {key: sink_fixture.contents()[key] for key in expected} == expected
    sink.run(2, CAUGHT_UP)
    found = offsets(sink)
    assert sorted(n for each in found for n in each) == list(range(3 * RECORDS))
    assert all(len({n // RECORDS for n in each}) == 1 for each in found)
    assert sink_fixture.group() == {"log-0": 3 * RECORDS}
    assert sink.verify() == []


def test_the_objects_of_one_ledger_have_the_unit_of_times_of_their_settings(
    sink_fixture: SinkFixture, server: SchemaRegistryServer
) -> None:
    """An object that was opened with AsSchema has milliseconds, also if it is finished and rebuilt after the edit."""
    sink = EditedSink(sink_fixture, server, EDITS["times of the schema to microseconds"])
    sink.run(0, LEFT_OPEN)
    sink_fixture.delete_staging()
    sink.run(1, CAUGHT_UP)
    tables = [pq.read_table(io.BytesIO(body)) for body in sink_fixture.contents().values()]
    units = {table.column("offset")[0].as_py(): table.schema.field("at").type.unit for table in tables}
    assert units == {0: "ms", RECORDS: "us"}
    assert [each.as_py().timestamp() for table in tables for each in table.column("at")] == [*range(2 * RECORDS)]
    assert sink.verify() == []
