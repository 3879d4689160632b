"""`make demo ARGS=--avro`: the flights as Avro, in two versions of their schema by turns, with a schema registry."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from demo.console import Show
from demo.flights import Flights
from demo.scenario import Variant
from demo.servers import ROOT, Servers
from demo.versions import check_versions
from devtools.schema_registry import schema_registry_program
from devtools.schema_registry.server import SchemaRegistryServer
from devtools.topics import Record, Topics

MANIFEST: Final = ROOT / "examples" / "flights-avro.yaml"
NEW_FIELD: Final = "weather"
"""The optional field that only the second version has."""
_NUMBERS: Final = ("year", "month", "day", "sched_dep_time", "sched_arr_time", "flight", "distance", "hour", "minute")
_OPTIONAL_NUMBERS: Final = ("dep_time", "dep_delay", "arr_time", "arr_delay", "air_time")
_TEXTS: Final = ("carrier", "airline", "origin", "dest", "time_hour")
_WEATHER: Final = ("temp", "humid", "wind_speed", "precip", "visib", "pressure")


def _optional(name: str, kind: object) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


def _record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def _flight(*more: dict[str, Any]) -> dict[str, Any]:
    """The schema of a flight, with more fields."""
    airport = [_optional("name", "string"), _optional("lat", "double"), _optional("lon", "double")]
    plane = [_optional("manufacturer", "string"), _optional("model", "string"), _optional("year", "long")]
    schema = _record(
        "Flight",
        *({"name": name, "type": "long"} for name in _NUMBERS),
        *(_optional(name, "long") for name in _OPTIONAL_NUMBERS),
        *({"name": name, "type": "string"} for name in _TEXTS),
        _optional("tailnum", "string"),
        _optional("destination", _record("Airport", *airport, _optional("tzone", "string"))),
        _optional("plane", _record("Plane", *plane, _optional("seats", "long"), _optional("engine", "string"))),
        *more,
    )
    return {**schema, "namespace": "io.s3sink.demo"}


VERSIONS: Final = (
    _flight(),
    _flight(_optional(NEW_FIELD, _record("Weather", *(_optional(name, "double") for name in _WEATHER)))),
)


class _Encoder:
    """Encodes flights with the versions of the schema by turns, and registers the versions."""

    def __init__(self, registry: str, topic: str) -> None:
        client = SchemaRegistryClient({"url": registry})
        self._context = SerializationContext(topic, MessageField.VALUE)
        self._serializers = itertools.cycle([AvroSerializer(client, json.dumps(schema)) for schema in VERSIONS])

    def __call__(self, flight: dict[str, Any]) -> bytes:
        value: bytes = next(self._serializers)(flight, self._context)
        return value


class AvroServers(Servers):
    """A broker, an S3 server and a schema registry in `folder`."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, manifest=MANIFEST)
        self.registry = SchemaRegistryServer(folder)

    def fetch(self, show: Show) -> None:
        super().fetch(show)
        schema_registry_program()

    def start(self, show: Show) -> None:
        super().start(show)
        self.registry.start()
        show.say(f"schema registry at {self.registry.url}")

    def records(self, flights: Flights) -> Iterator[Record]:
        return flights.records(_Encoder(self.registry.url, self.topic))

    def fill(self, show: Show, flights: Flights) -> Topics:
        topics = super().fill(show, flights)
        for version, schema_id in enumerate(self.schema_ids(), 1):
            added = f", with the new optional field {NEW_FIELD}" if version > 1 else ""
            show.say(f"in the registry: {self.topic}-value, version {version}, schema id {schema_id}{added}")
        return topics

    def schema_ids(self) -> list[int]:
        """The ids of the versions in the registry, in their order."""
        subject = f"/subjects/{self.topic}-value/versions"
        return [int(self.registry.request("GET", f"{subject}/{version + 1}")["id"]) for version in range(len(VERSIONS))]

    def write_manifest(self, endpoint: str) -> Path:
        self.spec["format"]["registry"]["url"] = [self.registry.url]
        return super().write_manifest(endpoint)

    def stop(self) -> None:
        self.registry.kill()
        super().stop()


def _check(show: Show, servers: AvroServers, topics: Topics, flights: Flights) -> bool:
    return check_versions(show, servers, topics, servers.schema_ids(), NEW_FIELD)


AVRO: Final = Variant(
    heading="a year of flights as Avro in two versions of a schema, from Kafka into S3, exactly once",
    data="A real data set in a topic with six partitions: every second flight has the new version of the schema",
    servers=AvroServers,
    kill_part=1,
    check=_check,
)
