"""A sink in memory that has copied twelve records into three objects."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.memory_sink import MemorySinkFixture
from tests.support.repair_sink import RepairFixture


@pytest.fixture
def repaired(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RepairFixture:
    """Its bucket has no versions."""
    fixture = RepairFixture(MemorySinkFixture(tmp_path, monkeypatch))
    fixture.write()
    return fixture


@pytest.fixture
def versioned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RepairFixture:
    """Its bucket keeps versions."""
    fixture = RepairFixture(MemorySinkFixture(tmp_path, monkeypatch))
    fixture.sink.s3.keeps_history = True
    fixture.write()
    return fixture
