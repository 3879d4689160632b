"""The plan of `make chaos ARGS=--real`, and whether its comparison finds what is wrong."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest

from devtools.chaos.compare import Comparison, Kept, Log, Settings
from devtools.chaos.faults import FAULTS
from devtools.chaos.figures import Figures, write
from devtools.chaos.load import Burst, batches
from devtools.chaos.world import Known
from devtools.chaos.worlds import PARTITIONERS, ROTATIONS, plan
from sink_job.api.spec import PartitionerSpec, RotationSpec

# -- the plan ------------------------------------------------------------------------------------------------------


def test_a_seed_gives_the_same_plan_again() -> None:
    assert plan(7, 40) == plan(7, 40)
    assert plan(7, 40) != plan(8, 40)


def test_a_plan_of_200_cycles_has_all_faults_partitioners_rotations_and_scopes() -> None:
    worlds = plan(1, 200)
    cycles = [cycle for world in worlds for cycle in world.cycles]
    assert [cycle.number for cycle in cycles] == list(range(1, 201))
    assert {cycle.fault for cycle in cycles} == set(FAULTS)
    assert {each.spec["partitioner"]["type"] for each in worlds} == {each["type"] for each in PARTITIONERS}
    rotations = {name for each in worlds for name in each.spec["rotation"]}
    assert rotations == {"scope", *(name for each in ROTATIONS for name in each)}
    assert {each.spec["rotation"]["scope"] for each in worlds} == {"Partition", "Object"}
    assert {each.partitions for each in worlds} >= {1, 64}
    assert {each.versioning for each in worlds} == {True, False}
    assert any(each.memory for each in worlds)


def test_a_plan_of_given_faults_has_them_in_turn() -> None:
    cycles = [cycle for world in plan(1, 12, only=("edit", "kill")) for cycle in world.cycles]
    assert [cycle.fault for cycle in cycles] == ["edit", "kill"] * 6


def test_activity_grows_and_shrinks_within_a_world() -> None:
    for world in plan(1, 200):
        if world.partitions >= 16:
            active = [len(cycle.burst.active) for cycle in world.cycles]
            assert max(active) >= 16
            assert min(active) <= world.partitions / 4


def test_every_planned_spec_is_a_spec_of_the_product() -> None:
    for world in plan(3, 200):
        PartitionerSpec.model_validate(dict(world.spec["partitioner"]))
        RotationSpec.model_validate(dict(world.spec["rotation"]))


def test_a_burst_repeats_no_record() -> None:
    import random

    burst = Burst(records=500, seconds=1, active=(0, 3), nulls=0.1, broken=0.1)
    made = []
    for batch in batches(random.Random(1), "c1", burst, 1_700_000_000_000):
        made += batch
        if len(made) >= 500:
            break
    values = [record.value for record in made if record.value is not None]
    assert len(set(values)) == len(values)
    assert {record.partition for record in made} == {0, 3}


# -- the comparison ------------------------------------------------------------------------------------------------

KEY = "topics/log/partition={p}/log+{p}+{first:010d}.json"


class Bucket:
    """A store that holds bytes by key, as far as a comparison asks."""

    def __init__(self, objects: Mapping[str, bytes]) -> None:
        self.objects = dict(objects)

    def get_paginator(self, name: str) -> Bucket:
        assert name == "list_objects_v2"
        return self

    def paginate(self, **_: Any) -> Iterator[dict[str, Any]]:
        listed = [{"Key": k, "ETag": f"{hash(v)}", "Size": len(v)} for k, v in sorted(self.objects.items())]
        yield {"Contents": listed}

    def get_object(self, **named: str) -> dict[str, Any]:
        return {"Body": io.BytesIO(self.objects[named["Key"]])}


class Given(Log):
    """A log whose records are given."""

    def __init__(self, count: int) -> None:
        super().__init__("nowhere:1", "log")
        for offset in range(count):
            value = b'{"n":%d}' % offset
            self.records.setdefault(0, {})[offset] = Kept(0, offset, 1_700_000_000_000, value)
            self._offsets[0, value] = [offset]
        self.ends[0] = count

    def update(self, partitions: object) -> None:
        """Nothing comes."""


def comparison(objects: Mapping[str, bytes], count: int, **rotation: Any) -> Comparison:
    made = Comparison(Given(count), cast("Any", Bucket(objects)), "bucket", ignored=lambda value: False)
    made.settings.append(Settings.of({"rotation": rotation}))
    return made


def body(*offsets: int) -> bytes:
    return b"".join(b'{"n":%d}\n' % n for n in offsets)


def at(first: int, partition: int = 0) -> str:
    return KEY.format(p=partition, first=first)


def test_records_that_are_each_in_one_object_are_right() -> None:
    compared = comparison({at(0): body(0, 1), at(2): body(2, 3)}, 4, flushSize=2)
    assert compared.all_of_it({0: 4}, [0]) == []


@pytest.mark.parametrize(
    ("objects", "committed", "wrong"),
    [
        ({at(0): body(0, 1, 2)}, 4, "record log-0 offset 3 is below the committed offset 4 and in no object"),
        ({at(0): body(0, 1, 2, 3), at(2): body(2, 3)}, 4, "record log-0 offset 2 is in"),
        ({at(0): body(0, 2), at(1): body(1, 3)}, 3, "committed 3"),
        ({at(0): body(0, 1), at(3): body(2, 3)}, 4, "line 1 is not the record that belongs there"),
        ({at(0): body(1, 0, 2, 3)}, 4, "line 1 is not the record that belongs there"),
        ({at(0): body(0, 1, 2, 3, 3)}, 4, "line 5 is not the record that belongs there"),
        ({"topics/log/partition=1/log+0+0000000000.json": body(0, 1, 2, 3)}, 4, "belongs below partition=0"),
        ({at(0): body(0, 1, 2, 3), "topics/log/note": b""}, 4, "no key of this sink"),
    ],
)
def test_what_is_wrong_is_found(objects: Mapping[str, bytes], committed: int, wrong: str) -> None:
    found = comparison(objects, 4).all_of_it({0: committed}, [0])
    assert any(wrong in each for each in found), found


def test_an_object_that_the_rotation_would_have_closed_is_found() -> None:
    assert "flushSize is 2" in comparison({at(0): body(0, 1, 2)}, 3, flushSize=2).look({0: 3}, [0])[0]
    assert "maxBytes is 10" in comparison({at(0): body(0, 1, 2)}, 3, maxBytes=10).look({0: 3}, [0])[0]


def test_an_object_that_vanishes_or_changes_is_found_and_one_that_a_reader_moved_is_not() -> None:
    compared = comparison({at(0): body(0), at(1): body(1), at(2): body(2)}, 3)
    assert compared.look({0: 3}, [0]) == []
    bucket = cast("Any", compared)._client.objects
    del bucket[at(0)]
    compared.moved.add(at(0))
    assert compared.look({0: 3}, [0]) == []
    del bucket[at(1)]
    bucket[at(2)] = body(2, 2)
    assert [each.partition(": ")[2][:10] for each in compared.look({0: 3}, [0])] == ["its ETag w", "was visibl"]
    bucket[at(0)] = body(0)
    assert f"{at(0)}: made again after a reader had moved it" in compared.look({0: 3}, [0])


@pytest.mark.parametrize(
    ("partitioner", "path"),
    [
        ({"type": "Field", "fields": ["user.country", "vip"]}, "user.country=a%2Fb/vip=true"),
        ({"type": "Daily", "timezone": "Pacific/Apia", "timestampExtractor": "Record"}, "year=2023/month=11/day=15"),
        (
            {
                "type": "Hourly",
                "timezone": "America/New_York",
                "timestampExtractor": "RecordField",
                "timestampField": "t",
            },
            "year=2023/month=11/day=14/hour=17",
        ),
        (
            {
                "type": "Time",
                "timezone": "UTC",
                "duration": "30m",
                "pathFormat": "'year'=YYYY/'month'=MM/'at'=HH-mm",
                "timestampExtractor": "Record",
            },
            "year=2023/month=11/at=22-00",
        ),
    ],
)
def test_directories_are_computed_from_the_documentation(partitioner: Mapping[str, Any], path: str) -> None:
    value = b'{"user":{"country":"a/b"},"vip":true,"t":"2023-11-14T22:13:20.000+00:00"}'
    assert Settings(partitioner, {}, ".json").path(Kept(3, 0, 1_700_000_000_000, value)) == path


# -- the report ----------------------------------------------------------------------------------------------------


def test_the_report_names_each_finding_with_its_cycle_and_how_to_run_it_again(tmp_path: Path) -> None:
    figures = Figures(seed=5, planned=9, cycles=3)
    figures.faults["kill"] += 1
    figures.findings.append(Known(5, 0, 2, "kill", "a driver ended with 1", "log"))
    write(tmp_path / "report", figures)
    written = json.loads((tmp_path / "report.json").read_text())
    assert written["faults"] == {"kill": 1}
    assert written["findings"][0]["what"] == "a driver ended with 1"
    page = (tmp_path / "report.md").read_text()
    assert "--cycles 9 --seed 5" in page
    assert "| 2 | kill | a driver ended with 1 |" in page
