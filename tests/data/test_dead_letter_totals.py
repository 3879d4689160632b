"""Every third record of a real topic is rejected: objects, dead letters and gaps add up, for each converter."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Callable

import pytest

from devtools.topics import Record
from sink_job.api.enums import ConverterType
from tests.support.spark_fixture import PUBLISH_ALL, SparkFixture
from tests.unit.plain.encoders import Pairs, encoded

pytestmark = [pytest.mark.data, pytest.mark.spark]

ERRORS = {"tolerance": "All", "deadLetters": {"prefix": "rejected"}}

GOOD: dict[ConverterType, Callable[[int], bytes]] = {
    ConverterType.JSON: lambda n: b'{"n": %d}' % n,
    ConverterType.CONNECT_JSON: lambda n: b'{"schema": {"type": "int64", "optional": false}, "payload": %d}' % n,
    ConverterType.TEXT: lambda n: b"text %d" % n,
    ConverterType.CBOR: lambda n: encoded(ConverterType.CBOR, Pairs([("n", n)])),
    ConverterType.MESSAGE_PACK: lambda n: encoded(ConverterType.MESSAGE_PACK, Pairs([("n", n)])),
}


def bad(n: int) -> bytes:
    return b"\xc1\xff\x00 %d" % n


@pytest.mark.parametrize(
    ("converter", "records"),
    [(each, 100_000 if each is ConverterType.JSON else 3_000) for each in GOOD],
    ids=[str(each) for each in GOOD],
)
def test_objects_dead_letters_and_gaps_add_up(
    spark_fixture: SparkFixture, topic: str, converter: ConverterType, records: int
) -> None:
    log = spark_fixture.topics.create(topic)
    good = GOOD[converter]
    spark_fixture.topics.produce(
        log, (Record(key=b"%d" % n, value=bad(n) if n % 3 == 1 else good(n)) for n in range(records))
    )
    sink = spark_fixture.sink(
        [log], format={"converter": str(converter)}, rotation={"flushSize": records // 7}, errors=ERRORS
    )
    report = spark_fixture.run(sink, PUBLISH_ALL)
    assert (report.totals.dropped, report.totals.dead_letters) == (0, len(range(1, records, 3)))
    lines = [
        json.loads(line)
        for key, found in spark_fixture.values().items()
        if key.startswith("rejected/")
        for line in found
    ]
    expected = range(1, records, 3)
    assert sorted(line["offset"] for line in lines) == [*expected]
    assert all(b64decode(line["value"]) == bad(line["offset"]) for line in lines)
    assert all(b64decode(line["key"]) == b"%d" % line["offset"] for line in lines)
    (verdict,) = spark_fixture.verify_deep(sink)
    assert verdict.findings == ()
    assert (verdict.records, verdict.dead_letters, verdict.gaps) == (records - len(expected), len(expected), 0)
    assert spark_fixture.committed(sink, log) == {0: records}
