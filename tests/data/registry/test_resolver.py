"""The driver resolves schema ids: a real registry, and the ledger in a bucket in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

from devtools.schema_registry.server import SchemaRegistryServer
from sink_job.api.errors import RegistryChanged, SchemaNotFound, TransientError
from sink_job.api.parser import load_sink
from sink_job.api.topic_partition import TopicPartition
from sink_job.codecs.record_fields import KeySchemas
from sink_job.connect.errors import UnknownSchema
from sink_job.connect.schema import RegisteredSchema
from sink_job.coordinator.schemas.round_schemas import SchemaUse
from sink_job.coordinator.schemas.schema_resolver import PAUSES_S, REQUESTS, UNKNOWN_TTL_S, SchemaResolver
from sink_job.driver.secret_registry import Redactor
from sink_job.engine.types import Cancelled
from sink_job.ledger.schemas.schema_store import SchemaStore, schemas_root
from sink_job.ledger.schemas.schema_table import LedgerSchemas
from sink_job.registry.clients.confluent import ConfluentRegistry
from sink_job.registry.settings import RegistrySettings
from tests.support.memory_s3 import MemoryS3
from tests.support.registry import FLIGHT, FLIGHT_2, QUICK

pytestmark = pytest.mark.data
ROOT = "topics/_s3sink/flights/"
OBJECT_SETTINGS = load_sink(
    """
apiVersion: s3sink.io/v1alpha1
kind: S3Sink
metadata: {name: flights}
spec:
  kafka: {bootstrapServers: "kafka:9092", topics: [flights]}
  rotation: {flushSize: 100}
  partitioner: {type: Field, fields: [$key.number]}
  s3: {bucket: archive}
  format: {converter: Avro, keyConverter: Avro, output: Json, registry: {url: ["http://localhost:8081"]}}
