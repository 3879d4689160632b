"""What Kopf keeps in objects: nothing, also where another program that uses Kopf has written something."""

from __future__ import annotations

from typing import Any, cast

import kopf
import pytest

from s3sink_operator.watch.handlers import kopf_settings
from tests.operator.fake_cluster import document

BODY = kopf.Body(
    cast("Any", document() | {"status": {"kopf": {"progress": {"handler": {"retries": 3}}}}}),
)
OTHERS = {
    "kopf.zalando.org/last-handled-configuration": '{"spec": {"a": 1}}',
    "kopf.zalando.org/handler": '{"retries": 1}',
}
MARKED = kopf.Body(cast("Any", {**document(), "metadata": {**document()["metadata"], "annotations": OTHERS}}))
RECORD = kopf.ProgressRecord(
    started=None, stopped=None, delayed=None, purpose=None, retries=1, success=False, failure=False, message="",
    subrefs=None,
)  # fmt: skip


@pytest.mark.parametrize("body", [BODY, MARKED], ids=["status", "annotations"])
def test_nothing_is_read_from_an_object_and_nothing_is_written_to_it(body: kopf.Body) -> None:
    persistence = kopf_settings(None).persistence
    patch, key = kopf.Patch(), cast("Any", "handler")
    diffbase, progress = persistence.diffbase_storage, persistence.progress_storage
    essence = diffbase.build(body=body)
    assert dict(essence) == {}
    assert diffbase.fetch(body=body) is None
    assert progress.fetch(key=key, body=body) is None
    diffbase.store(body=body, patch=patch, essence=essence)
    progress.store(key=key, record=RECORD, body=body, patch=patch)
    progress.purge(key=key, body=body, patch=patch)
    progress.touch(body=body, patch=patch, value="now")
    assert dict(patch) == {}
    assert progress.clear(essence=essence) is essence
