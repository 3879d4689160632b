"""The plan of `make chaos ARGS=--real`, and its comparison."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest

from devtools.chaos import containers
from devtools.chaos.compare import Comparison, ComparisonSettings, LoggedRecord, TopicLog
from devtools.chaos.containers import codec_of
from devtools.chaos.faults import FAULTS
from devtools.chaos.figures import Figures, write
from devtools.chaos.load import Burst, batches, value
from devtools.chaos.scenario import LocatedFinding
from devtools.chaos.scenario_plan import PARTITIONERS, ROTATIONS, plan_scenarios
from devtools.chaos.value_forms import TypedForm
from sink_job.api.sections.format_section import FormatSpec
from sink_job.api.sections.job_sections import PartitionerSpec, RotationSpec
from sink_job.codecs.containers import container_encoder
from sink_job.connect.output_settings import DatumSettings
from sink_job.connect.schema import RegisteredSchema
from sink_job.converters.base import BatchSource
from sink_job.converters.registered import SchemaSettings
from sink_job.converters.wire_format import Layout, WireFormat
from sink_job.formats.datum_rows import DatumRows
from sink_job.json.json_schema.converter import JsonSchemaConverter
from tests.unit.avro.avro_data import Table, in_wire_format
from tests.unit.formats.test_datum_rows import parts_of

# -- the plan --------------------------------------------------------------------------------------------------------


def test_a_seed_reproduces_a_plan() -> None:
    assert plan_scenarios(7, 40) == plan_scenarios(7, 40)
    assert plan_scenarios(7, 40) != plan_scenarios(8, 40)


def test_a_plan_of_200_cycles_has_all_faults_partitioners_rotations_and_scopes() -> None:
    scenarios = plan_scenarios(1, 200)
    cycles = [cycle for scenario in scenarios for cycle in scenario.cycles]
    assert [cycle.number for cycle in cycles] == list(range(1, 201))
    assert {cycle.fault for cycle in cycles} == set(FAULTS)
    assert {each.spec["partitioner"]["type"] for each in scenarios} == {each["type"] for each in PARTITIONERS}
    rotations = {name for each in scenarios for name in each.spec["rotation"]}
    assert rotations == {"scope", *(name for each in ROTATIONS for name in each)}
    assert {each.spec["rotation"]["scope"] for each in scenarios} == {"Partition", "Object"}
    assert {each.partitions for each in scenarios} >= {1, 64}
    assert {each.versioning for each in scenarios} == {True, False}
    assert any(each.memory for each in scenarios)
    formats = {(each.spec["format"]["output"], codec_of(each.spec["format"])) for each in scenarios}
    assert {output for output, _ in formats} == {"Json", "Bytes", "Avro", "Parquet"}
    assert len(formats) > 8


def test_a_plan_of_selected_faults_repeats_them_in_order() -> None:
    cycles = [cycle for scenario in plan_scenarios(1, 12, only=("edit", "kill")) for cycle in scenario.cycles]
    assert [cycle.fault for cycle in cycles] == ["edit", "kill"] * 6


def test_activity_grows_and_shrinks_during_a_run() -> None:
    for scenario in plan_scenarios(1, 200):
        if scenario.partitions >= 16:
            active = [len(cycle.burst.active) for cycle in scenario.cycles]
            assert max(active) >= 16
            assert min(active) <= scenario.partitions / 4


def test_every_planned_spec_is_valid() -> None:
    for scenario in plan_scenarios(3, 200):
        PartitionerSpec.model_validate(dict(scenario.spec["partitioner"]))
        RotationSpec.model_validate(dict(scenario.spec["rotation"]))
        FormatSpec.model_validate(dict(scenario.spec["format"]))


def test_a_burst_repeats_no_record() -> None:
    burst = Burst(records=500, seconds=1, active=(0, 3), nulls=0.1, broken=0.1)
    made = []
    for batch in batches(random.Random(1), "c1", burst, 1_700_000_000_000):
        made += batch
        if len(made) >= 500:
            break
    values = [record.value for record in made if record.value is not None]
    assert len(set(values)) == len(values)
    assert {record.partition for record in made} == {0, 3}


# -- the comparison --------------------------------------------------------------------------------------------------

KEY = "topics/log/partition={p}/log+{p}+{first:010d}.json"


class Bucket:
    """The S3 client calls of a comparison, over a dict."""

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


class Given(TopicLog):
    """A log with fixed records."""

    def __init__(self, count: int) -> None:
        super().__init__("unused:1", "log")
        for offset in range(count):
            value = b'{"n":%d}' % offset
            self.records.setdefault(0, {})[offset] = LoggedRecord(0, offset, 1_700_000_000_000, value)
            self._offsets[0, value] = [offset]
        self.ends[0] = count

    def update(self, partitions: object) -> None:
        """No records arrive."""


def comparison(objects: Mapping[str, bytes], count: int, **rotation: Any) -> Comparison:
    made = Comparison(Given(count), cast("Any", Bucket(objects)), "bucket", ignored=lambda value: False)
    made.settings.append(ComparisonSettings.of({"rotation": rotation}))
    return made


def body(*offsets: int) -> bytes:
    return b"".join(b'{"n":%d}\n' % n for n in offsets)


def at(first: int, partition: int = 0) -> str:
    return KEY.format(p=partition, first=first)


def test_records_in_exactly_one_object_pass() -> None:
    compared = comparison({at(0): body(0, 1), at(2): body(2, 3)}, 4, flushSize=2)
    assert compared.compare_all({0: 4}, [0]) == []


@pytest.mark.parametrize(
    ("objects", "committed", "wrong"),
    [
        ({at(0): body(0, 1, 2)}, 4, "record log-0 offset 3 is below the committed offset 4 but in no object"),
        ({at(0): body(0, 1, 2, 3), at(2): body(2, 3)}, 4, "record log-0 offset 2 is in"),
        ({at(0): body(0, 2), at(1): body(1, 3)}, 3, "committed 3"),
        ({at(0): body(0, 1), at(3): body(2, 3)}, 4, "line 1 is not the expected record"),
        ({at(0): body(1, 0, 2, 3)}, 4, "line 1 is not the expected record"),
        ({at(0): body(0, 1, 2, 3, 3)}, 4, "line 5 is not the expected record"),
        ({"topics/log/partition=1/log+0+0000000000.json": body(0, 1, 2, 3)}, 4, "belongs below partition=0"),
        ({at(0): body(0, 1, 2, 3), "topics/log/note": b""}, 4, "not a key of this sink"),
    ],
)
def test_every_defect_is_found(objects: Mapping[str, bytes], committed: int, wrong: str) -> None:
    found = comparison(objects, 4).compare_all({0: committed}, [0])
    assert any(wrong in each for each in found), found


def test_an_overdue_open_object_is_found() -> None:
    assert "flushSize is 2" in comparison({at(0): body(0, 1, 2)}, 3, flushSize=2).compare_visible({0: 3}, [0])[0]
    assert "maxBytes is 10" in comparison({at(0): body(0, 1, 2)}, 3, maxBytes=10).compare_visible({0: 3}, [0])[0]


def test_vanished_and_changed_objects_are_found_but_not_moved_ones() -> None:
    compared = comparison({at(0): body(0), at(1): body(1), at(2): body(2)}, 3)
    assert compared.compare_visible({0: 3}, [0]) == []
    bucket = cast("Any", compared)._client.objects
    del bucket[at(0)]
    compared.moved.add(at(0))
    assert compared.compare_visible({0: 3}, [0]) == []
    del bucket[at(1)]
    bucket[at(2)] = body(2, 2)
    assert [each.partition(": ")[2][:10] for each in compared.compare_visible({0: 3}, [0])] == [
        "its ETag w",
        "was visibl",
    ]
    bucket[at(0)] = body(0)
    assert f"{at(0)}: re-created after a reader had moved it" in compared.compare_visible({0: 3}, [0])


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
    assert ComparisonSettings(partitioner, {}, ".json").path(LoggedRecord(3, 0, 1_700_000_000_000, value)) == path


# -- Avro and Parquet objects ------------------------------------------------------------------------------------------


class Produced(Given):
    """A log with records of the load."""

    def __init__(self, values: list[bytes]) -> None:
        TopicLog.__init__(self, "unused:1", "log", TypedForm())
        for offset, each in enumerate(values):
            self.records.setdefault(0, {})[offset] = LoggedRecord(0, offset, 1_700_000_000_000, each)
            self._offsets[0, containers.canonical(each)] = [offset]
        self.ends[0] = len(values)


LOADED = [
    value(random.Random(seed), f"c1-{seed}", 1_700_000_000_000, Burst(records=1, seconds=1, active=(0,)))
    for seed in range(6)
]
VALUES = [each for each in LOADED if each is not None]


def container(form: Mapping[str, Any], values: list[bytes]) -> bytes:
    """An object of the product."""
    settings = FormatSpec.model_validate(dict(form))
    schema = RegisteredSchema("1", "JSON", form["schema"]["text"])
    datums = DatumSettings.of(settings)
    found = JsonSchemaConverter(
        (), SchemaSettings(Table({"1": schema}), WireFormat(Layout.CONFLUENT), output=settings.output, datums=datums)
    ).convert(pa.array([in_wire_format(1, each) for each in values], pa.binary()), BatchSource("log"))
    assert found.rejected == []
    assert found.schemas is not None
    rows = DatumRows().encode(found.values).to_pylist()
    sizes = [DatumRows.prefix_bytes + len(row) for row in rows]
    assert sizes == [containers.row_size(containers.canonical(each)) for each in values]
    return b"".join(parts_of(rows, container_encoder(settings, found.schemas.schemas[0])("key")))


def compared_container(form: Mapping[str, Any], content: list[bytes], **rotation: Any) -> list[str]:
    """The differences between all `VALUES` in Kafka and an object with `content`."""
    key = f"topics/log/partition=0/log+0+0000000000{containers.extension(form)}"
    bucket = cast("Any", Bucket({key: container(form, content)}))
    made = Comparison(Produced(VALUES), bucket, "bucket", ignored=lambda value: False)
    made.settings.append(ComparisonSettings.of({"rotation": rotation, "format": form}))
    return made.compare_all({0: len(VALUES)}, [0])


FORMATS = pytest.mark.parametrize(
    "form", containers.FORMATS, ids=[f"{each['output']} {codec_of(each)}" for each in containers.FORMATS]
)


@FORMATS
def test_the_records_of_an_avro_or_parquet_object_pass(form: Mapping[str, Any]) -> None:
    assert compared_container(form, VALUES, flushSize=6) == []


@FORMATS
def test_a_changed_a_missing_and_a_late_record_of_an_avro_or_parquet_object_are_found(form: Mapping[str, Any]) -> None:
    changed = [*VALUES[:2], VALUES[2].replace(b'"tier":', b'"tier":1'), *VALUES[3:]]
    assert "line 3 is not the expected record" in compared_container(form, changed)[0]
    assert "offset 5 is below the committed offset" in compared_container(form, VALUES[:5])[0]
    assert "maxBytes is 300" in compared_container(form, VALUES, maxBytes=300)[0]


def test_an_object_that_cannot_be_read_is_found() -> None:
    key = "topics/log/partition=0/log+0+0000000000.avro"
    made = Comparison(Produced(VALUES), cast("Any", Bucket({key: b"Obj"})), "bucket", ignored=lambda value: False)
    assert made.compare_visible({0: 0}, [0])[0].startswith(f"{key}: cannot be read: ")


# -- the report ------------------------------------------------------------------------------------------------------


def test_the_report_gives_the_cycle_of_each_finding_and_the_command_to_repeat_it(tmp_path: Path) -> None:
    figures = Figures(seed=5, planned=9, cycles=3)
    figures.faults["kill"] += 1
    figures.findings.append(LocatedFinding(5, 0, 2, "kill", "a driver ended with 1", "log"))
    write(tmp_path / "report", figures)
    written = json.loads((tmp_path / "report.json").read_text())
    assert written["faults"] == {"kill": 1}
    assert written["findings"][0]["what"] == "a driver ended with 1"
    page = (tmp_path / "report.md").read_text()
    assert "--cycles 9 --seed 5" in page
    assert "| 2 | kill | a driver ended with 1 |" in page
