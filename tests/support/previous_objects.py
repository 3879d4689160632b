"""Objects as a connector of Kafka Connect writes them, for tests of the first start after one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import StopCondition
from sink_job.coordinator.coordinator import Coordinator
from sink_job.engine.kafka_admin import KafkaAdmin
from sink_job.ledger.first_claim.previous_writer import PreviousWriter
from sink_job.maintenance.position.finder import ConnectorPosition, find_position
from sink_job.registry.base import SchemaRegistry
from tests.support.sink_fixture import SinkFixture, manifest
from tests.support.synthetic_log import FileConsumerGroup, InlineEngine, SyntheticLog, sink_of_text
from tests.support.verify_sink import deep, findings

TP = TopicPartition("log", 0)


def key_of(first: int, partition: int = 0) -> str:
    """The key of the connector's object with this first offset."""
    return f"topics/log/partition={partition}/log+{partition}+{first:010d}.json"


def rows(log: SyntheticLog, offsets: Iterable[int], partition: int = 0) -> bytes:
    """The records as Connect's JsonConverter and JsonFormat write them: the fields in another order, no spaces."""
    return b"".join(
        json.dumps(dict(reversed(json.loads(log.value(partition, offset)).items())), separators=(",", ":")).encode()
        + b"\n"
        for offset in offsets
    )


def write(sink_fixture: SinkFixture, log: SyntheticLog, *ranges: tuple[int, int], partition: int = 0) -> None:
    """Writes an object for each offset range `[first, end)`, as the connector does."""
    for first, end in ranges:
        held = (offset for offset in range(first, end) if offset not in log.gaps)
        sink_fixture.put(key_of(first, partition), rows(log, held, partition))


def position(
    sink_fixture: SinkFixture,
    log: SyntheticLog,
    admin: KafkaAdmin | None = None,
    *,
    registry: SchemaRegistry | None = None,
    start_at_objects: bool = False,
    **given: Any,
) -> ConnectorPosition:
    """The position of the connector for a sink of the fixture."""
    sink = sink_of_text(manifest(sink_fixture.bucket, sink_fixture.endpoint, **{"flush_size": 10, **given}))
    return find_position(
        sink,
        sink_fixture.s3,
        sink_fixture.settings,
        admin or FileConsumerGroup(log, sink_fixture.folder / "group.json"),
        InlineEngine(log),
        registry=registry,
        start_at_objects=start_at_objects,
    )


def accepted(sink_fixture: SinkFixture, log: SyntheticLog, **given: Any) -> PreviousWriter:
    """What the first claim of a sink of the fixture records."""
    return position(sink_fixture, log, **given).previous_writer()


def offsets_in(sink_fixture: SinkFixture) -> Iterator[int]:
    """The offsets of all records in all visible objects, whoever has written them."""
    for content in sink_fixture.contents().values():
        yield from (json.loads(line)["offset"] for line in content.splitlines())


ALL = StopCondition(until_caught_up=True, publish_open=True)
LOG = SyntheticLog(records=45)


def driver(sink_fixture: SinkFixture, previous: PreviousWriter | None, log: SyntheticLog = LOG) -> Coordinator:
    return sink_fixture.driver(log, ALL, flush_size=10, context={"previous": previous})


def run(sink_fixture: SinkFixture, previous: PreviousWriter | None, log: SyntheticLog = LOG) -> None:
    driver(sink_fixture, previous, log).run()


def expect_each_record_once(sink_fixture: SinkFixture, log: SyntheticLog = LOG) -> None:
    """By an own count over all objects, and by `verify --deep`."""
    assert sorted(offsets_in(sink_fixture)) == [offset for offset in range(log.records) if offset not in log.gaps]
    assert findings(deep(sink_fixture, log)) == []


def two_objects(sink_fixture: SinkFixture) -> PreviousWriter:
    write(sink_fixture, LOG, (0, 10), (10, 20))
    sink_fixture.set_group({"log-0": 10})
    return accepted(sink_fixture, LOG)
