"""The examples for users of the Kafka Connect S3 sink: what `s3sink simulate` prints for them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sink_job.api.parser import load_sink
from sink_job.cli import main as cli

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
CONNECT = EXAMPLES / "kafka-connect"
ROTATION = EXAMPLES / "rotation"
MIDNIGHT_MS = 1_706_713_200_000
"""1 February 2024, 00:00 in Seoul."""
HOUR = "topics/events/year=2024/month=02/day=01/hour=00"


def simulated(manifest: Path, records: Path, capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    words = ["simulate", str(manifest), "--records", str(records), "--clock-start-ms", str(MIDNIGHT_MS)]
    assert cli.main(words) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def offsets(objects: list[dict[str, Any]]) -> list[list[int]]:
    return [each["offsets"] for each in objects]


@pytest.mark.parametrize(
    ("manifest", "records", "closed", "still_open"),
    [
        ("interval", "on-time", [[], [], [], [[100, 101, 102]], [], []], [[103, 104]]),
        ("interval", "late", [[[100, 101, 102]], []], [[103, 104]]),
        ("schedule", "on-time", [[], [], [], [[100, 101, 102]], [], [[103, 104]]], []),
        ("schedule", "late", [[], [[100, 101, 102, 103, 104]]], []),
        ("interval", "gap", [[], [], [], [], [[100, 101, 102]], []], [[103, 104]]),
        ("schedule", "gap", [[], [], [], [[100, 101, 102]], [], []], [[103, 104]]),
    ],
)
def test_the_rotation_timelines_close_the_objects_that_their_page_shows(
    manifest: str,
    records: str,
    closed: list[list[list[int]]],
    still_open: list[list[int]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    reports = simulated(ROTATION / f"{manifest}.yaml", ROTATION / f"{records}.jsonl", capsys)
    assert [offsets(report["closed"]) for report in reports] == closed
    assert offsets(reports[-1]["open"]) == still_open
    keys = [each["key"] for report in reports for each in report["closed"]]
    assert keys == [f"{HOUR}/events+0+{each[0]:010}.json" for report in closed for each in report]


def test_the_timelines_have_the_records_100_to_104_one_each_second() -> None:
    for name in ("on-time", "late"):
        steps = [json.loads(line) for line in (ROTATION / f"{name}.jsonl").read_text().splitlines()]
        records = [record for step in steps for record in step.get("write", ())]
        assert [(record["offset"], record["timestamp"]) for record in records] == [
            (100 + n, MIDNIGHT_MS + 1000 * n) for n in range(5)
        ]


def test_the_timeline_with_a_gap_has_the_timestamps_of_the_posts() -> None:
    steps = [json.loads(line) for line in (ROTATION / "gap.jsonl").read_text().splitlines()]
    stamps = [record["timestamp"] for step in steps for record in step.get("write", ())]
    assert [stamp - MIDNIGHT_MS for stamp in stamps] == [0, 1_000, 2_000, 4_000, 5_000]


def test_the_sink_beside_the_connectors_configuration_has_its_settings() -> None:
    config = json.loads((CONNECT / "connector.json").read_text())["config"]
    spec = load_sink((CONNECT / "sink.yaml").read_text(encoding="utf-8")).spec
    assert {
        "topics": ",".join(spec.kafka.topics or ()),
        "s3.bucket.name": spec.s3.bucket,
        "s3.region": spec.s3.region,
        "s3.part.size": str(spec.s3.part_size),
        "topics.dir": spec.s3.topics_dir,
        "partition.duration.ms": str(spec.partitioner.duration),
        "path.format": spec.partitioner.path_format,
        "locale": spec.partitioner.locale,
        "timezone": spec.partitioner.timezone,
        "timestamp.extractor": spec.partitioner.timestamp_extractor,
        "flush.size": str(spec.rotation.flush_size),
        "rotate.schedule.interval.ms": str(spec.rotation.schedule_interval),
    }.items() <= config.items()
    assert (config["locale"], config["timezone"], config["flush.size"]) == ("ko_KR", "Asia/Seoul", "500")
    assert (spec.partitioner.type, spec.format.converter, spec.format.output) == ("Time", "Json", "Json")


def test_records_of_the_connectors_sink_go_to_directories_of_their_hour_in_seoul(
    capsys: pytest.CaptureFixture[str],
) -> None:
    opened, closed = simulated(CONNECT / "sink.yaml", CONNECT / "records.jsonl", capsys)
    assert opened["closed"] == []
    keys = [each["key"] for each in closed["closed"]]
    assert keys == [
        "topics/events/year=2024/month=01/day=31/hour=23/events+0+0000000100.json",
        f"{HOUR}/events+0+0000000101.json",
    ]
    page = (CONNECT / "README.md").read_text(encoding="utf-8")
    assert "\n".join(keys) in page
