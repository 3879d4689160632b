"""The fixture of a sink with a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.table_sink import TableSink


@pytest.fixture
def table_sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TableSink:
    """A sink without records."""
    return TableSink(tmp_path, monkeypatch)
