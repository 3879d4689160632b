"""A sink in memory with tables in a catalog on SQLite."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.memory_sink import MemorySinkFixture
from tests.support.registered_sink import RegisteredSink


@pytest.fixture
def sink(
    sink_fixture: MemorySinkFixture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, log_formats: list[str]
) -> RegisteredSink:
    return RegisteredSink(sink_fixture, tmp_path, monkeypatch)
