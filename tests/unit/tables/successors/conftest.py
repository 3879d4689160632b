"""Fixtures of tables that are continued."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.chain_sink import ChainSink


@pytest.fixture
def chain_sink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ChainSink:
    """A sink without records."""
    return ChainSink(tmp_path, monkeypatch)
