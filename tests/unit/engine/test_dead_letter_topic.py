"""A dead letter and its id."""

from __future__ import annotations

from sink_job.engine.dead_letter_topic import DeadLetter


def test_the_id_of_a_dead_letter_is_its_last_header_of_that_name() -> None:
    headers = [("s3sink.id", b"of a source"), ("s3sink.id", b"sink/log/0/1"), ("other", None)]
    assert DeadLetter(0, None, None, headers).id == "sink/log/0/1"


def test_a_record_of_another_program_has_no_id() -> None:
    assert DeadLetter(0, None, None, []).id == ""
