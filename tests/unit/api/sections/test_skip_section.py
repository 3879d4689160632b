"""Records to skip: the list of the spec, and the annotation."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.errors import InvalidSpec
from sink_job.api.parser import parse_sink
from sink_job.api.sections.skip_section import as_text, parse_records, with_records
from sink_job.api.topic_partition import TopicPartition
from tests.unit.api.manifests import accepted, document, spec_errors

HERE = "spec.errors.skip"
ANNOTATION = "metadata.annotations[s3sink.io/skip]"


def record(topic: str = "flights", partition: int = 0, offset: int = 42) -> dict[str, Any]:
    return {"topic": topic, "partition": partition, "offset": offset}


def annotated(text: object, *changes: dict[str, object]) -> dict[str, Any]:
    found = document(*changes)
    found["metadata"]["annotations"] = {"s3sink.io/skip": text}
    return found


def errors_of(manifest: dict[str, Any]) -> list[str]:
    with pytest.raises(InvalidSpec) as raised:
        parse_sink(manifest)
    return list(raised.value.errors)


def test_the_offsets_to_skip_are_ascending_by_topic_partition_in_any_order_of_the_list() -> None:
    listed = [record(offset=9), record(partition=1, offset=4), record(offset=3)]
    errors = accepted({HERE: listed}).spec.errors
    assert errors.skipped_offsets() == {TopicPartition("flights", 0): [3, 9], TopicPartition("flights", 1): [4]}
    assert errors == accepted({HERE: listed[::-1]}).spec.errors


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"offset": -1}, f"{HERE}[0].offset: -1 is below the minimum of 0"),
        ({"partition": 2**31}, f"{HERE}[0].partition: 2147483648 is above the maximum of 2147483647"),
        (
            {"topic": "a b"},
            f'{HERE}[0].topic: "a b" is not a valid topic name: Kafka allows letters, digits, . _ and -',
        ),
    ],
)
def test_a_record_has_the_bounds_of_kafka(fields: dict[str, Any], error: str) -> None:
    assert spec_errors({HERE: [record(**fields)]}) == [error]


def test_a_record_in_the_form_of_the_annotation_is_rejected_with_the_form_of_the_list() -> None:
    assert spec_errors({HERE: ["flights-0@42"]}) == [
        f"{HERE}[0]: flights-0@42 is a text, the form of the annotation: write {{topic: …, partition: …, offset: …}}"
    ]


def test_there_are_at_most_a_thousand_records() -> None:
    many = [record(offset=n) for n in range(1_001)]
    assert len(accepted({HERE: many[1:]}).spec.errors.skip) == 1_000
    assert spec_errors({HERE: many}) == [f"{HERE}: a list has more than 1000 entries"]


def test_the_annotation_adds_to_the_list_and_names_no_record_twice() -> None:
    found = parse_sink(annotated("flights-0@42, flights-1@7\nflights-0@42", {HERE: [record()]}))
    assert [str(each) for each in found.spec.errors.skip] == ["flights-0@42", "flights-1@7"]


def test_a_manifest_without_the_section_gets_it_from_the_annotation() -> None:
    assert [str(each) for each in parse_sink(annotated("a.b-c-1@0")).spec.errors.skip] == ["a.b-c-1@0"]
    assert parse_sink(annotated(" ")).spec.errors.skip == []


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("flights@3", "flights@3 is not topic-partition@offset, such as flights-0@42"),
        ("flights-0", "flights-0 is not topic-partition@offset, such as flights-0@42"),
        ("flights-0@x", "flights-0@x is not topic-partition@offset, such as flights-0@42"),
        ("flights-0@-1", "flights-0@-1 is not topic-partition@offset, such as flights-0@42"),
        (
            "fl/ights-0@1",
            "the topic of fl/ights-0@1 is not a valid topic name: Kafka allows letters, digits, . _ and -",
        ),
        ("flights-2147483648@1", "the partition of flights-2147483648@1 is above 2147483647"),
        (f"flights-0@{2**53}", f"the offset of flights-0@{2**53} is above {2**53 - 1}"),
        (f"f-0@{'0' * 20}{2**53}", f"the offset of f-0@{'0' * 20}{2**53} is above {2**53 - 1}"),
        (f"f-{'9' * 5_000}@1", f"the partition of f-{'9' * 77}… is above {2**31 - 1}"),
        (7, "is not a text: write it in quotes, such as flights-0@42"),
    ],
)
def test_an_invalid_annotation_is_an_error_of_the_manifest(text: object, error: str) -> None:
    assert errors_of(annotated(text)) == [f"{ANNOTATION}: {error}"]


def test_zeros_before_a_number_have_no_meaning() -> None:
    assert parse_records(f"flights-{'0' * 5_000}1@{'0' * 5_000}42") == [record(partition=1)]


def test_the_annotation_and_the_list_have_at_most_a_thousand_records_together() -> None:
    many = [record(offset=n) for n in range(1_000)]
    assert len(parse_sink(annotated("flights-0@5", {HERE: many})).spec.errors.skip) == 1_000
    assert errors_of(annotated("flights-0@1000", {HERE: many})) == [
        f"{ANNOTATION}: with the records of spec.errors.skip these are 1,001, more than 1,000"
    ]


@pytest.mark.parametrize("errors", ["text", {"skip": "text"}])
def test_a_list_of_another_structure_is_left_to_the_parser(errors: object) -> None:
    (error,) = errors_of(annotated("flights-0@1", {"spec.errors": errors}))
    assert error.startswith("spec.errors")
    assert with_records({"errors": errors}, "flights-0@1") == {"errors": errors}


def test_a_text_names_the_records_that_it_was_made_of() -> None:
    records = [record(), record("a-b.c", 12, 0)]
    assert parse_records(as_text(records)) == records
