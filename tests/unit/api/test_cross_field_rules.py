"""What fields mean together, and what the user reads when they contradict each other."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.api.manifests import ABSENT, HOURLY, TIME, accepted, mistakes


def case(sentence: str, changes: dict[str, object], *expected: str) -> Any:
    return pytest.param(changes, list(expected), id=sentence)


BOTH = {"type": "FieldAndTime", "fields": ["a"], "timezone": "UTC", "duration": "1h", "pathFormat": "HH"}
HOURS = "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH"
NOTHING_ENDS = "spec.rotation: nothing says when objects are complete: give at least one of flushSize, interval, "

WRONG = [
    case(
        "neither topics nor a pattern",
        {"spec.kafka.topics": ABSENT},
        "spec.kafka.topics: is missing: give topics or topicsPattern",
    ),
    case(
        "topics and a pattern",
        {"spec.kafka.topicsPattern": ".*"},
        "spec.kafka.topicsPattern: cannot stand beside topics: give one of the two",
    ),
    case(
        "a topic listed twice",
        {"spec.kafka.topics": ["a", "b", "a"]},
        "spec.kafka.topics: a is listed 2 times",
    ),
    case(
        "nothing that ends objects",
        {"spec.rotation": {}},
        f"{NOTHING_ENDS}scheduleInterval, maxBytes",
    ),
    case(
        "only maxOpenTime to end objects",
        {"spec.rotation": {"maxOpenTime": "5m"}},
        f"{NOTHING_ENDS}scheduleInterval, maxBytes (maxOpenTime alone is not enough)",
    ),
    case(
        "an interval without a time partitioner",
        {"spec.rotation.interval": "10m"},
        "spec.rotation.interval: 10m would have no effect: the type Default of spec.partitioner has no time; use "
        "scheduleInterval, or the type Time, Hourly, Daily or FieldAndTime",
    ),
    case(
        "a schedule without a time zone",
        {"spec.rotation.scheduleInterval": "1h"},
        "spec.partitioner.timezone: is missing: spec.rotation.scheduleInterval counts from midnight there; give one "
        "such as UTC",
    ),
    case(
        "time paths without a time zone",
        {"spec.partitioner": {"type": "Hourly"}, "spec.rotation.scheduleInterval": "1h"},
        "spec.partitioner.timezone: is missing: the type Hourly needs it, such as UTC",
    ),
    case(
        "Field without fields",
        {"spec.partitioner": {"type": "Field"}},
        "spec.partitioner.fields: is missing: the type Field needs at least one",
    ),
    case(
        "fields without Field",
        HOURLY | {"spec.partitioner.fields": ["a"]},
        "spec.partitioner.fields: has no effect with the type Hourly: leave it out, or choose Field or FieldAndTime",
    ),
    case(
        "a field listed twice",
        {"spec.partitioner": {"type": "Field", "fields": ["a", "a"]}},
        "spec.partitioner.fields: a is listed 2 times",
    ),
    case(
        "Time without duration and pattern",
        {"spec.partitioner": {"type": "Time", "timezone": "UTC"}},
        "spec.partitioner.duration: is missing: the type Time needs it, such as 1h",
        "spec.partitioner.pathFormat: is missing: the type Time needs it, such as 'year'=YYYY/'month'=MM/'day'=dd",
    ),
    case(
        "a duration without Time",
        {"spec.partitioner": {"duration": "1h"}},
        "spec.partitioner.duration: has no effect with the type Default: leave it out, or choose Time",
    ),
    case(
        "Daily by the hour",
        {"spec.partitioner": {"type": "Daily", "timezone": "UTC", "duration": "1h"}},
        "spec.partitioner.duration: 1h cannot be: the type Daily has 1d; leave it out, or choose Time",
    ),
    case(
        "Hourly with a pattern of its own",
        HOURLY | {"spec.partitioner.pathFormat": "HH"},
        "spec.partitioner.pathFormat: HH cannot be: the type Hourly has 'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH; "
        "leave it out, or choose Time",
    ),
    case(
        "fields of values that have none",
        {"spec.format.converter": "Text", "spec.partitioner": {"type": "Field", "fields": ["a"]}},
        "spec.partitioner.type: Field needs fields of the value, which the converter Text does not give; use another "
        "converter, or another type",
    ),
    case(
        "a time in a field of values that have none",
        HOURLY | {"spec.format.converter": "Bytes", "spec.partitioner.timestampExtractor": "RecordField"},
        "spec.partitioner.timestampExtractor: RecordField needs fields of the value, which the converter Bytes does "
        "not give; use another converter, or Record or Wallclock",
    ),
    case(
        "an object larger than all of its parts",
        {"spec.rotation.maxBytes": "60Gi", "spec.s3.partSize": "5Mi"},
        "spec.rotation.maxBytes: 60Gi does not fit into S3's 10000 parts of 5Mi: at most 50000Mi, or raise "
        "spec.s3.partSize",
    ),
    case(
        "an endpoint without TLS",
        {"spec.s3.endpoint": "http://minio:9000"},
        "spec.s3.endpoint: http://minio:9000 is not encrypted: use https://, or allow it by spec.s3.insecure: true",
    ),
    case(
        "delimiters that cannot be told apart",
        {"spec.s3.fileDelimiter": "/"},
        "spec.s3.fileDelimiter: / cannot be told from spec.s3.directoryDelimiter /",
    ),
    case(
        "a topicsDir that ends in the directory delimiter",
        {"spec.s3.topicsDir": "lake=", "spec.s3.directoryDelimiter": "="},
        "spec.s3.topicsDir: lake= has spec.s3.directoryDelimiter first or last: leave it out",
    ),
    case(
        "rounds that wait for more than they read",
        {"spec.rounds": {"minBytes": "1Gi"}},
        "spec.rounds.minBytes: 1Gi is above spec.rounds.maxBytes, 512Mi",
    ),
    case(
        "least memory above most memory",
        {"spec.executor.memory": {"min": "4Gi", "max": "2Gi"}},
        "spec.executor.memory.min: 4Gi is above spec.executor.memory.max, 2Gi",
    ),
    case(
        "a reset to a time that is not given",
        {"spec.offsets.reset": {"nonce": "1", "to": "Timestamp"}},
        "spec.offsets.reset.timestamp: is missing: to: Timestamp needs it",
    ),
    case(
        "a reset to the end with offsets",
        {
            "spec.offsets.reset": {
                "nonce": "1",
                "to": "Latest",
                "partitions": [{"topic": "flights", "partition": 0, "offset": 4}] * 2,
            }
        },
        "spec.offsets.reset.partitions: has no effect with to: Latest; leave it out, or write to: Offsets",
        "spec.offsets.reset.partitions: flights-0 is listed 2 times",
    ),
]


@pytest.mark.parametrize(("changes", "expected"), WRONG)
def test_a_contradiction_is_refused(changes: dict[str, object], expected: list[str]) -> None:
    assert mistakes(changes) == expected


RIGHT = [
    case("a pattern instead of topics", {"spec.kafka.topics": ABSENT, "spec.kafka.topicsPattern": "flights-.*"}),
    case("an interval alone, with time paths", HOURLY | {"spec.rotation": {"interval": "10m"}}),
    case("a schedule alone", {"spec.rotation": {"scheduleInterval": "1d"}, "spec.partitioner": {"timezone": "UTC"}}),
    case("a size alone", {"spec.rotation": {"maxBytes": "1Gi"}}),
    case("an interval with fields and time", {"spec.partitioner": BOTH, "spec.rotation": {"interval": "10m"}}),
    case("time paths by a pattern", TIME),
    case(
        "Daily with the duration that it has",
        {"spec.partitioner": {"type": "Daily", "timezone": "UTC", "duration": "24h"}},
    ),
    case("Hourly with the pattern that it has", HOURLY | {"spec.partitioner.pathFormat": HOURS}),
    case("objects counted alone", {"spec.rotation": {"scope": "Object", "flushSize": 9}}),
    case(
        "an endpoint without TLS that is allowed",
        {"spec.s3": {"bucket": "b-1", "endpoint": "http://minio:9000", "insecure": True}},
    ),
    case("a store on this machine by its name", {"spec.s3.endpoint": "http://localhost:9000"}),
    case("a store on this machine by its address", {"spec.s3.endpoint": "http://127.0.0.2:9000"}),
    case("a store on this machine by its IPv6 address", {"spec.s3.endpoint": "http://[::1]:9000"}),
    case("refused records dropped", {"spec.errors": {"tolerance": "All", "onNullValue": "Ignore"}}),
]


@pytest.mark.parametrize(("changes", "expected"), RIGHT)
def test_what_fits_together_is_accepted(changes: dict[str, object], expected: list[str]) -> None:
    assert expected == []
    accepted(changes)


def test_a_dead_letter_topic_needs_tolerance() -> None:
    assert mistakes({"spec.errors.deadLetterTopic": "refused"}, for_job=False) == [
        "spec.errors.deadLetterTopic: refused would never be used: it needs spec.errors.tolerance: All"
    ]


def test_a_sink_does_not_read_its_own_dead_letters() -> None:
    errors = {"tolerance": "All", "deadLetterTopic": "flights"}
    assert mistakes({"spec.errors": errors}, for_job=False) == [
        "spec.errors.deadLetterTopic: flights is one of spec.kafka.topics: the sink would read its own dead letters"
    ]


def test_a_pattern_leaves_dead_letters_and_the_place_of_ledgers_out() -> None:
    everything = {
        "spec.kafka.topics": ABSENT,
        "spec.kafka.topicsPattern": ".*",
        "spec.errors": {"tolerance": "All", "deadLetterTopic": "refused"},
    }
    spec = accepted(everything, for_job=False).spec
    assert [topic for topic in ("flights", "refused", "_s3sink") if spec.reads(topic)] == ["flights"]


def test_a_pattern_has_to_match_the_whole_name() -> None:
    spec = accepted({"spec.kafka.topics": ABSENT, "spec.kafka.topicsPattern": "flights"}).spec
    assert not spec.reads("flights-2013")


def test_a_rule_keeps_quiet_about_a_value_that_is_wrong_by_itself() -> None:
    assert mistakes({"spec.rotation": {"flushSize": "many"}}) == [
        'spec.rotation.flushSize: "many" is not a whole number'
    ]


def test_a_rule_keeps_quiet_about_a_field_that_was_misspelt() -> None:
    assert mistakes({"spec.rotation": {"flushSiez": 90}}) == [
        "spec.rotation.flushSiez: is not a field of spec.rotation; did you mean flushSize?"
    ]


def test_a_rule_speaks_although_another_field_of_its_section_is_wrong() -> None:
    assert mistakes({"spec.rotation": {"scope": "Everything"}}) == [
        "spec.rotation.scope: Everything is not one of Partition, Object",
        f"{NOTHING_ENDS}scheduleInterval, maxBytes",
    ]
