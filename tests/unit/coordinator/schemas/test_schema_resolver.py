"""The decisions of the schema resolver: the ids to ask for, how long an answer counts, and which schemas are usable."""

from __future__ import annotations

import pytest

from sink_job.api.errors import RegistryChanged
from sink_job.api.topic_partition import TopicPartition
from sink_job.connect.schema import RegisteredSchema
from sink_job.coordinator.schemas.schema_resolver import (
    MAX_CHANGED,
    MAX_IDS,
    UNKNOWN_TTL_S,
    Provisional,
    SchemaId,
    fresh,
    to_ask,
    version_missing,
)
from tests.unit.coordinator.test_schema_warnings import resolver

FLIGHTS = TopicPartition("flights", 0)
SEVEN = SchemaId("flights", "7")


def test_the_ids_of_a_topic_partition_are_asked_for_in_the_order_of_the_report() -> None:
    assert to_ask({FLIGHTS: ["9", "7"]}, set()) == [SchemaId("flights", "9"), SEVEN]


def test_topic_partitions_take_turns() -> None:
    reported = {FLIGHTS: ["1", "2", "3"], TopicPartition("flights", 1): ["7"], TopicPartition("other", 0): ["7", "8"]}
    assert [*map("/".join, to_ask(reported, set()))] == [
        *("flights/1", "flights/7", "other/7"),
        *("flights/2", "other/8"),
        "flights/3",
    ]


def test_a_topic_partition_with_many_ids_does_not_delay_another_one() -> None:
    reported = {FLIGHTS: [*map(str, range(MAX_IDS + 10))], TopicPartition("other", 0): ["7"]}
    assert SchemaId("other", "7") in to_ask(reported, set())


def test_known_ids_and_duplicates_are_not_asked_for() -> None:
    reported = {FLIGHTS: ["7", "8"], TopicPartition("flights", 1): ["8", "7"]}
    assert to_ask(reported, {SEVEN}) == [SchemaId("flights", "8")]


def test_the_first_ids_are_asked_for_if_there_are_many() -> None:
    asked = to_ask({FLIGHTS: [*map(str, range(MAX_IDS + 10))]}, {SchemaId("flights", "0")})
    assert (len(asked), asked[0].id, asked[-1].id) == (MAX_IDS, "1", str(MAX_IDS))


def test_the_answer_that_an_id_is_unknown_counts_for_a_time() -> None:
    states = {SEVEN: Provisional("unknown", at=100.0)}
    assert fresh(states, 100.0 + UNKNOWN_TTL_S - 1) == states
    assert fresh(states, 100.0 + UNKNOWN_TTL_S) == {}


def test_a_schema_without_a_version_is_usable_unless_versions_are_compared() -> None:
    schema = RegisteredSchema("7", "AVRO", '"long"', subject="flights-value")
    assert version_missing(SEVEN, schema, needs_version=False) is None
    assert version_missing(SEVEN, schema, needs_version=True) == (
        "the schema with the id 7 is in no version of the subject flights-value"
    )


@pytest.mark.parametrize("count", [3, MAX_CHANGED + 3])
def test_all_ids_whose_schemas_have_changed_are_named_at_once(count: int) -> None:
    ids = [f"{number:03}" for number in range(1, count + 1)]
    one, s3 = resolver("Avro", "Json")
    one.resolve({FLIGHTS: ids})
    later, _ = resolver("Avro", "Json", '{"type": "record", "name": "Other", "fields": []}', s3)
    with pytest.raises(RegistryChanged) as raised:
        later.resolve({FLIGHTS: [*reversed(ids)]})
    assert "another schema for id 001 of topic flights" in str(raised.value)
    named = "; ".join(f"{each} of topic flights" for each in ids[1 : MAX_CHANGED + 1])
    more = "" if count == 3 else "; and 2 more"
    assert str(raised.value).endswith(f"The same applies to these ids: {named}{more}")


def test_one_changed_id_is_named_alone() -> None:
    one, s3 = resolver("Avro", "Json")
    one.resolve({FLIGHTS: ["7"]})
    later, _ = resolver("Avro", "Json", '{"type": "record", "name": "Other", "fields": []}', s3)
    with pytest.raises(RegistryChanged) as raised:
        later.resolve({FLIGHTS: ["7", "8"]})
    assert "The same applies" not in str(raised.value)
