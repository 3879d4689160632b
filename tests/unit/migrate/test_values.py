"""Values of configurations are parsed as Kafka's ConfigDef does."""

from __future__ import annotations

import pytest

from sink_job.migrate.values import (
    STRIMZI_SECRET,
    parse_boolean,
    parse_choice,
    parse_list,
    parse_number,
    shown,
    simple_name,
)


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("-1", -1), ("+5", 5), ("9223372036854775807", 2**63 - 1)])
def test_numbers_have_64_bits(text: str, number: int) -> None:
    assert parse_number(text) == number


@pytest.mark.parametrize("text", ["", "1.5", "9223372036854775808", "1_000", "0x10", "ten", "١", "1" * 5000])
def test_other_texts_are_not_numbers(text: str) -> None:
    with pytest.raises(ValueError, match="whole number"):
        parse_number(text)


def test_booleans_are_true_and_false_in_any_case() -> None:
    assert (parse_boolean("TRUE"), parse_boolean("false")) == (True, False)
    with pytest.raises(ValueError, match="true or false"):
        parse_boolean("yes")


def test_lists_have_no_blanks_and_no_empty_items() -> None:
    assert parse_list(" a, b ,,c") == ["a", "b", "c"]


def test_choices_ignore_case_and_name_all_values() -> None:
    assert parse_choice("GZIP", {"gzip": "Gzip"}) == "Gzip"
    with pytest.raises(ValueError, match="none, gzip"):
        parse_choice("lz4", {"none": "None", "gzip": "Gzip"})


@pytest.mark.parametrize("name", ["a.b.P", "a.b.Outer$P", "P"])
def test_the_simple_name_of_a_class_has_no_package_and_no_outer_class(name: str) -> None:
    assert simple_name(name) == "P"


def test_values_that_look_like_secrets_are_hidden() -> None:
    assert shown("store.url", "http://u:hunter2@store") == "store.url=[hidden]"
    assert shown("topics", "a\nb") == 'topics="a\\nb"'


def test_a_reference_to_a_secret_of_strimzi_has_namespace_name_and_key() -> None:
    found = STRIMZI_SECRET.fullmatch("${secrets:kafka/s3-keys:id}")
    assert found is not None
    assert found.groups() == ("kafka", "s3-keys", "id")
    assert STRIMZI_SECRET.fullmatch("${file:/etc/x:id}") is None
