"""Transforms on a real store: objects and gaps add up over rounds, restarts and changes of the list; kills and rebuilds
leave the same objects."""

from __future__ import annotations

import io
import json
from base64 import b64decode
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from devtools.faults.s3_proxy import FaultProxy
from devtools.s3 import S3Server
from sink_job.coordinator.context import StopCondition
from tests.data.test_crash_points import EFFECTS, Undisturbed, expect_same_after_kills, through
from tests.data.test_repair import repair
from tests.support.crash_points import crash_before_publishing
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import SyntheticLog
from tests.support.verify_sink import deep

pytestmark = pytest.mark.data

DONE = StopCondition(until_caught_up=True)
ALL = StopCondition(until_caught_up=True, publish_open=True)


def listed(number: int) -> dict[str, Any]:
    """Settings with one of several lists: it filters other records, and marks its records with `list`."""
    kinds = {0: ["k0"], 1: ["k1", "k2"], 2: ["k3"]}[number]
    transforms = [
        {"type": "Filter", "when": {"field": "kind", "values": kinds}},
        {"type": "Insert", "field": "list", "source": "Text", "text": str(number)},
        {"type": "Drop", "fields": ["pad"]},
    ]
    return {"spec": {"transforms": transforms}}


def passes(number: int, offset: int) -> bool:
    """Whether a list leaves the record in, whose kind is its offset modulo 5."""
    return offset % 5 not in {0: {0}, 1: {1, 2}, 2: {3}}[number]


def lists(sink_fixture: SinkFixture) -> dict[int, str]:
    """The list of each record in an object. All records of an object have the same, and no `pad`."""
    found: dict[int, str] = {}
    for key, body in sink_fixture.contents().items():
        lines = list(map(json.loads, body.splitlines()))
        assert len({line["list"] for line in lines}) == 1, key
        assert all(sorted(line) == ["kind", "list", "offset", "partition"] for line in lines)
        assert not found.keys() & {line["offset"] for line in lines}
        found |= {line["offset"]: line["list"] for line in lines}
    return found


@pytest.mark.parametrize("max_records", [1, 4, 1000])
@pytest.mark.parametrize("scope", ["Partition", "Object"])
def test_objects_and_gaps_add_up_over_changes_of_the_list(
    sink_fixture: SinkFixture, scope: str, max_records: int
) -> None:
    """What is open keeps its list; each start closes it, since it has another one (P8)."""
    given: dict[str, Any] = {"paths": True, "scope": scope, "max_records": max_records, "flush_size": 7}
    expected: dict[int, str] = {}
    start = 0
    for end, number in ((3, 0), (16, 1), (17, 2), (40, 0)):
        log = SyntheticLog(records=end, paths=5)
        sink_fixture.run(log, ALL if end == 40 else DONE, **given, **listed(number))
        expected |= {offset: str(number) for offset in range(start, end) if passes(number, offset)}
        start = end
    assert lists(sink_fixture) == expected
    (verdict,) = deep(sink_fixture, SyntheticLog(records=40, paths=5), **given, **listed(0))
    assert (verdict.findings, verdict.gaps) == ((), 40 - len(expected))
    assert sink_fixture.group() == {"log-0": 40}
    assert sink_fixture.orphans() == []


def test_a_topic_whose_records_are_all_filtered_has_no_object_and_a_committed_offset(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=9)
    given: dict[str, Any] = {"spec": {"transforms": [{"type": "Filter", "when": {"topic": "log"}}]}}
    sink_fixture.run(log, ALL, flush_size=2, **given)
    assert (sink_fixture.keys(), sink_fixture.group()) == ([], {"log-0": 9})
    (verdict,) = deep(sink_fixture, log, **given)
    assert (verdict.findings, verdict.gaps) == ((), 9)


def test_records_filtered_since_the_last_object_are_no_finding_with_another_list(sink_fixture: SinkFixture) -> None:
    """Which list applied to them is not recorded: that of the object before them, or a later one."""
    sink_fixture.run(SyntheticLog(records=6), ALL, flush_size=2)
    log = SyntheticLog(records=9)
    given: dict[str, Any] = {"spec": {"transforms": [{"type": "Filter", "when": {"topic": "log"}}]}}
    sink_fixture.run(log, ALL, flush_size=2, **given)
    (verdict,) = deep(sink_fixture, log, **given)
    assert (verdict.findings, verdict.gaps) == ((), 3)


@pytest.mark.parametrize("max_records", [2, 1000])
def test_an_inferred_schema_is_that_of_transformed_values(sink_fixture: SinkFixture, max_records: int) -> None:
    """Records that are left out are in no sample: the first kind has no record in it."""
    log = SyntheticLog(records=13, paths=5)
    given: dict[str, Any] = {"flush_size": 5, "max_records": max_records}
    parquet = {"output": "Parquet", "inference": "Once", "parquet": {"rowGroup": "1Mi"}}
    given["spec"] = {**listed(0)["spec"], "format": parquet}
    sink_fixture.run(log, DONE, **given)
    sink_fixture.run(log, ALL, **given)
    tables = [pq.read_table(io.BytesIO(body)) for body in sink_fixture.contents().values()]
    assert {tuple(sorted(each.column_names)) for each in tables} == {("kind", "list", "offset", "partition")}
    found = sorted(offset for each in tables for offset in each.column("offset").to_pylist())
    assert found == [offset for offset in range(13) if passes(0, offset)]
    (verdict,) = deep(sink_fixture, log, **given)
    assert (verdict.findings, verdict.gaps) == ((), 3)


