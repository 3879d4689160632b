"""Commands on a sink in memory: a bucket in memory, and a consumer group in a file."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

import sink_job.s3
from sink_job.driver import logs
from tests.support.memory_sink import MemorySinkFixture
from tests.support.sink_fixture import manifest


@pytest.fixture
def sink_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MemorySinkFixture:
    """A sink whose bucket all commands connect to."""
    fixture = MemorySinkFixture(tmp_path, monkeypatch)
    monkeypatch.setattr(sink_job.s3, "connect", lambda settings: fixture.s3)
    return fixture


@pytest.fixture
def sink_file(tmp_path: Path) -> str:
    """The manifest of `sink_fixture`."""
    path = tmp_path / "sink.yaml"
    path.write_text(manifest("archive", "http://127.0.0.1:9", flush_size=5, max_records=2))
    return str(path)


@pytest.fixture
def log_formats(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The formats of logs that commands set up; the logging of the tests stays as it is."""
    formats: list[str] = []
    monkeypatch.setattr(logs, "set_up", formats.append)
    yield formats
    logging.disable(logging.NOTSET)
