"""Fixtures of sinks with tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.memory_sink import MemorySinkFixture
from tests.support.registered_sink import RegisteredSink
from tests.support.table_sink import TableSink


@pytest.fixture
def table_sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TableSink:
    """A sink without records."""
    return TableSink(tmp_path, monkeypatch)


@pytest.fixture
def registered_sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RegisteredSink:
    """A sink with the tables of its manifest."""
    return RegisteredSink(MemorySinkFixture(tmp_path, monkeypatch), tmp_path, monkeypatch)


@pytest.fixture
def twice_registered(table_sink: TableSink) -> TableSink:
    """A table with two commits, and objects that are not in it."""
    table_sink.write(20)
    table_sink.register()
    table_sink.write(40)
    table_sink.register()
    table_sink.write(60)
    return table_sink