GIVEN: dict[str, Any] = {"flush_size": 6, "max_records": 4, "paths": True}


def test_lost_uploads_and_remainders_are_rebuilt_by_the_list_of_their_objects(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = SyntheticLog(records=14, paths=5)
    crash_before_publishing(sink_fixture, monkeypatch, log, **GIVEN, **listed(0))
    sink_fixture.abort_uploads_of("")
    sink_fixture.delete_staging()
    sink_fixture.run(log, ALL, **GIVEN, **listed(1))
    found = lists(sink_fixture)
    later = [offset for offset, number in found.items() if number == "1"]
    end = min(later, default=14)
    assert [o for o in sorted(found) if found[o] == "0"] == [o for o in range(14) if passes(0, o) and o < end]
    assert later == [] or sorted(later) == [o for o in range(end, 14) if passes(1, o)]
    (verdict,) = deep(sink_fixture, log, **GIVEN, **listed(1))
    assert verdict.findings == ()


def test_a_deleted_object_is_restored_by_the_list_of_its_settings(sink_fixture: SinkFixture) -> None:
    log = SyntheticLog(records=14, paths=5)
    sink_fixture.run(SyntheticLog(records=9, paths=5), ALL, flush_size=4, **listed(0))
    sink_fixture.run(log, ALL, flush_size=4, **listed(1))
    right = sink_fixture.contents()
    sink_fixture.s3.delete([*right])
    report = repair(sink_fixture, log, flush_size=4, **listed(1))
    assert len(report.objects) == len(right)
    assert sink_fixture.contents() == right


class HalfArrays(SyntheticLog):
    """A log of which every second value is an array, which no transform of fields can handle."""

    def value(self, partition: int, offset: int) -> bytes:
        value = super().value(partition, offset)
        return b"[%b]" % value if offset % 2 else value


def test_what_a_transform_rejects_is_a_dead_letter_with_the_value_of_kafka(sink_fixture: SinkFixture) -> None:
    log = HalfArrays(records=8, paths=5)
    errors = {"tolerance": "All", "deadLetters": {"prefix": "rejected", "maxShare": 1}}
    given: dict[str, Any] = {"flush_size": 3, "errors": errors, **listed(0)}
    sink_fixture.run(log, ALL, **given)
    keys = sink_fixture.keys()
    rejected = [key for key in keys if key.startswith("rejected/")]
    letters = [json.loads(line) for key in rejected for line in sink_fixture.content(key).splitlines()]
    assert [each["offset"] for each in letters] == [1, 3, 5, 7]
    assert {each["reason"] for each in letters} == {"InvalidRecord"}
    assert {each["message"] for each in letters} == {"transforms[1] (Insert): the value is an array, not an object"}
    assert [b64decode(each["value"]) for each in letters] == [log.value(0, offset) for offset in (1, 3, 5, 7)]
    objects = [key for key in keys if key.startswith("topics/log/")]
    assert sorted(offset for key in objects for offset in sink_fixture.offsets(key)) == [2, 4, 6]
    (verdict,) = deep(sink_fixture, log, **given)
    assert (verdict.findings, verdict.dead_letters, verdict.gaps) == ((), 4, 1)


KILLED = SyntheticLog(records=9, value_bytes=1_500_000, paths=5)
SETTINGS: dict[str, Any] = {
    "flush_size": 4,
    "max_records": 4,
    "spec": {
        "transforms": [
            {"type": "Filter", "when": {"field": "kind", "values": ["k1", "k3"]}},
            {"type": "Insert", "field": "at", "source": "Offset"},
        ]
    },
}


@pytest.fixture(scope="module")
def never_killed(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    with FaultProxy(s3.endpoint) as proxy:
        sink_fixture = SinkFixture.new(s3.endpoint, tmp_path_factory.mktemp("undisturbed"))
        through(sink_fixture, proxy).run(KILLED, ALL, **SETTINGS)
        counts = {effect: proxy.count(matches) for effect, matches in EFFECTS.items()}
    return Undisturbed(sink_fixture.contents(), sink_fixture.group(), counts)


@pytest.mark.parametrize("effect", ["a part", "a staged remainder", "a record", "a completion"])
def test_a_kill_leaves_the_same_objects_with_transforms(
    s3: S3Server, never_killed: Undisturbed, tmp_path: Path, effect: str
) -> None:
    expect_same_after_kills(s3, never_killed, tmp_path, KILLED, SETTINGS, effect, "after")
