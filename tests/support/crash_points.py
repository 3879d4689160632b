"""A driver that ends between the record that names objects and their becoming visible."""

from __future__ import annotations

from typing import Any

import pytest

from sink_job.coordinator.context import StopCondition
from sink_job.ledger import publisher as publishing
from sink_job.ledger.publisher import PublishOutcome
from sink_job.ledger.state import ClosedObject
from sink_job.s3 import S3Client
from tests.support.sink_fixture import Place
from tests.support.synthetic_log import FunctionLog


class EndedError(Exception):
    """Stands for the end of the process at this point."""


def end_before_publishing(place: Place, monkeypatch: pytest.MonkeyPatch, log: FunctionLog, **given: Any) -> None:
    """Runs the sink to the point where its first objects are named and none is visible."""

    def end(s3: S3Client, o: ClosedObject, was_tried: bool) -> PublishOutcome:
        raise EndedError

    with monkeypatch.context() as patched:
        patched.setattr(publishing, "publish", end)
        with pytest.raises(EndedError):
            place.run(log, StopCondition(until_caught_up=True), **given)


def end_after_rebuilding(place: Place, monkeypatch: pytest.MonkeyPatch, log: FunctionLog, **given: Any) -> None:
    """Runs a sink whose named objects are lost to the point where they are named again and none is visible."""
    publish = publishing.publish

    def end(s3: S3Client, o: ClosedObject, *rest: Any) -> PublishOutcome:
        if any(upload.upload_id == o.upload for upload in s3.list_uploads(o.key)):
            raise EndedError
        return publish(s3, o, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(publishing, "publish", end)
        with pytest.raises(EndedError):
            place.run(log, StopCondition(until_caught_up=True), **given)
