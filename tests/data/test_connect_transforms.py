"""Each transform has the results of Kafka's own class for random records, in the list that `convert` makes of it."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from sink_job.api.enums import ConverterType
from sink_job.api.sections.transforms_section import TransformSpec
from sink_job.api.topic_partition import TopicPartition
from sink_job.arrow import columns as arrow_columns
from sink_job.migrate.transforms import converted, predicate
from sink_job.transforms.transform_list import TransformedBatch, TransformList
from tests.support import typed_values
from tests.support.avro_records import AvroRecords, as_envelope
from tests.support.change_events import change_event
from tests.support.connect_transforms import KAFKA, ConnectRecord, ConnectStep, ConnectTransforms, connect_transforms

pytestmark = [pytest.mark.data, pytest.mark.skipif(shutil.which("javac") is None, reason="no JDK, only a JRE")]

SEED = int(os.environ.get("S3SINK_SEED", "1"))
TP = TopicPartition("t", 3)
_NUMBER = re.compile(r"-?\d+\.\d+(E-?\d+)?")
NAMES = ("a", "b", "c", "a.b", "ä", "x y")
KINDS = (
    *("InsertField", "ReplaceField", "MaskField", "Cast", "Flatten", "ExtractField", "HoistField", "Filter"),
    "TimestampConverter",
)
TEXTS = ("", "x", "12", "-7", "+3", "1.5", "true", "TRUE", " 4 ", "NaN", "1e3", "300", "0x1p3", "7f", 'é\n"')
TIMES = ("2024-02-29 23:59:59", "2024-02-30 1:2:3", "2024-13-01 00:00:00 more", "24-1-1 0:0:0", "x", "1970-01-01")


@pytest.fixture(scope="module")
def kafka() -> Iterator[ConnectTransforms]:
    with connect_transforms() as found:
        yield found


def test_transforms_of_random_records_equal_kafkas(kafka: ConnectTransforms) -> None:
    print(f"repeat with S3SINK_SEED={SEED}")
    rng = random.Random(SEED)
    for number in range(int(os.environ.get("S3SINK_RUNS") or 250)):
        steps = _steps(rng)
        records = [_record(rng, offset) for offset in range(30)]
        compare(kafka, steps, records, f"run {number} of seed {SEED}")


@pytest.mark.parametrize("name", ["Cast", "TimestampConverter"])
def test_conversions_of_random_records_equal_kafkas(kafka: ConnectTransforms, name: str) -> None:
    rng = random.Random(SEED)
    for number in range(80):
        records = [_record(rng, offset) for offset in range(40)]
        compare(kafka, [_of_kind(rng, name)], records, f"run {number} of seed {SEED}")


def test_transforms_of_random_records_with_schemas_equal_kafkas(kafka: ConnectTransforms) -> None:
    rng = random.Random(SEED)
    for number in range(int(os.environ.get("S3SINK_RUNS") or 250)):
        steps = [_with_schema(rng, each) for each in _steps(rng)]
        schemas = [typed_values.random_schema(rng, optional=rng.random() < 0.2) for _ in range(3)]
        records = [typed_values.random_record(rng, offset, schemas) for offset in range(20)]
        compare(kafka, steps, records, f"run {number} of seed {SEED}", schemas=True)


@pytest.mark.parametrize("name", ["Cast", "TimestampConverter", "MaskField", "Flatten"])
def test_conversions_of_random_records_with_schemas_equal_kafkas(kafka: ConnectTransforms, name: str) -> None:
    rng = random.Random(SEED)
    for number in range(80):
        schemas = [typed_values.random_schema(rng) for _ in range(4)]
        records = [typed_values.random_record(rng, offset, schemas) for offset in range(24)]
        compare(kafka, [_with_schema(rng, _of_kind(rng, name))], records, f"run {number} of seed {SEED}", schemas=True)


def test_transforms_of_random_avro_values_equal_kafkas(kafka: ConnectTransforms) -> None:
    rng = random.Random(SEED)
    for number in range(int(os.environ.get("S3SINK_RUNS") or 250)):
        steps = [_with_schema(rng, each) for each in _steps(rng)]
        schemas = [typed_values.random_schema(rng, names=typed_values.ASCII_NAMES) for _ in range(3)]
        given = [typed_values.random_record(rng, offset, schemas) for offset in range(20)]
        avro = AvroRecords()
        values = [avro.value(each) for each in given]
        records = [avro.in_envelope(each, value) for each, value in zip(given, values, strict=True)]
        expected = kafka.apply(steps, records, schemas=True)
        decoded = TransformList(specs_of(steps), ConverterType.AVRO, avro.converter)
        found = answers(decoded.apply(batch_of(records, values), TP), as_envelope)
        check(expected, found, steps, records, f"run {number} of seed {SEED}", schemas=True)


@pytest.mark.parametrize("spec", ["boolean", "int8", "int32", "int64", "float32", "float64", "string"])
@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [("int32", "Date", 3), ("int32", "Time", 0), ("int64", "Timestamp", 86_400_000), ("bytes", "Decimal", "AQ==")],
)
def test_a_cast_of_a_whole_value_of_a_logical_type_is_an_error_as_with_kafka(
    kafka: ConnectTransforms, kind: str, name: str, value: object, spec: str
) -> None:
    schema = {"type": kind, "name": f"org.apache.kafka.connect.data.{name}", "version": 1, "optional": True}
    schema |= {"parameters": {"scale": "0"}} if name == "Decimal" else {}
    values = [json.dumps({"schema": schema, "payload": each}) for each in (value, None)]
    records = [ConnectRecord(each, offset=offset) for offset, each in enumerate(values)]
    compare(kafka, [ConnectStep("Cast$Value", {"spec": spec})], records, spec, schemas=True)


@pytest.mark.parametrize("mode", ["drop", "tombstone", "rewrite", "rewrite-with-tombstone", "default"])
@pytest.mark.parametrize("added", ["", "op", "op,ts_ms,db,source.ts_ms"])
def test_change_events_are_unwrapped_as_by_debezium(kafka: ConnectTransforms, mode: str, added: str) -> None:
    row, changed = {"id": 1, "name": "x"}, {"id": 1, "name": None}
    events = [
        change_event("c", None, row),
        change_event("r", None, row),
        change_event("u", row, changed),
        change_event("u", None, changed),
        change_event("d", changed, None),
        change_event("d", None, None),
        change_event("t", None, None),
        change_event("c", None, row, name="other"),
        None,
        json.dumps({"schema": {"type": "int64", "optional": True}, "payload": None}),
        json.dumps({"schema": {"type": "int64", "optional": True}, "payload": 5}),
        json.dumps({"schema": None, "payload": {"after": {"id": 1}}}),
    ]
    settings = {} if mode == "default" else {"delete.tombstone.handling.mode": mode}
    settings |= {"add.fields": added} if added else {}
    records = [ConnectRecord(each, offset=offset) for offset, each in enumerate(events)]
    compare(kafka, [ConnectStep("io.debezium.transforms.ExtractNewRecordState", settings)], records, mode, schemas=True)


def _with_schema(rng: random.Random, step: ConnectStep) -> ConnectStep:
    """The step, also with types that only values with a schema have."""
    if not step.name.startswith("TimestampConverter") or rng.random() < 0.4:
        return step
    return replace(step, settings={**step.settings, "target.type": rng.choice(["Date", "Time", "Timestamp"])})


def compare(
    kafka: ConnectTransforms,
    steps: Sequence[ConnectStep],
    records: Sequence[ConnectRecord],
    where: str,
    *,
    schemas: bool = False,
) -> None:
    expected = kafka.apply(steps, records, schemas=schemas)
    converter = ConverterType.CONNECT_JSON if schemas else ConverterType.JSON
    found = answers(TransformList(specs_of(steps), converter).apply(batch_of(records), TP), bytes.decode)
    check(expected, found, steps, records, where, schemas=schemas)


def check(
    expected: Sequence[dict[str, Any]],
    found: Sequence[dict[str, Any]],
    steps: Sequence[ConnectStep],
    records: Sequence[ConnectRecord],
    where: str,
    *,
    schemas: bool,
) -> None:
    for record, one, other in zip(records, expected, found, strict=True):
        if _is_known_difference(one, other):
            continue
        if "error" in one or "error" in other:
            assert ("error" in one) == ("error" in other), (where, steps, record, one, other)
        else:
            assert "config" not in one, (where, steps, one)
            single = "float32" in str(steps)
            compared = [_read(each, single=single, schemas=schemas) for each in (one, other)]
            assert compared[0] == compared[1], (where, steps, record, one, other)


def _is_known_difference(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """docs/semantics.md, section 18: times beyond years with four digits, numbers with a sign in texts of times,
    numbers of Cast and Insert with less than 64 bits as times, decimals that Mask replaces before a Cast, and times and
    decimals that a Cast changes before a Filter leaves them out."""
    if re.search(r"does not support class java\.lang\.(Byte|Short|Integer) objects", one.get("error", "")):
        return True
    known = (
        "cannot be masked so",
        "has no schema",
        "has no timestamp",
        "out of range",
        "year is not between",
        "the text has no number",
        "the text has no zone",
        "keeps as its name",
    )
    return "error" not in one and any(each in other.get("error", "") for each in known)


def _read(answer: dict[str, Any], *, single: bool, schemas: bool) -> object:
    """An answer to compare: numbers with their types, objects without an order. `single`: as float32, whose texts by
    Java 17 are longer than those by Java 19."""
    if answer.get("filtered"):
        return "filtered"
    value = None if answer["value"] is None else json.loads(answer["value"])
    if schemas and value is not None:
        if value["schema"] is None:
            value = value["payload"]
        else:
            payload = _with_defaults(value["schema"], value["payload"])
            value = {"schema": _complete(value["schema"]), "payload": payload}
    return None if value is None else _typed(value, single=single)


def _with_defaults(schema: dict[str, Any], payload: Any) -> Any:
    """A payload with the defaults of fields in place of nulls, as the converter reads it."""
    payload = schema.get("default") if payload is None else payload
    if schema["type"] != "struct" or payload is None:
        return payload
    return {each["field"]: _with_defaults(each, payload.get(each["field"])) for each in schema["fields"]}


def _complete(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema with what it has by default."""
    found = {"optional": False, **schema}
    if "fields" in found:
        found["fields"] = [_complete(each) for each in found["fields"]]
    return found | {name: _complete(found[name]) for name in ("keys", "values", "items") if name in found}


