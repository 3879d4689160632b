"""`s3sink simulate`: its output for given steps, and its errors for invalid lines."""

from __future__ import annotations

import base64
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from sink_job.api.errors import InvalidSpec
from sink_job.cli import main
from sink_job.cli.simulate import simulate
from tests.unit.simulate.steps import advance, manifest, offsets, record, run, sink, write

HOUR = 3_600_000


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
        ('{"carrier": "UA"}', 'a line is a round of records with their offsets, such as {"write": [{"topic": '),
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


def test_a_page_with_the_timelines_can_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    examples = Path(__file__).parents[3] / "examples"
    words = ["simulate", str(examples / "flights.yaml"), "--records", str(examples / "flights-records.jsonl")]
    assert main.main([*words, "--html", str(page)]) == 0
    assert "closed by onPathChange" in page.read_text()
    assert f"{page}: written" in capsys.readouterr().err
    assert main.main([*words, "--html", str(tmp_path / "absent" / "page.html")]) == 2
    assert "cannot be written" in capsys.readouterr().err
