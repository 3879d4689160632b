"""Crashes of a driver between the record that closes objects and their publication."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.coordinator.context import StopCondition
from sink_job.ledger import publisher as publishing
from sink_job.ledger.publisher import PublishOutcome
from sink_job.ledger.state import ClosedObject
from sink_job.s3 import S3Client
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import SyntheticLog


class SimulatedCrash(Exception):
    """Represents a crash of the process at this point."""


def crash_before_publishing(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch, log: SyntheticLog, **given: Any
) -> None:
    """Runs the sink until its first objects are closed and none is visible."""

    def end(s3: S3Client, o: ClosedObject, was_tried: bool) -> PublishOutcome:
        raise SimulatedCrash

    with monkeypatch.context() as patched:
        patched.setattr(publishing, "publish", end)
        with pytest.raises(SimulatedCrash):
            sink_fixture.run(log, StopCondition(until_caught_up=True), **given)


def crash_after_rebuilding(
    sink_fixture: SinkFixture, monkeypatch: pytest.MonkeyPatch, log: SyntheticLog, **given: Any
) -> None:
    """Runs a sink with lost closed objects until a record names their new uploads and none is visible."""
    publish = publishing.publish

    def end(s3: S3Client, o: ClosedObject, *rest: Any) -> PublishOutcome:
        if any(upload.upload_id == o.upload for upload in s3.list_uploads(o.key)):
            raise SimulatedCrash
        return publish(s3, o, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(publishing, "publish", end)
        with pytest.raises(SimulatedCrash):
            sink_fixture.run(log, StopCondition(until_caught_up=True), **given)
