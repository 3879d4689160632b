"""The form of records for DeadLetterBridge.java, which `tests/data/test_dead_letter_topic.py` runs."""

from __future__ import annotations

from sink_job.engine.dead_letter_topic import DeadLetter
from sink_job.kafka.dead_letter_topic import encoded


def test_each_part_of_a_record_has_its_length_before_it() -> None:
    record = DeadLetter(1, b"k", None, [("h", b"vv"), ("n", None)])
    assert encoded([record]) == (
        b"\x00\x00\x00\x00\x00\x00\x00\x01"  # timestamp
        b"\x00\x00\x00\x01k"
        b"\xff\xff\xff\xff"  # no value
        b"\x00\x00\x00\x02"  # headers
        b"\x00\x00\x00\x01h\x00\x00\x00\x02vv"
        b"\x00\x00\x00\x01n\xff\xff\xff\xff"
    )


def test_records_follow_each_other() -> None:
    record = DeadLetter(1, b"k", b"v", [])
    assert encoded([record, record]) == 2 * encoded([record])
