"""What the process from which Spark's workers are forked has loaded for them."""

from __future__ import annotations

import importlib
import threading
from typing import Any

import pytest
from botocore.loaders import JSONFileLoader

from sink_job.s3 import S3Settings, connect
from sink_job.writer import preloaded


def test_a_worker_creates_its_client_without_reading_a_description(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parsing them takes longer than a small task."""
    threads = threading.active_count()
    importlib.reload(preloaded)
    assert threading.active_count() == threads
    read: list[str] = []
    load_file = JSONFileLoader.load_file

    def recorded(loader: JSONFileLoader, path: str) -> Any:
        content = load_file(loader, path)
        if content is not None:  # some files are optional, and do not exist
            read.append(path)
        return content

    monkeypatch.setattr(JSONFileLoader, "load_file", recorded)
    connect(S3Settings(bucket="archive", region="eu-central-1"))
    assert [path for path in read if not path.endswith("sdk-default-configuration")] == []
