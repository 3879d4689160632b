"""The objects of a sink in a local folder, and a statement over them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import sink_job.s3
from sink_job.cli import main as cli
from tests.support.compared_sink import ComparedSink


@dataclass
class TableObjects:
    """A sink in memory; `folder` gets its objects as files."""

    sink: ComparedSink
    folder: Path

    def write(self) -> None:
        """Writes the files, also those that readers have to pass over."""
        for key, stored in self.sink.fixture.s3.objects.items():
            path = self.folder / key
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(stored.body)

    def statement(self, capsys: pytest.CaptureFixture[str], dialect: str, *arguments: str, code: int = 0) -> str:
        """The printed statement, with the folder in place of the bucket."""
        capsys.readouterr()
        assert cli.main(["ddl", str(self.sink.path), "--dialect", dialect, *arguments]) == code
        printed = capsys.readouterr().out
        return printed.replace("s3a://archive", f"file://{self.folder}").replace("s3://archive", str(self.folder))


def connected(sink: ComparedSink, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands connect to the sink's bucket."""
    found: Any = sink.fixture.s3
    monkeypatch.setattr(sink_job.s3, "connect", lambda settings: found)