"""
).object_settings()


class Site:
    """A registry and a bucket; drivers with a clock of their own."""

    def __init__(self, server: SchemaRegistryServer) -> None:
        self.server = server
        self.s3: Any = MemoryS3()
        self.now = 1_000.0
        self.pauses: list[float] = []
        self.at_pause: Callable[[], object] = lambda: None
        self.stopping = False

    def wait(self, seconds: float) -> bool:
        if seconds:
            self.pauses.append(seconds)
            self.now += seconds
            self.at_pause()
        return self.stopping

    def at_put(self, effect: Callable[[], object]) -> None:
        """Calls `effect` at each put."""
        self.s3.fault = lambda call, _: effect() if call == "put" else None

    def elapse(self, seconds: float) -> None:
        self.now += seconds

    def stop(self) -> None:
        self.stopping = True

    def driver(self, *, needs_version: bool = False, rejects_unknown: bool = True) -> SchemaResolver:
        settings = RegistrySettings(urls=(self.server.url,), retry=QUICK, timeout_s=0.5)
        registry = ConfluentRegistry(settings, threading.Event().wait, Redactor().hide)
        return SchemaResolver(
            registry,
            SchemaStore(self.s3, ROOT),
            needs_version=needs_version,
            wait=self.wait,
            clock=lambda: self.now,
            rejects_unknown=rejects_unknown,
            reason_against=SchemaUse.of(OBJECT_SETTINGS).reason_against,
            warnings=SchemaUse.of(OBJECT_SETTINGS).warnings,
        )

    def find(self, driver: SchemaResolver, schema_id: int) -> RegisteredSchema | None:
        """What a worker finds in the next round."""
        return LedgerSchemas(self.s3, ROOT, driver.known).find("flights", str(schema_id))


@pytest.fixture
def site(server: SchemaRegistryServer) -> Site:
    return Site(server)


def resolve(driver: SchemaResolver, *ids: int, topic: str = "flights") -> None:
    driver.resolve({TopicPartition(topic, 0): [*map(str, ids)]})


def test_a_resolved_id_is_found_by_workers(site: Site) -> None:
    site.server.register("flights-value", FLIGHT)
    second = site.server.register("flights-value", FLIGHT_2)
    driver = site.driver()
    resolve(driver, second)
    found = site.find(driver, second)
    assert found is not None
    assert (found.id, found.version) == (str(second), 2)
    assert site.pauses == []


def test_many_ids_are_resolved_at_once(site: Site) -> None:
    schemas = [{"type": "fixed", "name": "example.Flight", "size": size} for size in range(1, 41)]
    ids = [site.server.register("flights-value", schema) for schema in schemas]
    driver = site.driver()
    resolve(driver, *ids)
    assert driver.resolved == {"flights": frozenset(map(str, ids))}


def test_the_same_id_of_two_topics_has_two_entries(site: Site) -> None:
    site.server.register("other-value", FLIGHT)
    shared = site.server.register("other-value", FLIGHT_2)
    site.server.register("flights-value", FLIGHT_2)
    driver = site.driver()
    driver.resolve({TopicPartition(topic, 0): [str(shared)] for topic in ("flights", "other")})
    found = [LedgerSchemas(site.s3, ROOT, driver.known).find(topic, str(shared)) for topic in ("flights", "other")]
    assert [schema.version for schema in found if schema] == [1, 2]


def test_an_unknown_id_is_asked_for_again_after_a_pause(site: Site) -> None:
    site.at_pause = lambda: site.server.register("flights-value", FLIGHT)
    driver = site.driver()
    resolve(driver, 1)
    assert site.pauses == [PAUSES_S[0]]
    assert site.find(driver, 1) is not None


def test_an_id_that_stays_unknown_rejects_its_records(site: Site) -> None:
    driver = site.driver()
    resolve(driver, 7)
    with pytest.raises(UnknownSchema, match="the schema registry does not know the schema id 7"):
        site.find(driver, 7)


def test_the_ledger_marks_an_id_that_was_unknown(site: Site) -> None:
    resolve(site.driver(), 7)
    assert [*site.s3.objects] == [f"{ROOT}schemas/flights/7.unknown.json"]


def test_an_id_that_was_unknown_is_asked_for_again_later(site: Site) -> None:
    driver = site.driver()
    resolve(driver, 1)
    site.server.register("flights-value", FLIGHT)
    site.now += UNKNOWN_TTL_S
    assert site.find(driver, 1) is None
    resolve(driver, 1)
    assert site.find(driver, 1) is not None


def test_slow_markers_do_not_make_the_first_answers_expire(site: Site) -> None:
    site.at_put(lambda: site.elapse(UNKNOWN_TTL_S / 2))
    driver = site.driver()
    resolve(driver, *range(1, 21))
    assert len(driver.unknown["flights"]) == 20


def test_slow_markers_do_not_make_a_copy_in_the_ledger_expire(site: Site) -> None:
    site.server.register("flights-value", FLIGHT)
    resolve(site.driver(), 1)
    site.server.reset()
    site.at_put(lambda: site.elapse(UNKNOWN_TTL_S))
    driver = site.driver()
    resolve(driver, 1, 2)
    assert driver.resolved == {"flights": frozenset({"1"})}


def test_a_driver_process_marks_an_unknown_id_once(site: Site) -> None:
    driver = site.driver()
    resolve(driver, 7)
    site.at_put(lambda: pytest.fail("a second marker"))
    site.now += UNKNOWN_TTL_S
    resolve(driver, 7)
    assert driver.unknown.keys() == {"flights"}


def test_markers_are_put_concurrently(site: Site) -> None:
    both = threading.Barrier(2)
    site.at_put(lambda: both.wait(10))
    resolve(site.driver(), 7, 8)
    assert len(site.s3.objects) == 2


def test_the_driver_stops_between_two_markers(site: Site) -> None:
    site.at_put(site.stop)
    with pytest.raises(Cancelled):
        resolve(site.driver(), *range(1, 41))
    assert 1 <= len(site.s3.objects) <= REQUESTS


def test_the_driver_stops_between_two_requests(site: Site) -> None:
    site.stop()
    site.server.kill()
    with pytest.raises(Cancelled):
        resolve(site.driver(), 7)


def test_a_registry_without_guids_rejects_the_records_with_its_reason(site: Site) -> None:
    site.server.answer("/schemas/guids", 404, "404 page not found")
    guid = "89791762-2336-4186-9674-299b90a802e2"
    driver = site.driver()
    driver.resolve({TopicPartition("flights", 0): [guid]})
    assert "set spec.format.registry.idIn: Value" in driver.unknown["flights"][guid]


def test_the_driver_stops_during_the_pause(site: Site) -> None:
    site.at_pause = site.stop
    with pytest.raises(Cancelled):
        resolve(site.driver(), 7)
    assert not site.s3.objects


def test_a_resolved_id_needs_no_registry_any_more(site: Site) -> None:
    site.server.register("flights-value", FLIGHT)
    driver = site.driver()
    resolve(driver, 1)
    site.server.kill()
    resolve(driver, 1)
    assert site.find(driver, 1) is not None


def test_a_new_driver_asks_the_registry_again(site: Site) -> None:
    site.server.register("flights-value", FLIGHT)
    resolve(site.driver(), 1)
    site.server.kill()
    with pytest.raises(TransientError):
        resolve(site.driver(), 1)


def test_a_registry_that_dies_leaves_nothing_half_resolved(site: Site) -> None:
    site.server.kill()
    driver = site.driver()
    with pytest.raises(TransientError):
        resolve(driver, 1)
    assert (driver.resolved, driver.unknown, site.s3.objects) == ({}, {}, {})


def test_a_registry_that_does_not_answer_stops_the_driver(site: Site) -> None:
    assert site.server.process is not None
    site.server.process.pause()
    with pytest.raises(TransientError, match="ReadTimeout"):
        resolve(site.driver(), 1)
    site.server.process.resume()


def test_two_swapped_ids_are_a_changed_registry(site: Site) -> None:
    site.server.seed("flights-value", 1, 1, FLIGHT)
    site.server.seed("flights-value", 2, 2, FLIGHT_2)
    resolve(site.driver(), 1, 2)
    site.server.reset()
    site.server.seed("flights-value", 1, 2, FLIGHT)
    site.server.seed("flights-value", 2, 1, FLIGHT_2)
    with pytest.raises(RegistryChanged, match=f"schema registry {site.server.url} returns another schema for id 1 of"):
        resolve(site.driver(), 1)


def test_a_re_created_registry_with_other_schemas_is_a_changed_registry(site: Site) -> None:
    site.server.register("flights-value", FLIGHT)
    resolve(site.driver(), 1)
    site.server.reset()
    site.server.register("flights-value", FLIGHT_2)
    with pytest.raises(RegistryChanged):
        resolve(site.driver(), 1)


def test_a_re_created_registry_with_the_same_schemas_is_accepted(site: Site) -> None:
    site.server.register("flights-value", FLIGHT)
    resolve(site.driver(), 1)
    site.server.reset()
    site.server.register("flights-value", FLIGHT)
    driver = site.driver()
    resolve(driver, 1)
    assert site.find(driver, 1) is not None


def test_the_ledgers_copy_serves_if_the_registry_has_lost_an_id(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.server.register("flights-value", FLIGHT)
    resolve(site.driver(), 1)
    site.server.reset()
    driver = site.driver()
    resolve(driver, 1)
    assert site.find(driver, 1) is not None
    assert "no longer knows the schema id 1 of topic flights: the copy in the ledger is used" in caplog.text


def test_an_id_that_the_registry_assigns_to_another_schema_later_is_noticed(site: Site) -> None:
    site.server.register("flights-value", FLIGHT)
    resolve(site.driver(), 1)
    site.server.reset()
    driver = site.driver()
    resolve(driver, 1)
    site.server.register("flights-value", FLIGHT_2)
    site.now += UNKNOWN_TTL_S
    assert site.find(driver, 1) is None
    with pytest.raises(RegistryChanged):
        resolve(driver, 1)


def test_a_schema_in_no_version_of_the_subject_is_unusable_if_versions_are_compared(site: Site) -> None:
    site.server.register("other-value", FLIGHT)
    driver = site.driver(needs_version=True)
    resolve(driver, 1)
    with pytest.raises(UnknownSchema, match="the id 1 is in no version of the subject flights-value"):
        site.find(driver, 1)


def test_a_schema_that_is_registered_for_the_subject_later_has_its_version(site: Site) -> None:
    site.server.register("other-value", FLIGHT)
    driver = site.driver(needs_version=True)
    resolve(driver, 1)
    site.server.register("flights-value", FLIGHT)
    site.now += UNKNOWN_TTL_S
    resolve(driver, 1)
    found = site.find(driver, 1)
    assert found is not None
    assert found.version == 1


def test_the_same_id_of_keys_and_values_has_a_copy_and_a_version_of_each(site: Site) -> None:
    site.server.register("flights-value", FLIGHT)
    schema_id = site.server.register("flights-value", FLIGHT_2)
    assert site.server.register("flights-key", FLIGHT_2) == schema_id
    driver = site.driver()
    driver.resolve({TopicPartition("flights", 0): [f"key-{schema_id}", str(schema_id)]})
    table = LedgerSchemas(site.s3, ROOT, driver.known)
    found = [table.find("flights", each) for each in (str(schema_id), f"key-{schema_id}")]
    assert [each and (each.id, each.subject, each.version) for each in found] == [
        (str(schema_id), "flights-value", 2),
        (f"key-{schema_id}", "flights-key", 1),
    ]


def test_the_schema_of_a_key_needs_no_version(site: Site) -> None:
    schema_id = site.server.register("flights-value", FLIGHT)
    driver = site.driver(needs_version=True)
    driver.resolve({TopicPartition("flights", 0): [f"key-{schema_id}"]})
    found = LedgerSchemas(site.s3, ROOT, driver.known).find("flights", f"key-{schema_id}")
    assert found is not None
    assert (found.subject, found.version) == ("flights-key", None)


def test_an_unknown_id_of_a_key_is_named_as_such(site: Site) -> None:
    driver = site.driver()
    driver.resolve({TopicPartition("flights", 0): ["key-77"]})
    assert driver.unknown == {"flights": {"key-77": "the schema registry does not know the schema id 77 (of the key)"}}


def test_an_id_that_a_replica_of_the_registry_knows_later_rejects_no_record(site: Site) -> None:
    requests = iter(range(10))

    def replicated() -> None:
        if next(requests) == 3:
            site.server.register("flights-value", FLIGHT)

    site.at_pause = replicated
    driver = site.driver(rejects_unknown=False)
    resolve(driver, 1)
    assert site.pauses == list(PAUSES_S[:4])
    assert site.find(driver, 1) is not None
    assert [*site.s3.objects] == [f"{ROOT}schemas/flights/1.json"]


def test_an_id_that_the_registry_never_knows_ends_the_driver_and_nothing_is_marked(site: Site) -> None:
    driver = site.driver(rejects_unknown=False)
    with pytest.raises(
        SchemaNotFound, match=r"does not know the schema id 7 of a record of flights-0, also after 60 s"
    ) as raised:
        resolve(driver, 7)
    assert "begins with the byte 0" in str(raised.value)
    assert "unknownIds: Reject" in str(raised.value)
    assert site.pauses == list(PAUSES_S)
    assert not site.s3.objects
    assert SchemaNotFound.exit_code == 75


def test_a_schema_that_cannot_be_compiled_is_not_stored(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    site.server.register("flights-value", FLIGHT)
    driver = site.driver(rejects_unknown=False)
    broken = RegisteredSchema("1", "AVRO", "not a schema {", subject="flights-value", version=1)
    monkeypatch.setattr(ConfluentRegistry, "fetch", lambda *_, is_key: broken)
    resolve(driver, 1)
    monkeypatch.undo()
    assert f"{ROOT}schemas/flights/1.json" not in site.s3.objects
    with pytest.raises(UnknownSchema, match=r"schema 1 \(subject flights-value version 1\) cannot be used"):
        site.find(driver, 1)
    corrected = site.driver(rejects_unknown=False)
    resolve(corrected, 1)
    assert site.find(corrected, 1) is not None


def test_a_schema_of_a_key_that_cannot_be_compiled_is_not_stored(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry of another environment answers at the first start, then the URL is corrected."""
    site.server.register("flights-key", FLIGHT)
    broken = RegisteredSchema("1", "AVRO", "not a schema {", subject="flights-key", version=1)
    monkeypatch.setattr(ConfluentRegistry, "fetch", lambda *_, is_key: broken)
    driver = site.driver(rejects_unknown=False)
    driver.resolve({TopicPartition("flights", 0): ["key-1"]})
    monkeypatch.undo()
    assert f"{ROOT}schemas/flights/key-1.json" not in site.s3.objects
    corrected = site.driver(rejects_unknown=False)
    corrected.resolve({TopicPartition("flights", 0): ["key-1"]})
    assert KeySchemas(LedgerSchemas(site.s3, ROOT, corrected.known)).find("flights", "1") is not None


