"""The rules of `spec.errors.deadLetters`."""

from __future__ import annotations

import pytest

from tests.unit.api.manifests import ABSENT, accepted, spec_errors

PREFIX = "spec.errors.deadLetters.prefix"


def with_prefix(prefix: str, **more: object) -> dict[str, object]:
    return {"spec.errors": {"tolerance": "All", "deadLetters": {"prefix": prefix}}, **more}


def test_a_prefix_needs_tolerance() -> None:
    assert spec_errors({PREFIX: "rejected"}) == [f"{PREFIX}: rejected has no effect without spec.errors.tolerance: All"]


@pytest.mark.parametrize("prefix", ["topics", "topics/rejected", "lake"])
def test_dead_letters_and_objects_do_not_share_a_directory(prefix: str) -> None:
    folder = "lake/topics" if prefix == "lake" else "topics"
    assert spec_errors(with_prefix(prefix, **{"spec.s3.topicsDir": folder})) == [
        f"{PREFIX}: {prefix} and spec.s3.topicsDir {folder} must not contain each other: readers of the objects would "
        "read rejected records; use a directory of its own"
    ]


@pytest.mark.parametrize(
    ("prefix", "sentence"),
    [
        ("topics/_s3sink/default.flights", "contains the directory _s3sink, which is reserved for ledgers"),
        ("", "is empty: use a directory of its own such as rejected"),
        ("a//b", "has an empty element: remove / at the start, / at the end and //"),
        ("../a", "has an element . or .."),
    ],
)
def test_a_prefix_is_a_directory_outside_of_ledgers(prefix: str, sentence: str) -> None:
    written = f"{prefix} " if prefix else ""
    assert spec_errors(with_prefix(prefix)) == [f"{PREFIX}: {written}{sentence}"]


def test_a_prefix_does_not_end_with_the_delimiter() -> None:
    assert spec_errors(with_prefix("rejected-", **{"spec.s3.directoryDelimiter": "-"})) == [
        f"{PREFIX}: rejected- starts or ends with spec.s3.directoryDelimiter: remove it there"
    ]


def test_a_prefix_in_the_root_is_not_below_a_topic() -> None:
    assert spec_errors(with_prefix("flights/rejected", **{"spec.s3.topicsDir": ""})) == [
        f"{PREFIX}: flights/rejected begins with the topic flights, below which are its objects: use another directory"
    ]
    accepted(with_prefix("rejected", **{"spec.s3.topicsDir": ""}))


@pytest.mark.parametrize("prefix", ["rejected", "topics2", "a/b", "topic"])
def test_a_directory_of_its_own_is_accepted(prefix: str) -> None:
    settings = accepted(with_prefix(prefix)).object_settings()
    assert settings.dead_letters is not None
    assert settings.dead_letters.prefix == prefix


def test_without_a_prefix_the_settings_of_objects_have_no_trace_of_dead_letters() -> None:
    settings = accepted({"spec.errors": {"tolerance": "All"}}).object_settings()
    assert "dead" not in settings.model_dump_json().lower()


TOPIC = "spec.errors.deadLetters.topic"


def with_topic(topic: str, **more: object) -> dict[str, object]:
    return {"spec.errors": {"tolerance": "All", "deadLetters": {"topic": topic}}, **more}


def test_a_topic_needs_tolerance() -> None:
    assert spec_errors({TOPIC: "rejected"}) == [f"{TOPIC}: rejected has no effect without spec.errors.tolerance: All"]


def test_a_sink_does_not_read_its_dead_letters_by_name() -> None:
    assert spec_errors(with_topic("flights")) == [
        f"{TOPIC}: flights is also in spec.kafka.topics: the sink would read its own dead letters; use another topic"
    ]


def test_a_sink_does_not_read_its_dead_letters_by_pattern() -> None:
    everything = {"spec.kafka.topics": ABSENT, "spec.kafka.topicsPattern": "fl.*"}
    assert spec_errors(with_topic("flights-rejected", **everything)) == [
        f"{TOPIC}: flights-rejected matches spec.kafka.topicsPattern fl.*: the sink would read its own dead letters; "
        "use another topic, or a pattern that begins with (?!flights-rejected$)"
    ]
    accepted(with_topic("rejected", **everything))
    accepted(with_topic("fl-bad", **{**everything, "spec.kafka.topicsPattern": "(?!fl-bad$).*"}))


def test_headers_need_a_topic() -> None:
    assert spec_errors({"spec.errors": {"tolerance": "All", "deadLetters": {"headers": False}}}) == [
        f"spec.errors.deadLetters.headers: false has no effect without {TOPIC}"
    ]


def test_a_delivery_is_accepted_without_a_topic_for_objects_of_an_earlier_one() -> None:
    accepted({"spec.errors": {"tolerance": "All", "deadLetters": {"delivery": "AtLeastOnce"}}})


def test_without_a_prefix_the_objects_for_a_topic_are_in_the_folder_of_the_ledger() -> None:
    found = accepted(with_topic("rejected")).object_settings().dead_letters
    assert found is not None
    assert (found.prefix, found.topic, found.staged) == (
        "topics/_s3sink/default.flights/dead-letters",
        "rejected",
        True,
    )
    both = {"spec.errors": {"tolerance": "All", "deadLetters": {"topic": "rejected", "prefix": "bad"}}}
    found = accepted(both).object_settings().dead_letters
    assert found is not None
    assert (found.prefix, found.topic, found.staged) == ("bad", "rejected", False)


NULLS = "spec.errors.deadLetters.nullValues"


def test_null_values_need_a_place_and_the_policy_that_drops_them() -> None:
    ignored = {"tolerance": "All", "onNullValue": "Ignore"}
    assert spec_errors({"spec.errors": {**ignored, "deadLetters": {"nullValues": True}}}) == [
        f"{NULLS}: true has no effect without spec.errors.deadLetters.topic or prefix"
    ]
    kept = {"deadLetters": {"nullValues": True, "prefix": "rejected"}}
    assert spec_errors({"spec.errors": {"tolerance": "All", **kept}}) == [
        f"{NULLS}: true has no effect without spec.errors.onNullValue: Ignore: with Fail and tolerance All "
        "such records are dead letters in any case"
    ]
    found = accepted({"spec.errors": {**ignored, **kept}}).object_settings().dead_letters
    assert found is not None
    assert (found.on_null_value, found.null_values) == ("Ignore", True)


def test_without_null_values_the_settings_of_objects_have_no_trace_of_them() -> None:
    found = accepted(with_prefix("rejected")).object_settings()
    assert "null_values" not in found.model_dump_json()
    assert "nullValues" not in found.model_dump_json(by_alias=True)
