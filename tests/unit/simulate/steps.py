"""Steps of a simulation, and the reports of its writes."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import yaml

from sink_job.api.parser import load_sink
from sink_job.api.spec import Sink
from sink_job.cli.simulate import simulate


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
    lines = [(step if isinstance(step, str) else json.dumps(step)).encode() for step in steps]
    return [json.loads(msgspec.json.encode(report)) for report in simulate(of, lines, **options)]


def offsets(objects: list[dict[str, Any]]) -> list[list[int]]:
    return [each["offsets"] for each in objects]
