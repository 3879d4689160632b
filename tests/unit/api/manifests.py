"""Manifests for tests: a small valid one, changed by dotted paths."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Final

import pytest

from sink_job.api.errors import InvalidSpec
from sink_job.api.parser import parse_sink
from sink_job.api.spec import Sink

ABSENT: Final = object()

_VALID: Final[dict[str, Any]] = {
    "apiVersion": "s3sink.io/v1alpha1",
    "kind": "S3Sink",
    "metadata": {"name": "flights"},
    "spec": {
        "kafka": {"bootstrapServers": "kafka:9092", "topics": ["flights"]},
        "rotation": {"flushSize": 90},
        "s3": {"bucket": "archive"},
    },
}
HOURLY: Final[dict[str, object]] = {"spec.partitioner": {"type": "Hourly", "timezone": "UTC"}}
TIME: Final[dict[str, object]] = {
    "spec.partitioner": {"type": "Time", "timezone": "UTC", "duration": "1h", "pathFormat": "YYYY/MM/dd/HH"}
}


def document(*changes: Mapping[str, object]) -> dict[str, Any]:
    """A valid manifest with `changes`: values by dotted path, `ABSENT` to remove one."""
    manifest = copy.deepcopy(_VALID)
    for path, value in ((path, value) for each in changes for path, value in each.items()):
        *way, last = path.split(".")
        place = manifest
        for step in way:
            place = place.setdefault(step, {})
        if value is ABSENT:
            place.pop(last)
        else:
            place[last] = copy.deepcopy(value)
    return manifest


def accepted(*changes: Mapping[str, object], for_job: bool = True) -> Sink:
    """The sink of a manifest that must be valid."""
    return parse_sink(document(*changes), for_job=for_job)


def spec_errors(*changes: Mapping[str, object], for_job: bool = True) -> list[str]:
    """The errors of a manifest that must be invalid."""
    with pytest.raises(InvalidSpec) as raised:
        parse_sink(document(*changes), for_job=for_job)
    return list(raised.value.errors)


def case(sentence: str, changes: dict[str, object], *expected: str) -> Any:
    """A parameter set: the changes of a manifest and the errors that it then has, by a name for the test."""
    return pytest.param(changes, list(expected), id=sentence)
