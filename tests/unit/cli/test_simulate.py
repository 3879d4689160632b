"""`s3sink simulate`: its output for given steps, and its errors for invalid lines."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from sink_job.api.enums import SchemaCompatibility
from sink_job.api.errors import InvalidSpec
from sink_job.api.parser import load_sink
from sink_job.api.spec import Sink
from sink_job.cli import main
from sink_job.cli.simulate import simulate

HOUR = 3_600_000


def manifest(**sections: Any) -> str:
    spec = {
        "kafka": {"bootstrapServers": "kafka:9092", "topics": ["t", "u"]},
        "rotation": {"flushSize": 2},
        "s3": {"bucket": "archive"},
    }
    metadata = {"name": "x"}
    document = {"apiVersion": "s3sink.io/v1alpha1", "kind": "S3Sink", "metadata": metadata, "spec": spec | sections}
    return yaml.safe_dump(document)


def sink(**sections: Any) -> Sink:
    return load_sink(manifest(**sections))


def record(offset: int, value: Any = 1, *, topic: str = "t", partition: int = 0, **more: Any) -> dict[str, Any]:
    return {"topic": topic, "partition": partition, "offset": offset, "value": value, **more}


def write(*records: dict[str, Any]) -> dict[str, Any]:
    return {"write": list(records)}


def advance(ms: int) -> dict[str, Any]:
    return {"advanceClockMs": ms}


def run(of: Sink, *steps: dict[str, Any] | str, **options: Any) -> list[dict[str, Any]]:
    """The report of each write."""
    import msgspec

    lines = [(step if isinstance(step, str) else json.dumps(step)).encode() for step in steps]
    return [json.loads(msgspec.json.encode(report)) for report in simulate(of, lines, **options)]


def offsets(objects: list[dict[str, Any]]) -> list[list[int]]:
    return [each["offsets"] for each in objects]


def test_a_write_reports_closed_and_open_objects() -> None:
    (report,) = run(sink(), write(record(5), record(6), record(7)))
    assert report == {
        "closed": [
            {
                "key": "topics/t/partition=0/t+0+0000000005.json",
                "path": ["partition=0"],
                "topic": "t",
                "partition": 0,
                "firstOffset": 5,
                "lastOffset": 6,
                "records": 2,
                "offsets": [5, 6],
            }
        ],
        "open": [
            {
                "key": "topics/t/partition=0/t+0+0000000007.json",
                "path": ["partition=0"],
                "topic": "t",
                "partition": 0,
                "firstOffset": 7,
                "lastOffset": 7,
                "records": 1,
                "offsets": [7],
            }
        ],
        "committable": {"t-0": 7},
        "errors": [],
    }


def test_objects_grow_over_writes() -> None:
    reports = run(sink(rotation={"flushSize": 3}), write(record(0)), write(record(1)), write(record(4)))
    assert [offsets(report["open"]) for report in reports] == [[[0]], [[0, 1]], []]
    assert offsets(reports[2]["closed"]) == [[0, 1, 4]]


def test_nothing_is_committable_before_the_first_close() -> None:
    reports = run(sink(), write(record(0)), write(record(1)), write(record(2)), write(record(3)))
    assert [report["committable"] for report in reports] == [{"t-0": None}, {"t-0": 2}, {"t-0": 2}, {"t-0": 4}]


def test_offsets_may_have_gaps() -> None:
    reports = run(sink(), write(record(0), record(10)), write(record(20)))
    assert [report["committable"]["t-0"] for report in reports] == [11, 11]
    assert offsets(reports[0]["closed"]) == [[0, 10]]


def test_each_topic_partition_has_its_own_counters_and_reports_are_sorted() -> None:
    records = [
        record(0, topic="u"),
        record(0, partition=10),
        record(0, partition=2),
        record(1, topic="u"),
        record(1, partition=2),
    ]
    (report,) = run(sink(), write(*records))
    assert [(each["topic"], each["partition"]) for each in report["closed"]] == [("t", 2), ("u", 0)]
    assert [(each["topic"], each["partition"]) for each in report["open"]] == [("t", 10)]
    assert report["committable"] == {"t-2": 2, "t-10": None, "u-0": 2}


def test_a_due_schedule_closes_objects_in_the_next_round() -> None:
    of = sink(rotation={"scheduleInterval": "1h"}, partitioner={"timezone": "UTC"})
    reports = run(of, write(record(0)), advance(HOUR - 1), write(), advance(1), write())
    assert [offsets(report["closed"]) for report in reports] == [[], [], [[0]]]


def test_a_round_includes_topic_partitions_without_records() -> None:
    of = sink(rotation={"scheduleInterval": "1h"}, partitioner={"timezone": "UTC"})
    first, second = run(of, write(record(0), record(0, partition=1)), advance(HOUR), write(record(1)))
    assert offsets(first["open"]) == [[0], [0]]
    assert [(each["partition"], each["offsets"]) for each in second["closed"]] == [(0, [0]), (1, [0])]
    assert offsets(second["open"]) == [[1]]


def test_the_clock_starts_at_the_given_time() -> None:
    of = sink(partitioner={"type": "Hourly", "timezone": "UTC"})
    (report,) = run(of, write(record(0)), clock_start_ms=1_715_940_000_000)
    assert report["open"][0]["path"] == ["year=2024", "month=05", "day=17", "hour=10"]


def test_a_record_without_timestamp_has_no_time() -> None:
    of = sink(partitioner={"type": "Daily", "timezone": "UTC", "timestampExtractor": "Record"})
    (report,) = run(of, write(record(0, timestamp=0), record(1)))
    assert report["errors"] == [
        {"topic": "t", "partition": 0, "offset": 1, "message": "the record has no Kafka timestamp"}
    ]


def test_brief_reports_have_no_offsets() -> None:
    (report,) = run(sink(), write(record(0)), offsets=False)
    assert "offsets" not in report["open"][0]
    assert report["open"][0]["records"] == 1


def test_the_first_data_error_stops_its_topic_partition() -> None:
    of = sink(partitioner={"type": "Field", "fields": ["a"]})
    reports = run(
        of,
        write(record(0, {"a": 1}), record(1, {}), record(2, {}), record(0, {"a": 1}, partition=1)),
        write(record(3, {"a": 1}), record(1, {"a": 1}, partition=1)),
    )
    first = reports[0]["errors"]
    assert first == [{"topic": "t", "partition": 0, "offset": 1, "message": 'field "a" is missing'}]
    assert reports[1]["errors"] == []
    assert offsets(reports[1]["open"]) == [[0]]
    assert offsets(reports[1]["closed"]) == [[0, 1]]
    assert reports[1]["committable"] == {"t-0": None, "t-1": 2}


def test_a_data_error_closes_nothing_even_if_the_schedule_is_due() -> None:
    of = sink(rotation={"scheduleInterval": "1h"}, partitioner={"timezone": "UTC"})
    reports = run(of, write(record(0)), advance(HOUR), write(record(1, value=None)), advance(HOUR), write())
    assert [offsets(report["closed"]) for report in reports] == [[], [], []]


def test_with_tolerance_all_invalid_records_are_dropped_and_listed() -> None:
    of = sink(errors={"tolerance": "All"})
    values: list[Any] = [1, None, 2]
    (report,) = run(of, write(*(record(offset, value) for offset, value in enumerate(values))))
    assert offsets(report["closed"]) == [[0, 2]]
    assert [error["offset"] for error in report["errors"]] == [1]


def test_ignored_tombstones_are_committed_if_no_object_is_open() -> None:
    (report,) = run(sink(errors={"onNullValue": "Ignore"}), write(record(0, None), {**record(1)} | {"value": None}))
    assert report == {"closed": [], "open": [], "committable": {"t-0": 2}, "errors": []}


def test_a_record_without_a_value_is_a_tombstone() -> None:
    bare = {"topic": "t", "partition": 0, "offset": 0}
    (report,) = run(sink(), write(bare))
    assert report["errors"][0]["message"] == "the value is null, and errors.onNullValue is Fail"


def test_values_are_compact_json_for_the_json_converter() -> None:
    # {"a":[1,2]} and its newline are 12 bytes
    of = sink(rotation={"maxBytes": 12})
    (report,) = run(of, '{"write": [{"topic":"t","partition":0,"offset":0,"value": {"a" : [ 1, 2 ]}}]}')
    assert offsets(report["closed"]) == [[0]]
    (report,) = run(sink(rotation={"maxBytes": 13}), write(record(0, {"a": [1, 2]})))
    assert offsets(report["open"]) == [[0]]


@pytest.mark.parametrize(("value", "size"), [("äb", 3), ({"a": "b"}, 9)])
def test_for_the_text_converter_a_json_string_is_the_value(value: object, size: int) -> None:
    text = {"converter": "Text", "output": "Bytes", "bytes": {"separator": ""}}
    for limit, closed in ((size, [[0]]), (size + 1, [])):
        (report,) = run(sink(format=text, rotation={"maxBytes": limit}), write(record(0, value)))
        assert offsets(report["closed"]) == closed


@pytest.mark.parametrize("converter", ["Cbor", "MessagePack"])
def test_for_a_binary_converter_the_json_is_an_item_of_its_format(converter: str) -> None:
    by_field = sink(format={"converter": converter}, partitioner={"type": "Field", "fields": ["a.b"]})
    (report,) = run(by_field, write(record(0, {"a": {"b": "x"}}), record(1, [1, 2.5, None])))
    assert [each["key"] for each in report["open"]] == ["topics/t/a.b=x/t+0+0000000000.json"]
    assert report["errors"][0]["message"] == 'field "a.b" is missing'


@pytest.mark.parametrize("converter", ["Cbor", "MessagePack"])
def test_a_value_given_as_bytes_is_read_by_a_binary_converter(converter: str) -> None:
    given = {"topic": "t", "partition": 0, "offset": 0, "value_base64": base64.b64encode(b"\x7f\x7f").decode()}
    (report,) = run(sink(format={"converter": converter}), write(given))
    assert report["errors"][0]["message"].startswith("the value is not ")


def test_an_integer_that_messagepack_cannot_represent_is_an_error_of_the_line() -> None:
    with pytest.raises(
        InvalidSpec, match="line 1: t-0 offset 0: the value contains an integer that MessagePack cannot"
    ):
        run(sink(format={"converter": "MessagePack"}), write(record(0, 2**70)))


def test_a_value_can_be_given_as_bytes() -> None:
    given = {"topic": "t", "partition": 0, "offset": 0, "value_base64": base64.b64encode(b'{"a":').decode()}
    (report,) = run(sink(), write(given))
    assert report["errors"][0]["message"] == "the value is not JSON: Input data was truncated"


def test_blank_lines_are_skipped() -> None:
    assert len(run(sink(), "", write(record(0)), "  \n", write())) == 2


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ("nope", "is not JSON: invalid character"),
        ("[]", "Expected `object`, got `array`"),
        ("{}", 'is not a step: set either "write" or "advanceClockMs"'),
        ('{"write": [], "advanceClockMs": 1}', "is not a step"),
        ('{"wait": 1}', "unknown field `wait`"),
        ('{"advanceClockMs": -1}', "`int` >= 0"),
        ('{"advanceClockMs": 1.5}', "Expected `int"),
        ('{"write": {}}', "Expected `array"),
        ('{"write": [{"topic": "t", "partition": 0}]}', "missing required field `offset`"),
        ('{"write": [{"topic": "t", "partition": 0, "offset": 0, "vlaue": 1}]}', "unknown field `vlaue`"),
        ('{"write": [{"topic": "t", "partition": -1, "offset": 0}]}', "`int` >= 0 - at `$.write[0].partition`"),
        ('{"write": [{"topic": "t", "partition": 0, "offset": "0"}]}', "at `$.write[0].offset`"),
        (
            '{"write": [{"topic": "t", "partition": 0, "offset": 5}]}',
            "offset 5 is not in ascending order: offset 5 was",
        ),
        (
            '{"write": [{"topic": "t", "partition": 0, "offset": 7}, {"topic": "t", "partition": 0, "offset": 6}]}',
            "t-0 offset 6 is not in ascending order: offset 7 was delivered before",
        ),
        ('{"write": [{"topic": "t", "partition": 0, "offset": 9, "value_base64": "?"}]}', '"value_base64"'),
        ('{"write": [{"topic": "t", "partition": 0, "offset": 9, "value": 1, "value_base64": ""}]}', "set either"),
        ('{"write": [{"topic": "a/b", "partition": 0, "offset": 9}]}', "'a/b' is not a valid topic name"),
        (f'{{"write": [{{"topic": "t", "partition": 0, "offset": 9, "value": {"[" * 9999}', "is nested too deeply"),
        ('{"advanceClockMs": 253402300800000}', "advances the clock beyond 253402300799999 (the end of year 9999)"),
    ],
)
def test_an_invalid_line_is_reported_with_its_number(line: str, error: str) -> None:
    with pytest.raises(InvalidSpec, match=r"records, line 3: ") as raised:
        run(sink(), write(record(5)), "", line)
    assert error in str(raised.value)


@pytest.mark.parametrize("start", ["-1", "253402300800000", "9" * 30, "x"])
def test_a_clock_outside_of_the_years_1970_to_9999_is_rejected(start: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main.main(["simulate", "sink.yaml", "--records", "-", "--clock-start-ms", start])
    assert f"{start!r} is not a time in ms from 0 to 253402300799999" in capsys.readouterr().err


def test_standard_input_cannot_be_both_manifest_and_records(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["simulate", "-", "--records", "-"]) == 2
    assert "standard input cannot be both SINK.yaml and the records" in capsys.readouterr().err


def test_a_line_that_is_not_utf_8_is_reported() -> None:
    with pytest.raises(InvalidSpec, match=r"line 1: is not UTF-8"):
        list(simulate(sink(), [b'{"write": [{"topic": "\xff"}]}']))


def test_the_command_prints_a_line_for_each_write(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sink.yaml").write_text(manifest())
    (tmp_path / "steps").write_text("\n".join(json.dumps(step) for step in (write(record(0)), advance(5), write())))
    assert main.main(["simulate", str(tmp_path / "sink.yaml"), "--records", str(tmp_path / "steps"), "--brief"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["committable"] for line in lines] == [{"t-0": None}] * 2
    assert "offsets" not in lines[0]["open"][0]


def test_the_command_reads_steps_from_standard_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sink.yaml").write_text(manifest())
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b'{"write": []}\n')))
    assert main.main(["simulate", str(tmp_path / "sink.yaml"), "--records", "-"]) == 0
    assert json.loads(capsys.readouterr().out) == {"closed": [], "open": [], "committable": {}, "errors": []}


def test_unreadable_files_end_the_command_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "sink.yaml").write_text(manifest())
    assert main.main(["simulate", str(tmp_path / "sink.yaml"), "--records", str(tmp_path / "absent")]) == 2
    assert "absent cannot be read" in capsys.readouterr().err
    assert main.main(["simulate", str(tmp_path / "absent.yaml"), "--records", "-"]) == 2


def test_simulate_imports_neither_kafka_nor_s3_nor_spark(tmp_path: Path) -> None:
    (tmp_path / "sink.yaml").write_text(manifest())
    (tmp_path / "steps").write_text(json.dumps(write(record(0, {"a": "x"}))))
    heavy = ["pyspark", "py4j", "boto3", "botocore", "pandas", "babel", "awscrt"]
    code = (
        "import sys; from sink_job.cli.main import main; "
        f"main(['simulate', {str(tmp_path / 'sink.yaml')!r}, '--records', {str(tmp_path / 'steps')!r}]); "
        f"print(sorted(set({heavy}) & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


# -- records with schemas ---------------------------------------------------------------------------------------------


def with_compatibility(compatibility: str, **sections: Any) -> Sink:
    of = sink(**sections)
    spec = of.spec.model_copy(update={"schema_compatibility": SchemaCompatibility(compatibility)})
    return of.model_copy(update={"spec": spec})


def flight(version: int, **fields: Any) -> dict[str, Any]:
    """A record's schema."""
    return {"name": "Flight", "version": version, "fields": [{"name": "carrier", "type": "string", **fields}]}


