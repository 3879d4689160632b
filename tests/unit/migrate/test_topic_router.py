"""Connectors with a RegexRouter."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from sink_job.api.parser import parse_sink
from sink_job.migrate.conversion import convert
from sink_job.migrate.findings import Configuration, Conversion
from sink_job.partitioning.object_keys import object_key
from tests.unit.migrate.test_conversion import MINIMAL

ROUTER = "org.apache.kafka.connect.transforms.RegexRouter"


def routed(regex: str, replacement: str, topics: str = "orders-v1,orders-v2,fares", **more: str) -> Conversion:
    settings = {
        **MINIMAL,
        "topics": topics,
        "transforms": "route",
        "transforms.route.type": ROUTER,
        "transforms.route.regex": regex,
        "transforms.route.replacement": replacement,
        **more,
    }
    if not topics:
        del settings["topics"]
    return convert(Configuration(settings, "flights"))


def prefixes(found: Conversion) -> Any:
    return yaml.safe_load(found.manifest)["spec"]["s3"].get("prefixes")


def test_objects_are_in_the_directories_of_the_router() -> None:
    found = routed(r"(.*)-v[0-9]", "$1")
    assert prefixes(found) == [
        {"topic": "orders-v1", "prefix": "orders"},
        {"topic": "orders-v2", "prefix": "orders"},
        {"topic": "fares", "prefix": "fares"},
    ]
    sink = parse_sink(yaml.safe_load(found.manifest))
    keys = [object_key(sink.object_settings(), topic, "partition=0", 0, 7) for topic in ("orders-v1", "fares")]
    assert keys == [
        "topics/orders/partition=0/orders-v1+0+0000000007.json",
        "topics/fares/partition=0/fares+0+0000000007.json",
    ]


def test_names_of_objects_differ_which_is_reported() -> None:
    found = routed(r"(.*)-v[0-9]", "$1")
    assert found.exit_code == 8
    assert "their names begin with the topic in Kafka" in "".join(map(str, found.findings))


@pytest.mark.parametrize(
    ("regex", "replacement", "expected"),
    [
        ("orders-v1", "a", "a"),
        ("(.*)-(v1)", "$2-$1", "v1-orders"),
        ("(.*)-(v1)", r"$2\$1", "v1$1"),
        ("orders|orders-v1", "a", "a-v1"),
        ("(x)?orders-v1", "a$1", "a"),
        (r"(\w+)-v\d", "$1", "orders"),
    ],
)
def test_a_topic_is_replaced_as_java_replaces_the_first_match(regex: str, replacement: str, expected: str) -> None:
    assert prefixes(routed(regex, replacement, "orders-v1")) == [{"topic": "orders-v1", "prefix": expected}]


def test_a_router_that_changes_no_topic_is_left_out() -> None:
    found = routed("prefix", "a")
    assert (found.exit_code, prefixes(found)) == (0, None)


@pytest.mark.parametrize("regex", [".*", "orders-.*"])
def test_all_topics_of_a_pattern_can_have_one_directory(regex: str) -> None:
    found = routed(regex, "orders", "", **{"topics.regex": "orders-.*"})
    assert prefixes(found) == [{"pattern": "orders-.*", "prefix": "orders"}]


@pytest.mark.parametrize(
    ("found", "sentence"),
    [
        (routed("(.*)", "$1-a", "", **{"topics.regex": "orders-.*"}), "makes directories of parts of topics"),
        (routed(".*", "a$1"), "has a replacement with $1"),
        (routed(".*", "${name}"), "has an expression that is not converted"),
        (routed("[a-z&&[^o]]*", "a"), "has an expression that is not converted"),
        (routed("(", "a"), "has a regex that is not a valid regular expression"),
        (routed(".*", "a//b"), "makes the topic a//b, which has an empty element"),
        (routed(".*", "_s3sink"), "which is reserved for ledgers"),
        (routed(".*", ""), "makes the topic (empty), which is empty"),
        (routed(".*", "a", **{"directory.delim": "-"}), "beside a directory.delim that may be a part of a topic"),
        (routed(".*", "a", ",".join(f"t{n}" for n in range(101))), "at most 100 entries"),
        (routed(".*", "a", **{"transforms.route.predicate": "p"}), "write s3.prefixes by hand"),
        (routed(".*", "a", transforms="route,b"), "is a router of topics, which is converted only as the single"),
        (routed(".*", "a", transforms="route,b"), "transforms.b.type is missing"),
    ],
)
def test_what_cannot_be_a_directory_is_reported(found: Conversion, sentence: str) -> None:
    assert found.exit_code == 9
    assert sentence in "".join(map(str, found.findings))
