"""100,000 records of which every third is rejected, and all of a wrong converter, for each converter. Without Spark."""

from __future__ import annotations

import json
import logging
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pytest

from sink_job.api.enums import ConverterType, OutputFormat
from sink_job.api.errors import TooManyRejected
from sink_job.api.topic_partition import TopicPartition
from sink_job.coordinator.context import StopCondition
from tests.support.schema_log import SchemaLog, schemas_of, settings
from tests.support.sink_fixture import SinkFixture
from tests.support.verify_sink import deep

pytestmark = pytest.mark.data

ALL = StopCondition(until_caught_up=True, publish_open=True)
RECORDS = 100_000
BATCH_RECORDS = 5_000
ERRORS = {"tolerance": "All", "deadLetters": {"prefix": "rejected"}}
INVALID = b"\xc1\xff\x00"
"""No converter but Bytes reads it."""
OTHER_CONVERTER = {
    ConverterType.JSON: ConverterType.MESSAGE_PACK,
    ConverterType.TEXT: ConverterType.MESSAGE_PACK,
    ConverterType.JSON_SCHEMA: ConverterType.AVRO,
}
"""The converter of the topic if that of the manifest is wrong; else Json."""


def values(converter: ConverterType) -> SchemaLog:
    """A log in the form that this converter reads."""
    output = OutputFormat.BYTES if converter is ConverterType.BYTES else OutputFormat.JSON
    return SchemaLog(
        records=RECORDS, converter=converter, ids=(1,), in_wire_format=not converter.needs_registry, output=output
    )


@lru_cache(maxsize=1)
def _content(converter: ConverterType, records: int, rejected_every: int) -> pa.Array:
    """The values of all offsets; with `rejected_every`, those at 1, 1 + `rejected_every` and so on are rejected."""
    invalid, log = None if converter is ConverterType.BYTES else INVALID, values(converter)
    return pa.array(
        [
            invalid if rejected_every and offset % rejected_every == 1 else log.value(0, offset)
            for offset in range(records)
        ],
        pa.binary(),
    )


@dataclass(frozen=True)
class LargeLog(SchemaLog):
    """The log of a sink. Its values are those of the converter `written`."""

    written: ConverterType = ConverterType.JSON
    rejected_every: int = 0

    def batches(self, tp: TopicPartition, start: int, end: int) -> Iterator[pa.RecordBatch]:
        content = _content(self.written, self.records, self.rejected_every)
        for first in range(start, end, BATCH_RECORDS):
            offsets = range(first, min(first + BATCH_RECORDS, end))
            yield pa.RecordBatch.from_pydict(
                {
                    "offset": pa.array(offsets, pa.int64()),
                    "value": content.slice(first, len(offsets)),
                    "timestamp": pa.array([self.timestamp(offset) for offset in offsets], pa.int64()),
                }
            )


def log_of(converter: ConverterType, **given: Any) -> LargeLog:
    """The log of a sink with this converter."""
    return replace(LargeLog(**vars(values(converter))), **given)


def given_for(log: LargeLog) -> dict[str, Any]:
    return {**settings(log, "http://127.0.0.1:1"), "flush_size": RECORDS // 7, "max_records": 30_000, "errors": ERRORS}


@pytest.mark.parametrize("converter", ConverterType)
def test_objects_and_dead_letters_of_each_converter_add_up(sink_fixture: SinkFixture, converter: ConverterType) -> None:
    log = log_of(converter, written=converter, rejected_every=3)
    given = given_for(log)
    driver = sink_fixture.driver(log, ALL, context={"registry": schemas_of(log, None)}, **given)
    driver.run()
    expected = range(1, RECORDS, 3)
    totals = driver.progress.report().totals
    assert (totals.records, totals.dropped, totals.dead_letters) == (RECORDS - len(expected), 0, len(expected))
    contents = sink_fixture.contents()
    rejected = [content for key, content in contents.items() if key.startswith("rejected/")]
    lines = [json.loads(line) for content in rejected for line in content.splitlines()]
    assert [line["offset"] for line in lines] == [*expected]
    invalid = None if converter is ConverterType.BYTES else INVALID
    assert {line["value"] and b64decode(line["value"]) for line in lines} == {invalid}
    (verdict,) = deep(sink_fixture, log, **given)
    assert verdict.findings == ()
    assert (verdict.records, verdict.dead_letters, verdict.gaps) == (RECORDS - len(expected), len(expected), 0)
    assert (verdict.objects, verdict.dead_letter_objects) == (len(contents), len(rejected))
    assert sink_fixture.group() == {"log-0": RECORDS}
    assert sink_fixture.orphans() == []


@pytest.mark.parametrize("converter", [each for each in ConverterType if each is not ConverterType.BYTES])
def test_a_topic_with_the_wrong_converter_stops_with_one_message_and_nothing_is_recorded(
    sink_fixture: SinkFixture, converter: ConverterType, caplog: pytest.LogCaptureFixture
) -> None:
    """The first round has 1,000 records."""
    log = log_of(converter, records=2_000, written=OTHER_CONVERTER.get(converter, ConverterType.JSON))
    with caplog.at_level(logging.INFO), pytest.raises(TooManyRejected) as raised:
        sink_fixture.run(log, ALL, context={"registry": schemas_of(log, None)}, **given_for(log))
    assert str(raised.value).startswith(
        "log-0: 1,000 of 1,000 records of the round (100%) were rejected, more than "
        "spec.errors.deadLetters.maxShare (0.5) allows. The first one is at offset 0: "
    )
    assert "kubectl s3sink skip log -n default log-0@0" in str(raised.value)
    assert [each for each in caplog.messages if "rejected" in each] == []
    assert sink_fixture.keys() == []
    assert sink_fixture.ledger_access().ledger.load().partitions["log-0"].next == 0
    assert sink_fixture.group() == {"log-0": 0}
    assert list(sink_fixture.s3.list_uploads("")) == []
