"""The rules of `spec.errors.deadLetters`."""

from __future__ import annotations

import pytest

from tests.unit.api.manifests import accepted, spec_errors

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
