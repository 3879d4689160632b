"""`s3sink compare`: what it prints and ends with, on a sink in memory and a second directory."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sink_job.s3
from sink_job.cli import main as cli
from sink_job.s3 import S3Settings
from tests.support.compared_sink import OUTPUTS, ComparedSink, log_of
from tests.support.memory_s3 import MemoryS3
from tests.support.memory_sink import MemorySinkFixture
from tests.support.synthetic_log import SyntheticLog

OTHER = ["--with", "s3://archive/connect"]


@pytest.fixture
def sink(sink_fixture: MemorySinkFixture, log_formats: list[str], tmp_path: Path) -> ComparedSink:
    return ComparedSink(sink_fixture, tmp_path / "compared.yaml")


Compare = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def compare(sink: ComparedSink, capsys: pytest.CaptureFixture[str]) -> Compare:
    """Runs the command: its exit code, and its output as JSON."""

    def run(*arguments: str) -> tuple[int, dict[str, Any]]:
        code = cli.main(["compare", str(sink.path), *OTHER, "-o", "json", *arguments])
        printed = capsys.readouterr()
        return code, json.loads(printed.out) if printed.out else {"error": printed.err}

    return run


def findings(found: dict[str, Any]) -> list[tuple[str, int, int]]:
    return [(each["type"], each["offset"], each.get("count", 1)) for p in found["partitions"] for each in p["findings"]]


@pytest.mark.parametrize("output", OUTPUTS)
def test_equal_records_in_other_bytes_are_equal(sink: ComparedSink, compare: Compare, output: str) -> None:
    sink.output = output
    has_fields = output != "Bytes"
    sink.write(log_of(output, 23, paths=2), paths=has_fields)
    sink.copy()
    code, found = compare("--deep")
    assert (code, findings(found)) == (0, [])
    [partition] = found["partitions"]
    objects = len(sink.keys())
    assert (partition["records"], partition["equalKeys"], partition["objects"]) == (23, objects, objects)
    assert partition["both"] == [[0, 22]]
    assert compare()[0] == 0


def without(number: int) -> Callable[[list[Any]], list[Any]]:
    return lambda records: records[:number] + records[number + 1 :]


def doubled(number: int) -> Callable[[list[Any]], list[Any]]:
    return lambda records: records[: number + 1] + records[number:]


def changed(number: int) -> Callable[[list[Any]], list[Any]]:
    def change(records: list[Any]) -> list[Any]:
        record = records[number]
        other = b"x" + record if isinstance(record, bytes) else {**record, "partition": 77}
        return [*records[:number], other, *records[number + 1 :]]

    return change


CASES = {
    "missing in the other": ("connect", without(2), 6, [("RecordsOnlyInSink", 7, 1)]),
    "doubled in the other": ("connect", doubled(2), 6, [("RecordsDoubled", 8, 1)]),
    "changed in the other": ("connect", changed(2), 6, [("RecordsDiffer", 7, 1)]),
    "missing in the sink": ("topics", without(2), 5, [("RecordsMissing", 7, 1)]),
    "doubled in the sink": ("topics", doubled(2), 5, [("RecordsDoubled", 8, 1)]),
    "changed in the sink": ("topics", changed(2), 6, [("RecordsDiffer", 7, 1)]),
}


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("case", CASES)
def test_a_different_record_is_found(sink: ComparedSink, compare: Compare, output: str, case: str) -> None:
    """In the sink, the size and number of records in the ledger differ, too."""
    directory, change, code, expected = CASES[case]
    sink.output = output
    sink.write(log_of(output, 15))
    sink.copy()
    sink.change(sink.keys(directory)[1], change)
    found = compare("--deep")
    assert [each for each in findings(found[1]) if each[0] != "ObjectDamaged"] == expected
    assert found[0] == (5 if directory == "topics" else code)


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_moved_record_is_found(sink: ComparedSink, compare: Compare, output: str) -> None:
    """It is in the next object of the other."""
    sink.output = output
    sink.write(log_of(output, 15))
    sink.copy()
    record = sink.records(sink.keys()[0])[1]
    sink.change(sink.keys()[0], without(1))
    sink.change(sink.keys()[1], lambda records: [*records, record])
    code, found = compare("--deep")
    assert (code, findings(found)) == (6, [("RecordsMoved", 1, 1)])


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_moved_object_is_found_by_its_key(sink: ComparedSink, compare: Compare, output: str) -> None:
    sink.output = output
    sink.write(log_of(output, 15))
    sink.copy()
    key = sink.keys()[1]
    sink.move(key, key.replace("partition=0", "day=7"))
    assert (compare()[0], findings(compare()[1])) == (6, [("KeyDiffers", 5, 1)])
    code, found = compare("--deep")
    assert (code, findings(found), found["partitions"][0]["records"]) == (6, [("KeyDiffers", 5, 1)], 15)


@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("directory", ["connect", "topics"])
def test_a_truncated_object_is_found(sink: ComparedSink, compare: Compare, output: str, directory: str) -> None:
    sink.output = output
    sink.write(log_of(output, 15))
    sink.copy()
    sink.truncate(sink.keys(directory)[1], 30)
    code, found = compare("--deep")
    assert code == (5 if directory == "topics" else 6)
    assert findings(found)
    assert {each["offset"] for p in found["partitions"] for each in p["findings"]} <= set(range(5, 10))
    assert compare()[0] == (5 if directory == "topics" else 0)


def test_an_object_that_the_sink_has_lost_is_missing(sink: ComparedSink, compare: Compare) -> None:
    sink.write(log_of("Json", 15))
    sink.copy()
    del sink.fixture.s3.objects[sink.keys("topics")[1]]
    for arguments in ([], ["--deep"]):
        code, found = compare(*arguments)
        assert (code, ("ObjectMissing", 5, 1) in findings(found)) == (5, True)


def test_an_object_that_the_other_lacks_is_only_in_the_sink(sink: ComparedSink, compare: Compare) -> None:
    sink.write(log_of("Json", 15))
    sink.copy()
    del sink.fixture.s3.objects[sink.keys()[1]]
    code, found = compare()
    assert (code, findings(found)) == (6, [("KeyOnlyInSink", 5, 1)])
    assert found["partitions"][0]["onlySink"] == [[5, 9]]
    assert found["partitions"][0]["both"] == [[0, 4], [10, 14]]
    code, found = compare("--deep")
    assert (code, findings(found)) == (6, [("KeyOnlyInSink", 5, 1), ("RecordsOnlyInSink", 5, 5)])


@pytest.mark.parametrize("directory", ["partition=0", "copy"])
@pytest.mark.parametrize("side", ["topics", "connect"])
def test_a_doubled_object_is_found_in_any_path(sink: ComparedSink, compare: Compare, directory: str, side: str) -> None:
    """Its records are in an object of the other side, so that none is missing."""
    sink.write(log_of("Json", 15))
    sink.copy()
    key = sink.keys(side)[0]
    copy = key.replace("partition=0", directory).replace("0000000000", "0000000003")
    sink.fixture.s3.put(copy, sink.fixture.s3.get(key))
    code, found = compare("--deep")
    kind = "KeyOnlyInSink" if side == "topics" else "KeyOnlyInOther"
    assert (code, set(findings(found))) == (6, {(kind, 3, 1), ("RecordsDoubled", 3, 5)})
    assert compare()[0] == 6


def test_objects_that_close_at_other_offsets_differ_in_keys_alone(sink: ComparedSink, compare: Compare) -> None:
    sink.write(log_of("Json", 20))
    sink.copy()
    first, second, third, _ = sink.keys()
    more = [*sink.records(second), *sink.records(third)]
    sink.change(first, lambda records: [*records, *more])
    del sink.fixture.s3.objects[second], sink.fixture.s3.objects[third]
    code, found = compare("--deep")
    assert (code, findings(found)) == (6, [("KeyOnlyInSink", 5, 1), ("KeyOnlyInSink", 10, 1)])
    assert found["partitions"][0]["records"] == 20


def test_another_partitioner_differs_in_keys_alone(sink: ComparedSink, compare: Compare) -> None:
    sink.write(log_of("Json", 20, paths=2), paths=True)
    records = [record for key in sink.keys("topics") for record in sink.records(key)]
    records.sort(key=lambda record: record["offset"])
    for first in range(0, 20, 4):
        sink.put(f"connect/log/partition=0/log+0+{first:010d}.json", records[first : first + 4])
    code, found = compare("--deep")
    assert (code, {each[0] for each in findings(found)}) == (
        6,
        {"KeyDiffers", "KeyOnlyInSink", "KeyOnlyInOther", "RecordsMoved"},
    )


def test_the_records_in_other_order_differ(sink: ComparedSink, compare: Compare) -> None:
    sink.write(log_of("Json", 10))
    sink.copy()
    sink.change(sink.keys()[0], lambda records: records[::-1])
    assert findings(compare("--deep")[1]) == [("RecordsReordered", 0, 1)]


@pytest.mark.parametrize("output", ["Avro", "Parquet"])
def test_another_type_with_equal_values_differs(sink: ComparedSink, compare: Compare, output: str) -> None:
    sink.output = output
    sink.write(log_of(output, 10))
    sink.copy()
    sink.retype(sink.keys()[0])
    code, found = compare("--deep")
    assert (code, findings(found)) == (6, [("SchemasDiffer", 0, 1)])


def test_the_side_that_is_behind_limits_the_comparison(sink: ComparedSink, compare: Compare) -> None:
    sink.write(log_of("Json", 20))
    sink.copy()
    for key in sink.keys()[2:]:
        del sink.fixture.s3.objects[key]
    code, found = compare()
    [partition] = found["partitions"]
    assert (code, partition["end"], partition["objects"]) == (0, 6, 2)
    assert partition["notes"] == ["2 objects of the sink begin at or after 6: the other has not arrived there"]


def test_objects_before_the_sinks_start_are_a_note(sink: ComparedSink, compare: Compare) -> None:
    log = SyntheticLog(records=20, starts_at=10)
    sink.write(log)
    sink.copy()
    sink.put("connect/log/partition=0/log+0+0000000000.json", [{"old": n} for n in range(10)])
    code, found = compare("--deep")
    [partition] = found["partitions"]
    assert (code, partition["start"], partition["records"]) == (0, 10, 10)
    assert partition["notes"] == ["1 object of the other begins before the sink's start offset 10"]


def test_from_to_and_partition_select_objects(sink: ComparedSink, compare: Compare) -> None:
    sink.write(SyntheticLog(records=20, partitions=2))
    sink.copy()
    del sink.fixture.s3.objects[sink.keys()[-1]]
    sink.change("connect/log/partition=0/log+0+0000000005.json", changed(0))
    assert compare("--deep")[0] == 6
    code, found = compare("--deep", "--partition", "log-0", "--from", "10", "--to", "20")
    [partition] = found["partitions"]
    assert (code, partition["start"], partition["end"], partition["records"]) == (0, 10, 16, 10)


def test_rejected_records_that_the_other_has_are_missing_with_the_gaps_of_the_ledger(
    sink: ComparedSink, compare: Compare
) -> None:
    """The sink ignores records without a value; the other has written them."""
    sink.write(SyntheticLog(records=10, tombstones=frozenset({3})), spec={"errors": {"onNullValue": "Ignore"}})
    sink.copy()
    sink.change(sink.keys()[0], lambda records: [*records[:3], {"null": True}, *records[3:]])
    code, found = compare("--deep")
    assert (code, findings(found)) == (5, [("RecordsMissing", 0, 1)])
    message = found["partitions"][0]["findings"][0]["message"]
    assert "the ledger counts 1 offsets without a record in an object" in message


def test_other_topics_and_formats_below_the_directory_do_not_take_part(sink: ComparedSink, compare: Compare) -> None:
    sink.write(log_of("Json", 10))
    sink.copy()
    sink.put("connect/logs/partition=0/logs+0+0000000000.json", [{}])
    sink.put("connect/log/partition=0/report.json", [{}])
    sink.put("connect/log/partition=0/_SUCCESS", [{}])
    code, found = compare("--deep")
    assert (code, found["ignored"], len(found["partitions"])) == (0, 2, 1)


def test_a_topic_partition_of_the_other_alone_is_missing(sink: ComparedSink, compare: Compare) -> None:
    sink.write(log_of("Json", 10))
    sink.copy()
    sink.put("connect/log/partition=1/log+1+0000000000.json", [{}])
    code, found = compare()
    assert (code, findings(found)) == (5, [("OffsetsMissing", 0, 1)])
    assert found["partitions"][1]["notes"] == ["the sink has copied no records of this topic-partition"]


def test_another_bucket_is_read_with_the_same_settings(sink: ComparedSink, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[str, str | None]] = []

    def connect(settings: S3Settings) -> MemoryS3:
        opened.append((settings.bucket, settings.endpoint))
        return sink.fixture.s3

    sink.write(log_of("Json", 10))
    sink.copy()
    monkeypatch.setattr(sink_job.s3, "connect", connect)
    assert cli.main(["compare", str(sink.path), "--with", "s3://elsewhere/connect/"]) == 0
    assert opened == [("archive", "http://127.0.0.1:9"), ("elsewhere", "http://127.0.0.1:9")]


def test_the_table_has_findings_ranges_and_the_total(
    sink: ComparedSink, compare: Compare, capsys: pytest.CaptureFixture[str]
) -> None:
    sink.write(log_of("Json", 15))
    sink.copy()
    assert cli.main(["compare", str(sink.path), *OTHER, "--deep"]) == 0
    assert capsys.readouterr().out == (
        "TOPIC  PARTITION  FROM  TO  OBJECTS  OTHER_OBJECTS  EQUAL_KEYS  EQUAL_RECORDS  RESULT\n"
        "log            0     0  11        3              3           3             15  EQUAL\n"
        "\n"
        "EQUAL: 3 objects have the same keys below s3://archive/connect and the same 15 records\n"
    )
    sink.change(sink.keys()[1], without(2))
    del sink.fixture.s3.objects[sink.keys()[0]]
    assert cli.main(["compare", str(sink.path), *OTHER, "--deep"]) == 6
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].endswith("DIFFERENT at 0")
    assert lines[3].startswith("DIFFERENT: log-0 offset 0: no object of the other begins at this offset (s3://archive/")
    assert "offsets: log-0: both: 5 to 14; only the sink: 0 to 4" in lines
    assert lines[-1] == "DIFFERENT: 1 of 1 topic-partitions; first finding: log-0 offset 0"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--with", "s3://archive/topics"], 2, "is the directory of the sink itself"),
        (["--with", "s3://archive/nothing"], 7, "has a key of the sink's topics (log)"),
        (["--from", "9", "--to", "9"], 2, "--from 9 is not below --to 9"),
        (["--from", "900"], 7, "nothing was compared"),
        (["--partition", "log-7"], 7, "neither the sink nor"),
    ],
)
def test_what_cannot_be_compared_is_an_error(
    sink: ComparedSink, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    sink.write(log_of("Json", 10))
    sink.copy()
    assert cli.main(["compare", str(sink.path), *OTHER, *arguments]) == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--with", "archive/x"], ["--partition", "log"], ["--from", "-1"]])
def test_an_unreadable_argument_is_an_error_of_the_command_line(
    sink: ComparedSink, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        cli.main(["compare", str(sink.path), *OTHER, *arguments])
    assert ended.value.code == 2
    assert arguments[1] in capsys.readouterr().err


def test_a_sink_without_a_ledger_is_an_error(
    sink: ComparedSink, sink_file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["compare", sink_file, *OTHER]) == 7
    assert "there is no ledger below" in capsys.readouterr().err