def versions(*numbers: int | None) -> dict[str, Any]:
    """A write of records with these versions of a schema; None: without a schema."""
    records = [record(offset, schema=flight(each)) if each else record(offset) for offset, each in enumerate(numbers)]
    return write(*records)


LARGE: dict[str, Any] = {"rotation": {"flushSize": 1000}}


def test_with_compatibility_none_another_version_closes_the_object() -> None:
    (report,) = run(sink(**LARGE), versions(1, 1, 2, 1))
    assert (offsets(report["closed"]), offsets(report["open"])) == ([[0, 1], [2]], [[3]])


def test_with_separate_each_version_has_an_open_object() -> None:
    (report,) = run(with_compatibility("Separate", **LARGE), versions(1, 2, 1, 2))
    assert (offsets(report["closed"]), offsets(report["open"])) == ([], [[0, 2], [1, 3]])


def test_a_record_without_a_schema_closes_objects_with_separate_too() -> None:
    (report,) = run(with_compatibility("Separate", **LARGE), versions(1, 2, None))
    assert (offsets(report["closed"]), offsets(report["open"])) == ([[0], [1]], [[2]])


def test_two_alternating_versions_make_at_most_twice_the_objects_with_separate_and_one_per_record_with_none() -> None:
    steps = [versions(*[1 + n % 2 for n in range(100)])]
    limits: dict[str, Any] = {"rotation": {"flushSize": 10}}
    assert len(run(with_compatibility("Separate", **limits), *steps)[0]["closed"]) == 20
    assert len(run(sink(**limits), *steps)[0]["closed"]) == 99