def _typed(value: object, *, single: bool) -> object:
    if isinstance(value, dict):
        return {name: _typed(each, single=single) for name, each in value.items()}
    if isinstance(value, list):
        return [_typed(each, single=single) for each in value]
    if single and (isinstance(value, float) or (isinstance(value, str) and _NUMBER.fullmatch(value))):
        with np.errstate(over="ignore"):
            return type(value), float(np.float32(value))
    return type(value), value


def specs_of(steps: Sequence[ConnectStep]) -> list[TransformSpec]:
    """The list that `convert` makes of the transforms."""
    specs = []
    for step in steps:
        when = {}
        if step.predicate is not None:
            found = predicate(f"{KAFKA}predicates.{step.predicate}", step.predicate_settings, negated=step.negate)
            when = {"when": found}
        specs += [TransformSpec.model_validate({**each, **when}) for each in converted(step.kind, step.settings)]
    return specs


def answers(transformed: TransformedBatch, text: Callable[[bytes], str]) -> list[dict[str, Any]]:
    """What the sink has made of records, in the form of the JVM's answers. `text` is that of a value."""
    rejected = dict(transformed.rejected)
    found: list[dict[str, Any]] = []
    for row, value in enumerate(transformed.batch.column("value").to_pylist()):
        if row in rejected:
            found.append({"error": rejected[row]})
        elif transformed.filtered[row]:
            found.append({"filtered": True})
        else:
            found.append({"value": None if value is None else text(value)})
    return found


