"""The schemas that the tasks of a round may use, and what a sink cannot do with a schema."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from sink_job.api.errors import SchemaNotFound
from sink_job.api.parser import load_sink
from sink_job.api.sections.schema_section import INFERRED_ID
from sink_job.api.spec import ObjectSettings
from sink_job.api.topic_partition import TopicPartition
from sink_job.connect.schema import RegisteredSchema
from sink_job.coordinator.context import CoordinatorContext
from sink_job.coordinator.schemas.round_schemas import RoundSchemas, SchemaUse
from sink_job.json.typed.inference import SampledValues
from sink_job.ledger.ownership import Owner
from sink_job.ledger.schemas.schema_table import KnownSchemas, LedgerSchemas
from sink_job.ledger.state import PartitionState
from sink_job.tasks.write import TaskCounters, TaskResult
from tests.support.memory_s3 import MemoryS3
from tests.support.sink_fixture import manifest
from tests.support.synthetic_log import CLOCK_MS, InlineEngine, SyntheticLog
from tests.unit.coordinator.test_schema_warnings import AVRO, object_settings

TP, OTHER = TopicPartition("log", 0), TopicPartition("log", 1)
ROOT = "topics/_s3sink/log/"
LONG = RegisteredSchema("7", "AVRO", '"long"', (), "log-value", 1)


@dataclass
class Registry:
    """Knows the ids below 100."""

    url: str = "https://registry.example.com"
    asked: list[str] = field(default_factory=list)

    def fetch(self, topic: str, schema_id: str, *, is_key: bool = False) -> RegisteredSchema | None:
        self.asked.append(schema_id)
        if int(schema_id) >= 100:
            return None
        return RegisteredSchema(schema_id, "AVRO", json.dumps(AVRO), (), f"{topic}-value", int(schema_id))

    def close(self) -> None:
        pass


REGISTRY = {"url": ["https://registry.example.com"]}


def round_schemas(s3: MemoryS3, client: Registry | None = None, **formats: Any) -> RoundSchemas:
    sink = load_sink(manifest("archive", "http://127.0.0.1:9", flush_size=5, spec={"format": formats}))
    nothing: Any = None
    log = SyntheticLog()
    context = CoordinatorContext(
        s3=nothing, admin=nothing, engine=InlineEngine(log), clock=lambda: CLOCK_MS,
        owner=Owner("c", "default", "log", "log"), attempt="a", registry=client,
    )  # fmt: skip
    patched: Any = context.stop
    patched.wait = lambda timeout=None: False  # no pause between two questions
    store: Any = s3
    return RoundSchemas(sink, context, store, ROOT)


def result(*ids: str, observed: SampledValues | None = None, end: int = 0) -> TaskResult:
    """The task ended before the record `end`, which has the first of the ids."""
    unresolved = tuple(("log", each) for each in ids)
    return TaskResult(PartitionState.start(end), TaskCounters(), unresolved=unresolved, observed=observed)


def test_a_sink_without_schemas_knows_none_and_resolves_nothing() -> None:
    s3 = MemoryS3()
    one = round_schemas(s3)
    one.resolve({TP: result("7")})
    assert one.known() == KnownSchemas()
    assert s3.objects == {}


def test_reported_ids_are_resolved_and_known_to_the_tasks_of_the_next_round() -> None:
    s3, registry = MemoryS3(), Registry()
    one = round_schemas(s3, registry, converter="Avro", registry=REGISTRY)
    one.resolve({TP: result("7", "8"), OTHER: result("8")})
    known = one.known()
    assert known.resolved == {"log": frozenset({"7", "8"})}
    assert sorted(registry.asked) == ["7", "8"]
    store: Any = s3
    found = LedgerSchemas(store, ROOT, known).find("log", "8")
    assert found is not None
    assert found.id == "8"


def test_results_without_an_id_ask_the_registry_for_nothing() -> None:
    registry = Registry()
    one = round_schemas(MemoryS3(), registry, converter="Avro", registry=REGISTRY)
    one.resolve({TP: result()})
    one.resolve({})
    assert registry.asked == []


def test_an_id_that_the_registry_does_not_know_ends_the_driver() -> None:
    one = round_schemas(MemoryS3(), Registry(), converter="Avro", registry=REGISTRY)
    with pytest.raises(SchemaNotFound, match="100"):
        one.resolve({TP: result("100")})


def test_the_error_names_the_record_and_the_command_that_skips_it() -> None:
    one = round_schemas(MemoryS3(), Registry(), converter="Avro", registry=REGISTRY)
    with pytest.raises(SchemaNotFound) as raised:
        one.resolve({OTHER: result("7", end=3), TP: result("100", "101", end=42)})
    assert "does not know the schema id 100 of the record at log-0 offset 42 and 1 other id, also" in str(raised.value)
    assert str(raised.value).endswith(
        "To pass over this record alone: kubectl s3sink skip log -n default log-0@42, or spec.errors.skip: [{topic: "
        "log, partition: 0, offset: 42}]"
    )


def test_records_before_the_one_with_an_unknown_id_are_written_first() -> None:
    """The tasks report the ids of later records, too."""
    registry = Registry()
    one = round_schemas(MemoryS3(), registry, converter="Avro", registry=REGISTRY)
    one.resolve({TP: result("7", "100", "8")})
    assert one.known() == KnownSchemas({"log": frozenset({"7", "8"})}, {})
    assert registry.asked.count("100") == 1
    with pytest.raises(SchemaNotFound, match="of the record at log-0 offset 5, also"):
        one.resolve({TP: result("100", end=5)})


def test_an_unknown_id_behind_an_inferred_schema_has_no_known_offset() -> None:
    one = round_schemas(MemoryS3(), Registry(), converter="Avro", registry=REGISTRY)
    with pytest.raises(SchemaNotFound, match="of a record of log-0, also") as raised:
        one.resolve({TP: result(INFERRED_ID, "100", end=5)})
    assert "kubectl s3sink skip" not in str(raised.value)


def test_with_reject_the_records_of_an_unknown_id_are_rejected_with_the_reason() -> None:
    one = round_schemas(MemoryS3(), Registry(), converter="Avro", registry={**REGISTRY, "unknownIds": "Reject"})
    one.resolve({TP: result("100", "7")})
    known = one.known()
    assert known.resolved == {"log": frozenset({"7"})}
    assert "100" in known.unknown["log"]["100"]


# -- inference -------------------------------------------------------------------------------------------------------


def inferring(s3: MemoryS3) -> RoundSchemas:
    return round_schemas(s3, output="Avro", inference="Once")


def sampled(*values: Any) -> SampledValues:
    found = SampledValues()
    for each in values:
        found.add(each)
    return found


def test_an_inferred_schema_is_known_to_the_tasks_of_the_next_round() -> None:
    s3 = MemoryS3()
    one = inferring(s3)
    assert one.known() == KnownSchemas()
    one.resolve({TP: result(INFERRED_ID, observed=sampled({"a": 1})), OTHER: result()})
    assert one.known().resolved == {"log": frozenset({INFERRED_ID})}
    assert len(s3.objects) == 1


def test_without_observed_values_nothing_is_inferred() -> None:
    s3 = MemoryS3()
    one = inferring(s3)
    one.resolve({TP: result()})
    assert one.known() == KnownSchemas()
    assert s3.objects == {}


def test_the_first_schema_of_the_ledger_is_that_of_each_later_driver() -> None:
    s3 = MemoryS3()
    inferring(s3).resolve({TP: result(INFERRED_ID, observed=sampled({"a": 1}))})
    (stored,) = s3.objects.values()
    later = inferring(s3)
    later.resolve({TP: result(INFERRED_ID, observed=sampled({"b": "x"}))})
    assert [*s3.objects.values()] == [stored]
    assert later.known().resolved == {"log": frozenset({INFERRED_ID})}


# -- what a sink can do with a schema --------------------------------------------------------------------------------


def test_a_schema_that_the_output_cannot_express_has_a_reason() -> None:
    use = SchemaUse.of(object_settings("Avro", "Parquet"))
    empty = {"type": "record", "name": "Flight", "fields": []}
    reason = use.reason_against(RegisteredSchema("7", "AVRO", json.dumps(empty)))
    assert reason is not None
    assert use.reason_against(RegisteredSchema("7", "AVRO", json.dumps(AVRO))) is None


def test_a_schema_of_another_language_has_a_reason() -> None:
    use = SchemaUse.of(object_settings("Avro", "Json"))
    reason = use.reason_against(RegisteredSchema("7", "JSON", "{}"))
    assert reason is not None
    assert "JSON" in reason


def test_a_schema_of_keys_is_compared_with_the_converter_of_keys() -> None:
    settings = ObjectSettings.model_validate(
        {
            "format": {"converter": "Avro", "keyConverter": "JsonSchema", "output": "Json", "envelope": True},
            "framing": {"type": "Confluent", "subjects": "TopicName", "idIn": "Value"},
            "rotation": {"flushSize": 10},
        }
    )
    use = SchemaUse.of(settings)
    avro, language = json.dumps(AVRO), json.dumps({"type": "object"})
    assert use.reason_against(RegisteredSchema("7", "AVRO", avro)) is None
    assert use.reason_against(RegisteredSchema("key-7", "AVRO", avro)) is not None
    assert use.reason_against(RegisteredSchema("key-7", "JSON", language)) is None
    assert use.reason_against(RegisteredSchema("7", "JSON", language)) is not None


@pytest.mark.parametrize("converter", ["Json", "Text", "Bytes"])
def test_a_converter_without_schemas_has_no_reason_and_no_warning(converter: str) -> None:
    use = SchemaUse.of(ObjectSettings.model_validate({"format": {"converter": converter}, "rotation": {}}))
    assert (use.value, use.key) == (None, None)
    assert use.reason_against(LONG) is None
    assert use.warnings(LONG) == ()


def test_fields_that_differ_by_case_are_warned_of() -> None:
    use = SchemaUse.of(object_settings("Avro", "Json"))
    (warning,) = use.warnings(RegisteredSchema("7", "AVRO", json.dumps(AVRO)))
    assert "Seats and seats differ by case only" in warning
    assert use.warnings(LONG) == ()
