"""The producer of dead letters in a driver, beside kills (`test_topic_kills`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from devtools.simulation.dead_letter_topic import SimulatedTopics
from sink_job.api.errors import ConfigurationError, TopicNotFound, TransientError
from sink_job.api.parser import load_sink
from sink_job.coordinator.context import StopCondition
from sink_job.engine.dead_letter_topic import CommittedNumber
from sink_job.maintenance.discard_open import discard_open
from tests.support.memory_sink import MemorySinkFixture
from tests.support.sink_fixture import manifest
from tests.support.synthetic_log import CLOCK_MS, SyntheticLog

DONE = StopCondition(until_caught_up=True)


class Killed(BaseException):
    """The end of a process."""


class ThirdsLog(SyntheticLog):
    """A log of which every third value is not JSON."""

    def value(self, partition: int, offset: int) -> bytes:
        return super().value(partition, offset)[offset % 3 == 2 :]


class Fixture:
    """Drivers of one sink with a dead-letter topic. Objects have ten records, rounds have six."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.memory = MemorySinkFixture(folder, patch)
        self.topics = SimulatedTopics({"dlq", "other"})
        self.change({})

    def change(self, dead_letters: dict[str, Any], **spec: Any) -> None:
        """Changes the section of the manifest, and others."""
        errors = {"tolerance": "All", "deadLetters": {"topic": "dlq", **dead_letters}}
        text = manifest("archive", "http://127.0.0.1:9", flush_size=10, max_records=6, errors=errors, spec=spec)
        self.memory.sink = load_sink(text)

    def run(self, records: int, **context: Any) -> None:
        self.memory.run(ThirdsLog(records=records), dead_letter_topic=self.topics.producer, goal=DONE, **context)

    def run_killed(self, records: int, what: str = "send") -> None:
        """A driver that is killed before its first request of this name."""

        def before(name: str) -> None:
            if name == what:
                raise Killed

        self.topics.before = before
        with pytest.raises(Killed):
            self.run(records)
        self.topics.before = lambda name: None

    def offsets(self, topic: str = "dlq") -> list[int]:
        return [int(record.id.rpartition("/")[2]) for record in self.topics.records[topic]]

    def staged(self) -> list[str]:
        return [key for key in self.memory.s3.objects if "/dead-letters/" in key]


@pytest.fixture
def sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fixture:
    return Fixture(tmp_path, monkeypatch)


def test_dead_letters_are_in_the_topic_at_the_end_of_each_round(sink: Fixture) -> None:
    sink.run(6)
    assert sink.offsets() == [2, 5]
    assert (sink.staged(), sink.memory.offsets()) == ([], {})


def test_a_topic_that_does_not_exist_stops_the_start_before_the_claim(sink: Fixture) -> None:
    sink.change({"topic": "absent"})
    with pytest.raises(TopicNotFound, match=r"spec\.errors\.deadLetters\.topic: topic absent does not exist"):
        sink.run(6)
    assert not [key for key in sink.memory.s3.objects if "/ledger/" in key]


def test_the_old_topic_gets_what_a_killed_driver_has_left(sink: Fixture) -> None:
    sink.run_killed(6)
    sink.change({"topic": "other"})
    sink.run(12)
    assert (sink.offsets("dlq"), sink.offsets("other")) == ([2, 5], [8, 11])


def test_a_deleted_topic_of_an_earlier_manifest_is_named_with_what_it_still_needs(sink: Fixture) -> None:
    sink.run_killed(6)
    sink.topics.topics.remove("dlq")
    sink.change({"topic": "other"})
    with pytest.raises(
        TopicNotFound, match=r"topic dlq, the former spec\.errors\.deadLetters\.topic, .* Create it again"
    ):
        sink.run(6)
    sink.topics.topics.add("dlq")
    sink.run(6)
    assert sink.offsets("dlq") == [2, 5]


def test_a_number_of_another_ledger_counts_as_missing(sink: Fixture) -> None:
    sink.run_killed(6)
    for place, (number, metadata) in sink.topics.numbers.items():
        sink.topics.numbers[place] = CommittedNumber(
            number + 1_000, metadata.replace("attempt ", "attempt of another ")
        )
    sink.run(6)
    assert sink.offsets() == [2, 5]


def test_a_command_leaves_dead_letters_to_a_driver(sink: Fixture) -> None:
    sink.run_killed(6)
    with pytest.raises(
        ConfigurationError, match=r"dead letters of log-0 from offset 2 on .* the topic dlq .* Run the sink"
    ):
        discard_open(sink.memory.ledger_access())
    sink.run(6)
    discard_open(sink.memory.ledger_access())
    sink.run(6)
    assert sink.offsets() == [2, 5]


def test_the_number_is_committed_again_every_hour(sink: Fixture) -> None:
    now = iter([CLOCK_MS] * 40 + [CLOCK_MS + 3_600_000] * 1_000)
    sink.run(6, clock=lambda: next(now), discovery_interval_ms=0)
    (committed,) = sink.topics.numbers.values()
    sink.topics.numbers.clear()
    assert committed.number > 0


def test_a_producer_that_is_fenced_again_and_again_ends_the_driver(sink: Fixture) -> None:
    def before(name: str) -> None:
        if name == "commit":
            for each in sink.topics.epochs:
                sink.topics.epochs[each] += 1

    sink.topics.before = before
    with pytest.raises(TransientError, match="was used by another producer 5 times in a row"):
        sink.run(6)


def test_an_object_that_is_deleted_before_its_transaction_is_written_again(sink: Fixture) -> None:
    def before(name: str) -> None:
        for key in sink.staged() if name == "check" else ():
            del sink.memory.s3.objects[key]

    sink.topics.before = before
    with pytest.raises(TransientError, match="was deleted before its records were in the dead-letter topic"):
        sink.run(6)
    sink.topics.before = lambda name: None
    sink.run(6)
    assert sink.offsets() == [2, 5]


def test_objects_whose_path_looks_like_the_folder_of_dead_letters_are_kept(sink: Fixture) -> None:
    path = {"type": "Time", "duration": "1h", "timestampExtractor": "Record", "timezone": "UTC", "locale": "en"}
    sink.change({}, partitioner={**path, "pathFormat": "'_s3sink'/'a'/'dead-letters'/YYYY"})
    sink.run(30)
    objects = [key for key in sink.memory.s3.objects if key.startswith("topics/log/_s3sink/a/dead-letters/")]
    assert len(objects) == 2
    assert len(sink.offsets()) == 10
