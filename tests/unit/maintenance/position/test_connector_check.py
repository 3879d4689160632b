"""A connector that is not the one of the sink is not stopped."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.api.errors import InvalidConnector
from sink_job.maintenance.position.connector_check import check_connector
from tests.support.sink_fixture import manifest
from tests.support.synthetic_log import sink_of_text
from tests.unit.migrate.inputs.test_worker_rest import as_json, worker


def checked(config: dict[str, str], kafka: dict[str, Any], name: str = "flights") -> list[str]:
    """The requests of a check."""
    spec = {"kafka": {"bootstrapServers": "127.0.0.1:9", **kafka}}
    sink = sink_of_text(manifest("archive", "http://127.0.0.1:9", flush_size=10, spec=spec))
    info = {"name": name, "config": {"connector.class": "x.FileStreamSinkConnector", **config}}
    with worker({f"/connectors/{name}": as_json(info)}) as (url, requests):
        check_connector(f"{url}/connectors/{name}", sink)
    return [path for path, _ in requests]


@pytest.mark.parametrize(
    ("config", "kafka"),
    [
        ({"topics": "b, a"}, {"topics": ["a", "b"], "groupId": "connect-flights"}),
        ({"topics": "a", "consumer.override.group.id": "own"}, {"topics": ["a"], "groupId": "own"}),
        ({"topics.regex": "fl.*"}, {"topicsPattern": "fl.*", "groupId": "connect-flights"}),
    ],
    ids=["topics", "group", "pattern"],
)
def test_the_connector_of_the_sink_is_read_and_not_changed(config: dict[str, str], kafka: dict[str, Any]) -> None:
    assert not [path for path in checked(config, kafka) if path.startswith("PUT")]


@pytest.mark.parametrize(
    ("config", "kafka", "words"),
    [
        (
            {"topics": "a"},
            {"topics": ["a"], "groupId": "connect-other"},
            "its consumer group is connect-flights, and kafka.groupId is connect-other. It was not stopped",
        ),
        (
            {"topics": "a", "consumer.override.group.id": "own"},
            {"topics": ["a"], "groupId": "connect-flights"},
            "its consumer group is own, and",
        ),
        (
            {"topics": "a,b"},
            {"topics": ["a"], "groupId": "connect-flights"},
            "it has the topics a, b, and the sink the topics a",
        ),
        (
            {"topics.regex": "a"},
            {"topics": ["a"], "groupId": "connect-flights"},
            "it has the pattern a, and the sink the topics a",
        ),
        ({}, {"topics": ["a"], "groupId": "connect-flights"}, "it has no topics, and the sink the topics a"),
        (
            {"topics": ",".join(f"t{n}" for n in range(7))},
            {"topics": ["a"], "groupId": "connect-flights"},
            "t4 and 2 more, and the sink",
        ),
    ],
)
def test_another_connector_is_rejected_with_both_values(
    config: dict[str, str], kafka: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidConnector) as raised:
        checked(config, kafka)
    assert words in str(raised.value)
    assert raised.value.exit_code == 2


def test_a_connector_that_does_not_exist_is_rejected() -> None:
    sink = sink_of_text(manifest("archive", "http://127.0.0.1:9", flush_size=10))
    with worker({}) as (url, _), pytest.raises(InvalidConnector, match="it has no connector flights"):
        check_connector(f"{url}/connectors/flights", sink)
