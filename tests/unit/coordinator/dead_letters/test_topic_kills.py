"""A kill before and after each effect of a run whose rejected records go to a Kafka topic: each is there once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import pytest

from devtools.simulation.dead_letter_topic import SimulatedTopics
from devtools.simulation.executors import without_threads
from devtools.simulation.run import tiny_sizes
from sink_job.api.parser import load_sink
from tests.support.memory_sink import MemorySinkFixture
from tests.support.sink_fixture import manifest
from tests.support.synthetic_log import FileConsumerGroup, SyntheticLog

EFFECTS = ("put", "delete", "upload_part", "complete")
REJECTED = [f"default.log/log/0/{offset}" for offset in (1, 3, 5)]


class Killed(BaseException):
    """The end of a process."""


class HalfRejected(SyntheticLog):
    """A log of which every second value is not JSON."""

    def value(self, partition: int, offset: int) -> bytes:
        return super().value(partition, offset)[offset % 2 :]


@pytest.fixture(autouse=True)
def small_sizes() -> Iterator[None]:
    with tiny_sizes(), without_threads(Random(1)):
        yield


class Sink:
    """Drivers of one sink. Objects have three records, so have rounds."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, errors: dict[str, Any]) -> None:
        folder.mkdir()
        self.log = HalfRejected(records=6)
        self.memory = MemorySinkFixture(folder, patch)
        errors = {"tolerance": "All", "deadLetters": {"topic": "dlq", **errors}}
        text = manifest("archive", "http://127.0.0.1:9", flush_size=3, max_records=3, part_size=400, errors=errors)
        self.memory.sink = load_sink(text)
        self.topics = SimulatedTopics({"dlq"})
        self.effects = 0

    def run(self, before: Callable[[int], None] = lambda effect: None) -> None:
        """Runs a driver until everything is published. `before` is called before each effect."""

        def effect(call: str) -> None:
            self.effects += 1
            before(self.effects)

        def fault(call: str, key: str) -> None:
            if call in EFFECTS and "/intent/" not in key and (self.effects or "/ledger/" in key):
                effect(call)

        self.topics.before = self.topics.after = effect
        group = FileConsumerGroup(self.log, self.memory.group)
        with self.memory.faults(fault):
            self.memory.run(self.log, admin=group, dead_letter_topic=self.topics.producer)

    def ids(self) -> list[str]:
        return [record.id for record in self.topics.records["dlq"]]

    def staged(self) -> list[str]:
        return [key for key in self.memory.s3.objects if "/dead-letters/" in key]


@pytest.mark.parametrize("errors", [{}, {"prefix": "rejected"}], ids=["topic", "topic and prefix"])
def test_a_kill_at_any_effect_leaves_each_dead_letter_in_the_topic_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, errors: dict[str, Any]
) -> None:
    undisturbed = Sink(tmp_path / "undisturbed", monkeypatch, errors)
    undisturbed.run()
    assert undisturbed.ids() == REJECTED
    for effect in range(1, undisturbed.effects + 1):
        sink = Sink(tmp_path / str(effect), monkeypatch, errors)
        with pytest.raises(Killed):
            sink.run(partial(kill_at, effect))
        sink.run()
        assert sink.ids() == REJECTED, f"killed at effect {effect}"
        assert sink.memory.offsets().keys() == undisturbed.memory.offsets().keys()
        assert (sink.memory.orphans(), sink.staged()) == ([], []), f"killed at effect {effect}"


def kill_at(effect: int, number: int) -> None:
    """Kills the driver at its n-th effect."""
    if number == effect:
        raise Killed


@pytest.mark.parametrize("errors", [{}, {"prefix": "rejected"}], ids=["topic", "topic and prefix"])
def test_without_transactions_a_kill_at_any_effect_loses_no_dead_letter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, errors: dict[str, Any]
) -> None:
    errors = {**errors, "delivery": "AtLeastOnce"}
    undisturbed = Sink(tmp_path / "undisturbed", monkeypatch, errors)
    undisturbed.run()
    assert undisturbed.ids() == REJECTED
    repeated = 0
    for effect in range(1, undisturbed.effects + 1):
        sink = Sink(tmp_path / str(effect), monkeypatch, errors)
        with pytest.raises(Killed):
            sink.run(partial(kill_at, effect))
        sink.run()
        assert sorted(set(sink.ids())) == REJECTED, f"killed at effect {effect}"
        repeated += len(sink.ids()) > len(REJECTED)
    assert repeated, "a kill between the records and the number repeats records"


def test_after_the_number_has_expired_the_topic_is_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    undisturbed = Sink(tmp_path / "undisturbed", monkeypatch, {})
    undisturbed.run()
    for effect in range(1, undisturbed.effects + 1):
        sink = Sink(tmp_path / str(effect), monkeypatch, {})
        with pytest.raises(Killed):
            sink.run(partial(kill_at, effect))
        sink.topics.numbers.clear()
        sink.run()
        assert sink.ids() == REJECTED, f"killed at effect {effect}"
