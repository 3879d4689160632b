"""Comparison of times, paths and points of the schedule with Joda-Time, which the connector uses.

Joda-Time is included in Spark. The tests use instants of years whose time-zone data does not change any more, and
locales whose names are equal in all editions of the CLDR.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from sink_job.api.units.date_pattern import pattern_elements
from sink_job.partitioning import iso8601
from sink_job.partitioning.date_format import compile_elements
from sink_job.partitioning.time_buckets import TimeBuckets
from sink_job.partitioning.time_zones import DAY, HOUR, zone
from sink_job.partitioning.timestamp_extractor import LIMIT
from sink_job.rotation.schedule import Schedule
from tests.unit.rotation.clocks import ZONES

pytestmark = pytest.mark.spark  # needs a JVM and Spark's jars, but no Spark session

MINUTE = 60_000
LAST = 1_735_000_000_000  # the end of 2024
DURATIONS = [1, 1000, MINUTE, 50 * MINUTE, 90 * MINUTE, HOUR, 7 * HOUR, DAY, 7 * DAY]
PATTERNS = [
    "'year'=YYYY/'month'=MM/'day'=dd/'hour'=HH",
    "yyyy-MM-dd HH:mm:ss.SSS",
    "YY/M/d/H/h/m/s/S",
    "x/xx/xxxx-ww-e/w",
    "DDD D",
    "E EEEE MMM MMMM a",
    "Z ZZ ZZZ",
    "hh''a'x'''y",
    "SSSSSS SS S",
    "yyyyyy Y y",
]
YEARS = ["2013", "1970", "0001", "213", "99999", "-0044", "+2013", "2024", "1582", "123456789", "1234567890"]
DATES = ["", "-05", "-5", "-13", "-05-17", "-05-31", "-06-31", "-2-29", "-02-30", "-W20", "-W20-3", "-W53", "-W53-7"]
DATES += ["-W0", "-w9-1", "-W20-8", "-123", "-366", "-000", "-12-1", "-0517", "-051"]
TIMES = ["", "T", "t", "T10", "T1", "T24", "T10:20", "T10:2", "T10:60", "T10:20:30", "T10:20:60", "T10.5", "T10,25"]
TIMES += ["T10:20:30.1234567", "T10:20:30.", "T10:20:30,9999999999", "T102030", " 10:20", "T23:59:59.9999"]
OFFSETS = ["", "Z", "z", "+01", "+0130", "+01:30", "-23:59", "+24:00", "+1", "+01:3", "+01:30:15", "+013015"]
OFFSETS += ["+01:30:15.123", "+01:30:15.1", "UTC", "+01:60", "-00:00"]


@pytest.fixture(scope="module")
def joda(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Sequence[str]], list[str]]:
    """A function that computes results with Joda-Time."""
    spark = find_spec("pyspark")
    jars = list(Path(spark.origin).parent.glob("jars/joda-time-*.jar")) if spark and spark.origin else []
    if not (jars and shutil.which("javac")):
        pytest.skip("needs a JDK and PySpark's jars")
    built = tmp_path_factory.mktemp("joda")
    source = Path(__file__).parent / "joda" / "Joda.java"
    subprocess.run(["javac", "-cp", str(jars[0]), "-d", str(built), str(source)], check=True)

    def compute(requests: Sequence[str]) -> list[str]:
        command = ["java", "-Xmx256m", "-Duser.timezone=UTC", "-cp", f"{jars[0]}:{built}", "Joda"]
        result = subprocess.run(command, input="\n".join(requests) + "\n", capture_output=True, text=True, check=True)
        return result.stdout.splitlines()

    return compute


def check(joda: Callable[[Sequence[str]], list[str]], questions: Sequence[str], ours: Sequence[str]) -> None:
    differ = [each for each in zip(questions, joda(questions), ours, strict=True) if each[1] != each[2]]
    assert not differ, f"{len(differ)} of {len(ours)}, such as {differ[:5]}"


def instant(chance: random.Random) -> int:
    """Random instants: mostly recent ones, often at full hours."""
    if chance.random() < 0.1:
        return chance.randrange(-(10**16), 0)
    return chance.randrange(-(10**12), LAST) // (unit := chance.choice([1, HOUR // 2, HOUR])) * unit


def test_offsets_and_conversions_to_utc_equal_those_of_joda_time(joda: Callable[[Sequence[str]], list[str]]) -> None:
    chance = random.Random(1)
    asked = [(chance.choice(ZONES), instant(chance)) for _ in range(3000)]
    check(joda, [f"offset\t{name}\t{at}" for name, at in asked], [str(zone(name).offset(at)) for name, at in asked])
    check(joda, [f"to_utc\t{name}\t{at}" for name, at in asked], [str(zone(name).to_utc(at)) for name, at in asked])


def test_time_paths_equal_those_of_joda_time(joda: Callable[[Sequence[str]], list[str]]) -> None:
    chance = random.Random(2)
    asked = [
        (chance.choice(ZONES), chance.choice(DURATIONS), chance.choice(PATTERNS), chance.choice(["en", "de", "fr"]))
        for _ in range(3000)
    ]
    times = [instant(chance) for _ in asked]
    questions = ["\t".join(map(str, ("path", *each, time))) for each, time in zip(asked, times, strict=True)]
    ours = []
    for (name, duration, pattern, locale), time in zip(asked, times, strict=True):
        _, (start,) = TimeBuckets(zone(name), duration).of(np.array([time], np.int64))
        ours.append(compile_elements(pattern_elements(pattern), zone=zone(name), locale=locale)(start))
    check(joda, questions, ours)


def test_points_of_the_schedule_equal_those_of_joda_time(joda: Callable[[Sequence[str]], list[str]]) -> None:
    """In zones where each day has a midnight: in Joda-Time the day after a day without one starts late."""
    chance = random.Random(3)
    names = [name for name in ZONES if name not in ("America/Sao_Paulo", "America/Havana", "Pacific/Apia")]
    periods = [MINUTE, 50 * MINUTE, HOUR, 7 * HOUR, DAY]
    asked = [(chance.choice(names), chance.choice(periods), chance.randrange(10**12, LAST)) for _ in range(3000)]
    questions = [f"point\t{name}\t{period}\t{now}" for name, period, now in asked]
    check(joda, questions, [str(Schedule(zone(name), period).after(now)) for name, period, now in asked])


def test_iso_8601_texts_are_parsed_as_by_joda_time(joda: Callable[[Sequence[str]], list[str]]) -> None:
    chance = random.Random(4)
    texts = ["".join(map(chance.choice, (YEARS, DATES, TIMES, OFFSETS))) for _ in range(4000)]
    texts += ["".join(map(chance.choice, (TIMES[1:], OFFSETS))) for _ in range(500)]
    check(joda, [f"iso\t{text}" for text in texts], [_ours(text) for text in texts])


def _ours(text: str) -> str:
    try:
        time = iso8601.parse(text)
    except ValueError:
        return "rejected"
    return str(time) if abs(time) < LIMIT else "rejected"