@pytest.mark.parametrize(
    ("compatibility", "closed", "still_open"),
    [
        ("Backward", [[0]], [[1, 2]]),
        ("Full", [[0]], [[1, 2]]),
        ("Forward", [[0, 1]], [[2]]),
    ],
)
def test_versions_close_objects_or_are_projected(
    compatibility: str, closed: list[list[int]], still_open: list[list[int]]
) -> None:
    first = [1, 2, 1] if compatibility != "Forward" else [2, 3, 1]
    (report,) = run(with_compatibility(compatibility, **LARGE), versions(*first))
    assert (offsets(report["closed"]), offsets(report["open"])) == (closed, still_open)


def test_with_backward_a_version_that_cannot_be_projected_closes_the_object() -> None:
    lacking = {"name": "Flight", "version": 1, "fields": []}
    of = with_compatibility("Backward", **LARGE)
    (report,) = run(of, write(record(0, schema=flight(2)), record(1, schema=lacking)))
    assert offsets(report["closed"]) == [[0]]
    (report,) = run(of, write(record(0, schema=flight(2, default="AA")), record(1, schema=lacking)))
    assert offsets(report["open"]) == [[0, 1]]


def test_a_schema_without_a_version_is_a_data_error_if_versions_are_compared() -> None:
    lacking = {"name": "Flight", "fields": []}
    of = with_compatibility("Backward", errors={"tolerance": "All"}, **LARGE)
    (report,) = run(of, write(record(0, schema=flight(1)), record(1, schema=lacking), record(2, schema=flight(1))))
    assert offsets(report["open"]) == [[0, 2]]
    assert [(each["offset"], "version" in each["message"]) for each in report["errors"]] == [(1, True)]


