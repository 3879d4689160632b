"""`make soak`: its verdict, what it measures, and its comparison of records."""

from __future__ import annotations

import itertools
import random
import sys
from pathlib import Path

import pytest

from devtools.processes import Process, killed_at_end, wait_until
from devtools.soak.growth import ALLOWED, Growth, growth
from devtools.soak.load_phases import phases
from devtools.soak.records import Contents
from devtools.soak.resources import JvmObjects, parsed, resources

_HOLDER = """
import pathlib, socket, sys, threading
files = [open(sys.executable, "rb") for _ in range(20)]
sockets = [socket.socket() for _ in range(7)]
for _ in range(5):
    threading.Thread(target=threading.Event().wait, daemon=True).start()
memory = bytearray(b"x" * 50_000_000)
pathlib.Path(sys.argv[1]).touch()
threading.Event().wait()
"""
_HISTOGRAM = """ num     #instances         #bytes  class name (module)
-------------------------------------------------------
   1:         40000        4000000  [B (java.base@17)
 310:             2            176  org.apache.kafka.clients.consumer.KafkaConsumer
 311:             2             48  org.apache.kafka.clients.consumer.KafkaConsumer$1
Total        900000       31000000
"""


@pytest.mark.parametrize("figure", ALLOWED)
def test_a_figure_that_rises_all_the_time_has_grown(figure: str) -> None:
    grown = growth(figure, [100.0 + 10 * n for n in range(60)])
    assert grown is not None
    assert grown.grown


@pytest.mark.parametrize("figure", ALLOWED)
def test_a_figure_that_rises_and_falls_has_not_grown(figure: str) -> None:
    assert growth(figure, [100.0, 400.0, 250.0] * 20) == Growth(figure, 250.0, 250.0, grown=False)


def test_what_is_taken_until_the_end_of_the_warm_up_is_not_growth() -> None:
    verdict = growth("memory_mb", [*range(0, 900, 90), *[900] * 40])
    assert verdict == Growth("memory_mb", 900, 900, grown=False)


def test_one_more_consumer_is_growth() -> None:
    verdict = growth("consumers", [2.0] * 10 + [3.0] * 10)
    assert verdict is not None
    assert str(verdict) == "consumers 2 -> 3 GROWN"


def test_few_values_give_no_verdict() -> None:
    assert growth("files", [1.0] * 9) is None


def test_the_figures_are_sums_over_the_processes_of_the_session(tmp_path: Path) -> None:
    ready = tmp_path / "ready"
    with killed_at_end(Process([sys.executable, "-c", _HOLDER, ready], log=tmp_path / "log")) as process:
        wait_until(ready.exists, "the files", seconds=60, unless=process.failed)
        held = resources(process.pid)
    assert held.threads == 6
    assert held.sockets == 7
    assert 27 <= held.files <= 27 + 5
    assert 50 < held.memory_mb < 100
    assert resources(process.pid) == (0, 0, 0, 0)


def test_the_consumers_and_the_heap_are_read_from_a_class_histogram() -> None:
    assert parsed(_HISTOGRAM) == JvmObjects(consumers=2, heap_mb=31.0)


def test_the_order_of_records_is_no_difference() -> None:
    assert _contents({0: [b"a", b"b"], 1: [b"c"]}).differences(_contents({1: [b"c"], 0: [b"b", b"a"]})) == []


@pytest.mark.parametrize(
    ("stored", "difference"),
    [
        ({0: [b"a"]}, "partition 0: 1 records in objects, 2 in Kafka"),
        ({0: [b"a", b"b", b"b"]}, "partition 0: 3 records in objects, 2 in Kafka"),
        ({0: [b"a", b"x"]}, "partition 0: 2 records as in Kafka, but other values"),
        ({0: [b"a", b"a"]}, "partition 0: 2 records as in Kafka, but other values"),
    ],
)
def test_a_lost_a_doubled_and_a_changed_record_are_differences(stored: dict[int, list[bytes]], difference: str) -> None:
    assert _contents({0: [b"a", b"b"]}).differences(_contents(stored)) == [difference]


def test_the_activity_grows_to_all_partitions_shrinks_to_one_and_pauses() -> None:
    made = list(itertools.islice(phases(random.Random(1), 6, rate=100), 9))
    widths = [len(phase.burst.active) if phase.burst else 0 for phase in made]
    assert widths == [1, 2, 4, 6, 6, 4, 2, 1, 0]


def _contents(values: dict[int, list[bytes]]) -> Contents:
    contents = Contents()
    for partition, each in values.items():
        contents.add(partition, each)
    return contents
