"""The demo's output without a terminal."""

from __future__ import annotations

import pytest

from demo.console import Show


def test_a_line_with_a_long_key_is_not_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    key = f"lake/{'year=2013/' * 20}flights+2+0000001602.snappy.parquet"
    Show().say(f"kill -9 of all its processes at part 1 of {key}")
    assert f"at part 1 of {key}\n" in capsys.readouterr().out
