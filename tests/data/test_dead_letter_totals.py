"""Every third record of a real topic is rejected: objects, dead letters and gaps add up.

`test_rejected_thirds.py` does this for each converter, without Spark.
"""

from __future__ import annotations

import json
from base64 import b64decode

import pytest

from devtools.topics import Record
from tests.support.spark_fixture import PUBLISH_ALL, SparkFixture

pytestmark = [pytest.mark.data, pytest.mark.spark]

ERRORS = {"tolerance": "All", "deadLetters": {"prefix": "rejected"}}

RECORDS = 100_000


def bad(n: int) -> bytes:
    return b"\xc1\xff\x00 %d" % n


def test_objects_dead_letters_and_gaps_add_up(spark_fixture: SparkFixture, topic: str) -> None:
    log = spark_fixture.topics.create(topic)
    records = (Record(key=b"%d" % n, value=bad(n) if n % 3 == 1 else b'{"n": %d}' % n) for n in range(RECORDS))
    spark_fixture.topics.produce(log, records)
    sink = spark_fixture.sink([log], rotation={"flushSize": RECORDS // 7}, errors=ERRORS)
    report = spark_fixture.run(sink, PUBLISH_ALL)
    expected = range(1, RECORDS, 3)
    assert (report.totals.dropped, report.totals.dead_letters) == (0, len(expected))
    lines = [
        json.loads(line)
        for key, found in spark_fixture.values().items()
        if key.startswith("rejected/")
        for line in found
    ]
    assert sorted(line["offset"] for line in lines) == [*expected]
    assert all(b64decode(line["value"]) == bad(line["offset"]) for line in lines)
    assert all(b64decode(line["key"]) == b"%d" % line["offset"] for line in lines)
    (verdict,) = spark_fixture.verify_deep(sink)
    assert verdict.findings == ()
    assert (verdict.records, verdict.dead_letters, verdict.gaps) == (RECORDS - len(expected), len(expected), 0)
    assert spark_fixture.committed(sink, log) == {0: RECORDS}