def test_another_version_of_a_known_id_is_a_changed_registry_where_versions_are_compared(site: Site) -> None:
    site.server.seed("flights-value", 1, 1, FLIGHT)
    resolve(site.driver(needs_version=True), 1)
    site.server.reset()
    site.server.seed("flights-value", 2, 1, FLIGHT)
    with pytest.raises(
        RegistryChanged, match="as version 2 of subject flights-value, and the ledger as version 1"
    ) as error:
        resolve(site.driver(needs_version=True), 1)
    assert "s3sink forget-schema SINK.yaml --topic flights --id 1" in str(error.value)
    assert f"{ROOT}schemas/flights/1.json" in str(error.value)


def test_another_version_of_a_known_id_is_a_warning_elsewhere(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    site.server.seed("flights-value", 1, 1, FLIGHT)
    resolve(site.driver(), 1)
    site.server.reset()
    site.server.seed("flights-value", 2, 1, FLIGHT)
    driver = site.driver()
    resolve(driver, 1)
    found = site.find(driver, 1)
    assert found is not None
    assert found.version == 1
    assert "The ledger's version stays in force" in caplog.text


def test_a_copy_without_a_version_gets_one_where_versions_are_compared(site: Site) -> None:
    site.server.register("other-value", FLIGHT)
    resolve(site.driver(), 1)
    copy = site.s3.objects[f"{ROOT}schemas/flights/1.json"]
    site.server.register("flights-value", FLIGHT)
    driver = site.driver(needs_version=True)
    resolve(driver, 1)
    found = site.find(driver, 1)
    assert found is not None
    assert (found.subject, found.version) == ("flights-value", 1)
    assert site.s3.objects[f"{ROOT}schemas/flights/1.json"] == copy
    site.server.register("flights-value", FLIGHT_2)
    again = site.driver(needs_version=True)
    resolve(again, 1)
    assert site.find(again, 1) == found


def test_a_copy_without_a_version_keeps_having_none_where_versions_are_not_compared(site: Site) -> None:
    site.server.register("other-value", FLIGHT)
    resolve(site.driver(), 1)
    site.server.register("flights-value", FLIGHT)
    driver = site.driver()
    resolve(driver, 1)
    found = site.find(driver, 1)
    assert found is not None
    assert found.version is None


def test_a_new_generation_of_the_ledger_has_no_copies(site: Site) -> None:
    site.server.register("flights-value", FLIGHT)
    resolve(site.driver(), 1)
    store = SchemaStore(site.s3, schemas_root(ROOT, 2))
    assert store.get("flights", "1") is None
    other = RegisteredSchema("1", "AVRO", '"int"', subject="flights-value", version=1)
    assert store.put("flights", other, site.server.url) == other
    assert f"{ROOT}generation=2/schemas/flights/1.json" in site.s3.objects
