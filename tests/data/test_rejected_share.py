"""A wrong converter with `errors.tolerance: All`: the sink stops and does not drop the topic."""

from __future__ import annotations

import pytest

from devtools.topics import Record
from sink_job.api.errors import TooManyRejected
from tests.support.sink_fixture import SinkFixture
from tests.support.spark_fixture import PUBLISH_ALL, SparkFixture
from tests.support.synthetic_log import SyntheticLog

pytestmark = [pytest.mark.data, pytest.mark.spark]


class HalfBadLog(SyntheticLog):
    """A log whose partition 1 has no JSON."""

    def value(self, partition: int, offset: int) -> bytes:
        return super().value(partition, offset) if partition == 0 else b"{"


def test_uploads_of_the_other_partitions_of_the_round_are_aborted(sink_fixture: SinkFixture) -> None:
    with pytest.raises(TooManyRejected, match="log-1: 120 of 120 records"):
        sink_fixture.run(HalfBadLog(partitions=2, records=120), PUBLISH_ALL, flush_size=10, errors={"tolerance": "All"})
    assert sink_fixture.keys() == []
    assert [upload.key for upload in sink_fixture.s3.list_uploads("")] == []
    assert sink_fixture.group() == {"log-0": 0, "log-1": 0}


def test_a_topic_with_the_wrong_converter_stops_the_sink_and_nothing_of_the_round_is_recorded(
    spark_fixture: SparkFixture, topic: str
) -> None:
    log = spark_fixture.topics.create(topic)
    spark_fixture.topics.produce(log, (Record(value=b"\xff\x00 no JSON %d" % n) for n in range(250)))
    sink = spark_fixture.sink([log], errors={"tolerance": "All"})
    with pytest.raises(TooManyRejected) as raised:
        spark_fixture.run(sink, PUBLISH_ALL)
    assert str(raised.value).startswith(
        f"{log}-0: 250 of 250 records of the round (100%) were rejected, more than spec.errors.deadLetters.maxShare "
        "(0.5) allows. The first one is at offset 0: "
    )
    assert spark_fixture.keys() == []
    assert [p.next for p in spark_fixture.verify_deep(sink)] == [0]
    assert spark_fixture.committed(sink, log) == {0: 0}


def test_with_a_maximum_share_of_1_the_records_of_a_wrong_converter_are_dropped(
    spark_fixture: SparkFixture, topic: str
) -> None:
    log = spark_fixture.topics.create(topic)
    spark_fixture.topics.produce(log, (Record(value=b"\xff") for _ in range(250)))
    sink = spark_fixture.sink([log], errors={"tolerance": "All", "deadLetters": {"maxShare": 1.0}})
    report = spark_fixture.run(sink, PUBLISH_ALL)
    assert report.totals.dropped == 250
    assert spark_fixture.committed(sink, log) == {0: 250}


def test_rejected_records_are_in_the_dead_letter_topic_once_with_key_value_and_headers(
    spark_fixture: SparkFixture, topic: str
) -> None:
    log, rejected = spark_fixture.topics.create(topic), spark_fixture.topics.create(f"{topic}-rejected")
    bad = Record(value=b"{", key=b"k", headers=[("h", b"v")])
    spark_fixture.topics.produce(log, [Record(value=b"{}"), bad, Record(value=b"{}"), bad])
    sink = spark_fixture.sink([log], errors={"tolerance": "All", "deadLetters": {"topic": rejected}})
    spark_fixture.run(sink, PUBLISH_ALL)
    found = spark_fixture.topics.read(rejected)
    assert [(each.key(), each.value()) for each in found] == [(b"k", b"{")] * 2
    headers = [dict(each.headers() or []) for each in found]
    assert [(each["h"], each["__connect.errors.offset"]) for each in headers] == [(b"v", b"1"), (b"v", b"3")]
    assert spark_fixture.committed(sink, log) == {0: 4}
    assert [each.findings for each in spark_fixture.verify_deep(sink)] == [()]
