"""The rules of `spec.s3.prefixes` and `topicInPath`."""

from __future__ import annotations

import pytest

from tests.unit.api.manifests import accepted, spec_errors

PREFIXES = "spec.s3.prefixes"
DELIMITER = "spec.s3.directoryDelimiter"


def test_topics_and_patterns_have_directories() -> None:
    names = accepted({PREFIXES: [{"topic": "flights", "prefix": "a/b"}, {"pattern": "f.*", "prefix": "c"}]}).spec.s3
    assert [names.directory(topic) for topic in ("flights", "fares", "other")] == [
        "topics/a/b/flights",
        "topics/c/fares",
        "topics/other",
    ]


@pytest.mark.parametrize("entry", [{"prefix": "a"}, {"topic": "flights", "pattern": "f.*", "prefix": "a"}])
def test_an_entry_has_either_a_topic_or_a_pattern(entry: dict[str, str]) -> None:
    assert spec_errors({PREFIXES: [entry]}) == [f"{PREFIXES}[0]: needs either topic or pattern: set one of them"]


@pytest.mark.parametrize(
    ("prefix", "sentence"),
    [
        ("_s3sink/default.flights", "contains the directory _s3sink, which is reserved for ledgers"),
        ("a/_s3sink", "contains the directory _s3sink, which is reserved for ledgers"),
        ("", "is empty: use a directory, or remove the entry"),
        ("/a", "has an empty element: remove / at the start, / at the end and //"),
        ("../a", "has an element . or .."),
    ],
)
def test_a_prefix_is_a_directory_outside_of_ledgers(prefix: str, sentence: str) -> None:
    written = f"{prefix} " if prefix else ""
    entry = {"topic": "flights", "prefix": prefix}
    assert spec_errors({PREFIXES: [entry]}) == [f"{PREFIXES}[0].prefix: {written}{sentence}"]


def test_a_topic_has_one_entry() -> None:
    entry = {"topic": "flights", "prefix": "a"}
    assert spec_errors({PREFIXES: [entry, {**entry, "prefix": "b"}]}) == [
        f"{PREFIXES}[1]: flights has an earlier entry, which applies: remove one"
    ]


def test_an_entry_for_a_topic_that_is_not_read_is_an_error() -> None:
    assert spec_errors({PREFIXES: [{"topic": "fligths", "prefix": "a"}]}) == [
        f"{PREFIXES}[0].topic: fligths is not in spec.kafka.topics: add it there, or remove the entry"
    ]


@pytest.mark.parametrize("names", [{"spec.s3.topicInPath": False}, {PREFIXES: [{"pattern": ".*", "prefix": "a"}]}])
def test_two_topics_cannot_have_one_key(names: dict[str, object]) -> None:
    field = next(iter(names))
    assert spec_errors({**names, DELIMITER: "-"}) == [
        f"{field}: cannot be combined with {DELIMITER} -, which may be a part of a topic: two topics could have the "
        "same key; use a delimiter with another character, such as /"
    ]
    accepted({**names, DELIMITER: "-/"})


def test_a_prefix_does_not_end_in_the_delimiter() -> None:
    assert spec_errors({PREFIXES: [{"topic": "flights", "prefix": "a|"}], DELIMITER: "|"}) == [
        f"{PREFIXES}[0].prefix: a| starts or ends with spec.s3.directoryDelimiter: remove it"
    ]


def test_objects_and_dead_letters_have_directories_of_their_own() -> None:
    dead_letters = {"spec.errors": {"tolerance": "All", "deadLetters": {"prefix": "rejected"}}}
    assert spec_errors({"spec.s3.topicInPath": False, "spec.s3.topicsDir": "", **dead_letters}) == [
        "spec.s3.topicInPath: cannot be combined with spec.errors.deadLetters.prefix if spec.s3.topicsDir is empty: "
        "readers of the objects would read rejected records; set spec.s3.topicsDir"
    ]
    accepted({"spec.s3.topicInPath": False, **dead_letters})
