"""Cross-field rules, and their messages for invalid combinations of fields."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.api.manifests import ABSENT, HOURLY, TIME, accepted, spec_errors


def case(sentence: str, changes: dict[str, object], *expected: str) -> Any:
    return pytest.param(changes, list(expected), id=sentence)


BOTH = {"type": "FieldAndTime", "fields": ["a"], "timezone": "UTC", "duration": "1h", "pathFormat": "HH"}
HOURS = "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH"
REGISTRY = {"url": ["https://registry:8081"]}
NO_ROTATION = "spec.rotation: no setting closes objects: set at least one of flushSize, interval, "

INVALID = [
    case(
        "neither topics nor a pattern",
        {"spec.kafka.topics": ABSENT},
        "spec.kafka.topics: is missing: set topics or topicsPattern",
    ),
    case(
        "topics and a pattern",
        {"spec.kafka.topicsPattern": ".*"},
        "spec.kafka.topicsPattern: cannot be combined with topics: set only one of them",
    ),
    case(
        "a form of decimals without decimals",
        {"spec.format.decimals": "Numeric"},
        "spec.format.decimals: Numeric has no effect with the converter Json: it applies to Avro, Protobuf, "
        "ConnectJson; remove it",
    ),
    case(
        "a form of timestamps without timestamps",
        {"spec.format": {"converter": "Cbor", "timestamps": "Iso"}},
        "spec.format.timestamps: Iso has no effect with the converter Cbor: it applies to Avro, Protobuf, "
        "ConnectJson, and to an envelope; remove it",
    ),
    case(
        "logical types of Avro without Avro or Parquet",
        {"spec.format.logicalTypes": "AsConnector"},
        "spec.format.logicalTypes: AsConnector has no effect with the output Json: remove it, or use the output Avro "
        "or Parquet",
    ),
    *(
        case(
            f"the section {section} with another output",
            {"spec.format": {"converter": "Bytes", "output": output, section: {field: value}}},
            f"spec.format.{section}: has no effect with the output {output}: it applies to the output {applies}; "
            "remove it",
        )
        for section, field, value, output, applies in (
            ("parquet", "timeUnit", "Micros", "Bytes", "Parquet"),
            ("parquet", "bloomFilters", ["a", "b.c"], "Bytes", "Parquet"),
            ("parquet", "rowGroup", "64Mi", "Bytes", "Parquet"),
            ("avro", "connectNames", True, "Bytes", "Avro"),
            ("avro", "block", "1Mi", "Bytes", "Avro"),
        )
    ),
    case(
        "the section bytes with another output",
        {"spec.format": {"bytes": {"separator": ""}}},
        "spec.format.bytes: has no effect with the output Json: it applies to the output Bytes; remove it",
    ),
    case(
        "a Bloom filter listed twice",
        {
            "spec.format": {
                "converter": "ConnectJson",
                "output": "Parquet",
                "parquet": {"bloomFilters": ["a", "b", "a"]},
            }
        },
        "spec.format.parquet.bloomFilters: a is listed 2 times",
    ),
    case(
        "a topic listed twice",
        {"spec.kafka.topics": ["a", "b", "a"]},
        "spec.kafka.topics: a is listed 2 times",
    ),
    case(
        "no setting that closes objects",
        {"spec.rotation": {}},
        f"{NO_ROTATION}scheduleInterval, maxBytes",
    ),
    case(
        "only maxOpenTime to close objects",
        {"spec.rotation": {"maxOpenTime": "5m"}},
        f"{NO_ROTATION}scheduleInterval, maxBytes (maxOpenTime alone is not enough)",
    ),
    case(
        "an interval without a time partitioner",
        {"spec.rotation.interval": "10m"},
        "spec.rotation.interval: 10m has no effect: the type Default of spec.partitioner does not use time; use "
        "scheduleInterval, or the type Time, Hourly, Daily or FieldAndTime",
    ),
    case(
        "a schedule without a time zone",
        {"spec.rotation.scheduleInterval": "1h"},
        "spec.partitioner.timezone: is missing: spec.rotation.scheduleInterval counts from midnight in this time zone; "
        "set it, for example to UTC",
    ),
    case(
        "time paths without a time zone",
        {"spec.partitioner": {"type": "Hourly"}, "spec.rotation.scheduleInterval": "1h"},
        "spec.partitioner.timezone: is missing: the type Hourly needs it, for example UTC",
    ),
    case(
        "Field without fields",
        {"spec.partitioner": {"type": "Field"}},
        "spec.partitioner.fields: is missing: the type Field needs at least one field",
    ),
    case(
        "fields without Field",
        HOURLY | {"spec.partitioner.fields": ["a"]},
        "spec.partitioner.fields: has no effect with the type Hourly: remove it, or use the type Field or FieldAndTime",
    ),
    case(
        "a field listed twice",
        {"spec.partitioner": {"type": "Field", "fields": ["a", "a"]}},
        "spec.partitioner.fields: a is listed 2 times",
    ),
    case(
        "Time without duration and pattern",
        {"spec.partitioner": {"type": "Time", "timezone": "UTC"}},
        "spec.partitioner.duration: is missing: the type Time needs it, for example 1h",
        "spec.partitioner.pathFormat: is missing: the type Time needs it, for example 'year'=YYYY/'month'=MM/'day'=dd",
    ),
    case(
        "a duration without Time",
        {"spec.partitioner": {"duration": "1h"}},
        "spec.partitioner.duration: has no effect with the type Default: remove it, or use the type Time",
    ),
    case(
        "Daily with a duration of one hour",
        {"spec.partitioner": {"type": "Daily", "timezone": "UTC", "duration": "1h"}},
        "spec.partitioner.duration: 1h is not allowed: the type Daily always uses 1d; remove it, or use the type Time",
    ),
    case(
        "Hourly with another pattern",
        HOURLY | {"spec.partitioner.pathFormat": "HH"},
        "spec.partitioner.pathFormat: HH is not allowed: the type Hourly always uses "
        "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH; remove it, or use the type Time",
    ),
    case(
        "fields with a converter that parses no fields",
        {"spec.format.converter": "Text", "spec.partitioner": {"type": "Field", "fields": ["a"]}},
        "spec.partitioner.type: Field needs fields of the value, but the converter Text does not parse any; use "
        "another converter, or another type",
    ),
    case(
        "a time field with a converter that parses no fields",
        HOURLY | {"spec.format.converter": "Bytes", "spec.partitioner.timestampExtractor": "RecordField"},
        "spec.partitioner.timestampExtractor: RecordField needs fields of the value, but the converter Bytes does not "
        "parse any; use another converter, or Record or Wallclock",
    ),
    case(
        "Avro without a registry",
        {"spec.format.converter": "Avro"},
        "spec.format.registry: is missing: the converter Avro reads schemas from a registry; bare "
        "values (without a schema id) have spec.format.schema",
    ),
    case(
        "JSON Schema without a registry",
        {"spec.format.converter": "JsonSchema", "spec.schemaCompatibility": "Separate"},
        "spec.format.registry: is missing: the converter JsonSchema reads schemas from a registry; bare "
        "values (without a schema id) have spec.format.schema",
    ),
    case(
        "a registry for plain JSON",
        {"spec.format.registry": REGISTRY},
        "spec.format.registry: has no effect with the converter Json: remove it, or use another converter",
    ),
    case(
        "a registry for schemas in the records",
        {"spec.format": {"converter": "ConnectJson", "registry": REGISTRY}},
        "spec.format.registry: has no effect with the converter ConnectJson: remove it, or use another converter",
    ),
    case(
        "a registry without TLS",
        {"spec.format": {"converter": "Avro", "registry": {"url": ["https://a", "http://b"]}}},
        "spec.format.registry.url[1]: http://b is not encrypted: use https://, or set spec.format.registry.insecure: "
        "true",
    ),
    case(
        "a registry listed twice",
        {"spec.format": {"converter": "Avro", "registry": {"url": ["https://a", "https://a"]}}},
        "spec.format.registry.url[1]: https://a is listed twice",
    ),
    case(
        "schemas that are compared without schemas",
        {"spec.schemaCompatibility": "Separate"},
        "spec.schemaCompatibility: Separate has no effect: the records of the converter Json have no schema; remove it",
    ),
    case(
        "schemas that are compared in CBOR",
        {"spec.format.converter": "Cbor", "spec.schemaCompatibility": "Separate"},
        "spec.schemaCompatibility: Separate has no effect: the records of the converter Cbor have no schema; remove it",
    ),
    case(
        "schemas that are projected in plain JSON",
        {"spec.schemaCompatibility": "Backward"},
        "spec.schemaCompatibility: Backward has no effect: the records of the converter Json have no schema; remove it",
    ),
    case(
        "values that are projected and written as they came",
        {"spec.format": {"converter": "ConnectJson", "output": "Bytes"}, "spec.schemaCompatibility": "Full"},
        "spec.schemaCompatibility: Full cannot be used with the output Bytes: it writes values as they came, under "
        "their own schemas; use None or Separate, or the output Json",
    ),
    case(
        "objects larger than the maximum number of parts",
        {"spec.rotation.maxBytes": "60Gi", "spec.s3.partSize": "5Mi"},
        "spec.rotation.maxBytes: 60Gi does not fit into S3's maximum of 10000 parts of 5Mi: use at most 50000Mi, or "
        "increase spec.s3.partSize",
    ),
    case(
        "an endpoint without TLS",
        {"spec.s3.endpoint": "http://minio:9000"},
        "spec.s3.endpoint: http://minio:9000 is not encrypted: use https://, or set spec.s3.insecure: true",
    ),
    case(
        "overlapping delimiters",
        {"spec.s3.fileDelimiter": "/"},
        "spec.s3.fileDelimiter: / overlaps spec.s3.directoryDelimiter /: neither may contain the other",
    ),
    case(
        "a topicsDir that ends in the directory delimiter",
        {"spec.s3.topicsDir": "lake=", "spec.s3.directoryDelimiter": "="},
        "spec.s3.topicsDir: lake= starts or ends with spec.s3.directoryDelimiter: remove it there",
    ),
    case(
        "a minimum round size above the maximum",
        {"spec.rounds": {"minBytes": "1Gi"}},
        "spec.rounds.minBytes: 1Gi is above spec.rounds.maxBytes, 512Mi",
    ),
    case(
        "minimum memory above maximum memory",
        {"spec.executor.memory": {"min": "4Gi", "max": "2Gi"}},
        "spec.executor.memory.min: 4Gi is above spec.executor.memory.max, 2Gi",
    ),
    case(
        "minimum number of executors above the maximum",
        {"spec.executor.scaling": {"minInstances": 3, "maxInstances": 2}},
        "spec.executor.scaling.minInstances: 3 is above maxInstances, 2",
    ),
    case(
        "a number of executors with scaling",
        {"spec.executor": {"instances": 3, "scaling": {"mode": "Auto"}}},
        "spec.executor.instances: has no effect with scaling.mode: Auto: remove it, or set scaling.minInstances and "
        "maxInstances",
    ),
    case(
        "scaling in Local mode",
        {"spec.executor": {"mode": "Local", "scaling": {"mode": "Auto"}}},
        "spec.executor.scaling.mode: Auto has no effect in Local mode, which has no executors: write Fixed, or "
        "executor.mode: Cluster",
    ),
    case(
        "a reset to a timestamp without a timestamp",
        {"spec.offsets.reset": {"nonce": "1", "to": "Timestamp"}},
        "spec.offsets.reset.timestamp: is missing: to: Timestamp needs it",
    ),
    case(
        "a reset to the log end with offsets",
        {
            "spec.offsets.reset": {
                "nonce": "1",
                "to": "Latest",
                "partitions": [{"topic": "flights", "partition": 0, "offset": 4}] * 2,
            }
        },
        "spec.offsets.reset.partitions: has no effect with to: Latest; remove it, or set to: Offsets",
        "spec.offsets.reset.partitions: flights-0 is listed 2 times",
    ),
]


@pytest.mark.parametrize(("changes", "expected"), INVALID)
def test_an_invalid_combination_is_rejected(changes: dict[str, object], expected: list[str]) -> None:
    assert spec_errors(changes) == expected


VALID = [
    case("a pattern instead of topics", {"spec.kafka.topics": ABSENT, "spec.kafka.topicsPattern": "flights-.*"}),
    case("an interval alone, with time paths", HOURLY | {"spec.rotation": {"interval": "10m"}}),
    case("a schedule alone", {"spec.rotation": {"scheduleInterval": "1d"}, "spec.partitioner": {"timezone": "UTC"}}),
    case("a size alone", {"spec.rotation": {"maxBytes": "1Gi"}}),
    case("an interval with fields and time", {"spec.partitioner": BOTH, "spec.rotation": {"interval": "10m"}}),
    case("time paths by a pattern", TIME),
    case(
        "Daily with its own duration",
        {"spec.partitioner": {"type": "Daily", "timezone": "UTC", "duration": "24h"}},
    ),
    case("Hourly with its own pattern", HOURLY | {"spec.partitioner.pathFormat": HOURS}),
    case("flushSize for each object", {"spec.rotation": {"scope": "Object", "flushSize": 9}}),
    case(
        "an endpoint without TLS and with insecure: true",
        {"spec.s3": {"bucket": "b-1", "endpoint": "http://minio:9000", "insecure": True}},
    ),
    case("Avro with a registry", {"spec.format": {"converter": "Avro", "registry": REGISTRY}}),
    case(
        "an object for each schema",
        {"spec.format": {"converter": "Avro", "registry": REGISTRY}, "spec.schemaCompatibility": "Separate"},
    ),
    case(
        "an object for each schema of an envelope",
        {"spec.format.converter": "ConnectJson", "spec.schemaCompatibility": "Separate"},
    ),
    *(
        case(f"projection {mode}", {"spec.format.converter": "ConnectJson", "spec.schemaCompatibility": mode})
        for mode in ("Backward", "Forward", "Full")
    ),
    case(
        "a registry without TLS and with insecure: true",
        {"spec.format": {"converter": "Avro", "registry": {"url": ["http://registry:8081"], "insecure": True}}},
    ),
    case(
        "a registry at localhost",
        {"spec.format": {"converter": "JsonSchema", "registry": {"url": ["http://localhost:8081"]}}},
    ),
    case("a store at localhost", {"spec.s3.endpoint": "http://localhost:9000"}),
    case("a store at a loopback address", {"spec.s3.endpoint": "http://127.0.0.2:9000"}),
    case("a store at the IPv6 loopback address", {"spec.s3.endpoint": "http://[::1]:9000"}),
    case("invalid records dropped", {"spec.errors": {"tolerance": "All", "onNullValue": "Ignore"}}),
]


@pytest.mark.parametrize(("changes", "expected"), VALID)
def test_a_valid_combination_is_accepted(changes: dict[str, object], expected: list[str]) -> None:
    assert expected == []
    accepted(changes)


def test_a_dead_letter_topic_needs_tolerance() -> None:
    assert spec_errors({"spec.errors.deadLetters.topic": "rejected"}, for_job=False) == [
        "spec.errors.deadLetters.topic: rejected has no effect without spec.errors.tolerance: All"
    ]


def test_the_dead_letter_topic_is_not_a_source_topic() -> None:
    errors = {"tolerance": "All", "deadLetters": {"topic": "flights"}}
    assert spec_errors({"spec.errors": errors}, for_job=False) == [
        "spec.errors.deadLetters.topic: flights is also in spec.kafka.topics: the sink would read its own dead "
        "letters; use another topic"
    ]


def test_the_previous_name_of_the_dead_letter_topic_is_rejected_with_the_present_one() -> None:
    assert spec_errors({"spec.errors": {"tolerance": "All", "deadLetterTopic": "rejected"}}) == [
        "spec.errors.deadLetterTopic: is not a field of spec.errors: it is now spec.errors.deadLetters.topic"
    ]


@pytest.mark.parametrize(
    ("share", "sentence"),
    [
        (1.5, "1.5 is above the maximum of 1.0"),
        (-0.1, "-0.1 is below the minimum of 0.0"),
        (True, "true is not a number"),
        ("50%", '"50%" is not a number'),
    ],
)
def test_the_maximum_share_of_rejected_records_is_a_number_from_0_to_1(share: object, sentence: str) -> None:
    assert spec_errors({"spec.errors.deadLetters.maxShare": share}) == [f"spec.errors.deadLetters.maxShare: {sentence}"]


@pytest.mark.parametrize("share", [0, 1, 0.25])
def test_the_maximum_share_of_rejected_records_may_be_a_whole_number(share: float) -> None:
    errors = accepted({"spec.errors": {"tolerance": "All", "deadLetters": {"maxShare": share}}}).spec.errors
    assert errors.dead_letters.max_share == share


def test_a_topics_pattern_excludes_the_name_of_ledgers() -> None:
    spec = accepted({"spec.kafka.topics": ABSENT, "spec.kafka.topicsPattern": ".*"}).spec
    assert [topic for topic in ("flights", "_s3sink") if spec.reads(topic)] == ["flights"]


def test_a_topics_pattern_matches_the_whole_name() -> None:
    spec = accepted({"spec.kafka.topics": ABSENT, "spec.kafka.topicsPattern": "flights"}).spec
    assert not spec.reads("flights-2013")


def test_a_rule_ignores_a_field_with_an_invalid_value() -> None:
    assert spec_errors({"spec.rotation": {"flushSize": "many"}}) == [
        'spec.rotation.flushSize: "many" is not a whole number'
    ]


def test_a_rule_ignores_a_misspelled_field() -> None:
    assert spec_errors({"spec.rotation": {"flushSiez": 90}}) == [
        "spec.rotation.flushSiez: is not a field of spec.rotation; did you mean flushSize?"
    ]


def test_a_rule_applies_if_another_field_of_its_section_is_invalid() -> None:
    assert spec_errors({"spec.rotation": {"scope": "Everything"}}) == [
        "spec.rotation.scope: Everything is not one of Partition, Object",
        f"{NO_ROTATION}scheduleInterval, maxBytes",
    ]


@pytest.mark.parametrize(
    "registry", [{"type": "Glue", "region": "eu-central-1"}, {"type": "Apicurio", "url": ["https://registry"]}]
)
def test_protobuf_of_other_serializers_than_confluents_is_accepted(registry: dict[str, object]) -> None:
    accepted({"spec.format": {"converter": "Protobuf", "registry": registry}})