def test_a_schema_of_an_earlier_write_is_compared() -> None:
    of = with_compatibility("Backward", **LARGE)
    _, report = run(of, write(record(0, schema=flight(1))), write(record(1, schema=flight(2))))
    assert offsets(report["closed"]) == [[0]]


@pytest.mark.parametrize(
    "other",
    [
        {"type": "int32"},
        {"optional": True},
        {"default": "AA"},
        {"name": "airline"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_schemas_that_differ_in_a_field_are_different(other: dict[str, Any]) -> None:
    first, second = record(0, schema=flight(1)), record(1, schema=flight(1, **other))
    (report,) = run(sink(**LARGE), write(first, second))
    assert offsets(report["closed"]) == [[0]]


def test_equal_schemas_are_equal_whatever_the_spelling_of_their_json() -> None:
    shuffled = {"fields": [{"optional": False, "type": "string", "name": "carrier"}], "version": 1, "name": "Flight"}
    (report,) = run(sink(**LARGE), write(record(0, schema=flight(1)), record(1, schema=shuffled)))
    assert offsets(report["open"]) == [[0, 1]]


def test_a_tombstone_has_no_schema() -> None:
    of = sink(**LARGE, errors={"onNullValue": "Ignore"})
    (report,) = run(
        of, write(record(0, schema=flight(1)), record(1, None, schema=flight(2)), record(2, schema=flight(1)))
    )
    assert offsets(report["open"]) == [[0, 2]]


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"fields": [{"name": "a", "type": "text"}]}, "Invalid enum value 'text'"),
        ({"fields": [{"name": "a"}]}, "missing required field `type`"),
        ({"type": "struct"}, "unknown field `type`"),
        ({"fields": [{"name": "a", "type": "int8"}, {"name": "a", "type": "int8"}]}, "two fields have the same name"),
    ],
)
def test_an_invalid_schema_is_an_error_with_its_line(schema: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidSpec, match="records, line 1: ") as error:
        run(sink(), write(record(0, schema=schema)))
    assert message in str(error.value)


@pytest.mark.parametrize(("output", "extension"), [("Avro", ".avro"), ("Parquet", ".snappy.parquet")])
def test_containers_are_simulated_with_plain_json(output: str, extension: str) -> None:
    of = sink(format={"converter": "ConnectJson", "output": output})
    (report,) = run(of, write(record(0, {"a": 1}), record(1, {"a": 2}), record(2, {"a": 3})))
    assert [each["key"].removeprefix("topics/t/partition=0/t+0+") for each in report["closed"]] == [
        f"0000000000{extension}"
    ]
    assert report["errors"] == []