def batch_of(records: Sequence[ConnectRecord], values: Sequence[bytes | None] | None = None) -> pa.RecordBatch:
    """`values`: those of the records; None for their texts."""
    if values is None:
        values = [None if each.value is None else each.value.encode() for each in records]
    headers = [[{"key": name, "value": b"x"} for name in each.headers] for each in records]
    times = [-1 if each.timestamp is None else each.timestamp for each in records]
    return pa.record_batch(
        {
            "offset": arrow_columns.integers(np.array([each.offset for each in records], np.int64)),
            "value": arrow_columns.binaries(list(values)),
            "timestamp": arrow_columns.integers(np.array(times, np.int64)),
            "headers": pa.array(headers, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
        }
    )


def _record(rng: random.Random, offset: int) -> ConnectRecord:
    value: str | None = json.dumps(_object(rng, 0), ensure_ascii=rng.random() < 0.5)
    if rng.random() < 0.15:
        value = rng.choice([None, "null", " null ", json.dumps(_scalar(rng)), "[1, 2]", "{}"])
    return ConnectRecord(
        value=value,
        partition=3,
        offset=offset,
        timestamp=rng.choice([None, 0, 1_700_000_000_123]),
        headers=tuple(rng.sample(["h", "other"], rng.randrange(3))),
    )


def _object(rng: random.Random, depth: int) -> dict[str, object]:
    return {name: _value(rng, depth) for name in rng.sample(NAMES, rng.randrange(len(NAMES) + 1))}


def _value(rng: random.Random, depth: int) -> object:
    kind = rng.random()
    if depth < 3 and kind < 0.2:
        return _object(rng, depth + 1)
    if depth < 3 and kind < 0.3:
        return [_value(rng, depth + 1) for _ in range(rng.randrange(3))]
    return _scalar(rng)


def _scalar(rng: random.Random) -> object:
    return rng.choice(
        [
            None,
            True,
            False,
            rng.randrange(-300, 300),
            rng.randrange(-(2**63), 2**63),
            rng.randrange(0, 2**41),
            float(rng.randrange(-300, 300)) / 4,
            rng.choice([1e300, -1e300, 1e7, 0.001, 1e-5, 123456789.25, 0.0, 3e38, 1e39]),
            rng.choice(TEXTS),
            rng.choice(TIMES),
        ]
    )


def _steps(rng: random.Random) -> list[ConnectStep]:
    """One to three steps, of which one renames: two would give a name twice, where Kafka's class has no order."""
    steps = [_step(rng) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    renaming = [each for each in steps if "renames" in each.settings]
    return [each for each in steps if each not in renaming[1:]]


def _step(rng: random.Random) -> ConnectStep:
    name = rng.choice(KINDS)
    step = _of_kind(rng, name)
    if name != "Filter" and rng.random() < 0.6:
        return step
    kind, settings = rng.choice(
        [
            ("TopicNameMatches", {"pattern": rng.choice(["t", "t.*", "x|t", "x"])}),
            ("HasHeaderKey", {"name": "h"}),
            ("RecordIsTombstone", {}),
        ]
    )
    return ConnectStep(step.name, step.settings, kind, settings, rng.random() < 0.5)


def _of_kind(rng: random.Random, name: str) -> ConnectStep:
    def names(most: int = 3) -> list[str]:
        return rng.sample(["a", "b", "c", "z"], rng.randrange(1, most + 1))

    settings: dict[str, str] = {}
    match name:
        case "InsertField":
            for key in rng.sample(["topic", "partition", "offset", "timestamp"], rng.randrange(1, 4)):
                settings[f"{key}.field"] = f"{key}{rng.choice(['', '!', '?'])}" if rng.random() < 0.7 else "a"
            if rng.random() < 0.4:
                settings |= {"static.field": "s", "static.value": "some text"}
        case "ReplaceField":
            settings |= {"include": ",".join(names())} if rng.random() < 0.4 else {}
            settings |= {"exclude": ",".join(names())} if rng.random() < 0.4 else {}
            settings |= {"renames": "b:renamed, ä:u"} if rng.random() < 0.6 or not settings else {}
        case "MaskField":
            settings = {"fields": ",".join(names())}
            settings |= {"replacement": rng.choice(["7", "***", "1.5"])} if rng.random() < 0.5 else {}
        case "Cast":
            kinds = ["int8", "int16", "int32", "int64", "float32", "float64", "boolean"]
            kinds += [] if rng.random() < 0.5 else ["string"]
            pairs = [f"{each}:{rng.choice(kinds)}" for each in names()]
            settings = {"spec": ",".join(pairs) if rng.random() < 0.8 else rng.choice(kinds)}
        case "Flatten":
            settings = {"delimiter": rng.choice(["_", "::"])}
        case "ExtractField" | "HoistField":
            settings = {"field": rng.choice(["a", "b", "z"])}
        case "TimestampConverter":
            settings = {"target.type": rng.choice(["string", "unix"])}
            settings |= {"field": rng.choice(["a", "b", "z"])} if rng.random() < 0.8 else {}
            settings["format"] = rng.choice(["yyyy-MM-dd HH:mm:ss", "yyyyMMdd", "yyyy-M-d'T'H:m:s.SSSX"])
            settings |= {"unix.precision": rng.choice(["seconds", "microseconds", "nanoseconds"])}
    return ConnectStep(name if name == "Filter" else f"{name}$Value", settings)
