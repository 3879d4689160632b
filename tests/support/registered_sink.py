"""A sink in memory, and the commands on its tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import sink_job.s3
from sink_job.api.enums import OutputFormat
from sink_job.api.parser import load_sink
from sink_job.cli import main as cli
from sink_job.tables import file_io
from tests.support.memory_s3 import MemoryS3
from tests.support.memory_sink import MemorySinkFixture
from tests.support.sink_fixture import manifest
from tests.support.table_sink import FORMAT, parquet_log


class RegisteredSink:
    """The sink, its manifest in `path`, and the bucket of the table's metadata."""

    def __init__(self, fixture: MemorySinkFixture, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.fixture = fixture
        self.path = folder / "tables.yaml"
        self.folder = folder
        self.lake = MemoryS3()
        self.output = OutputFormat.PARQUET
        """That of `describe` and later objects."""
        buckets: dict[str, Any] = {"archive": fixture.s3, "lake": self.lake}
        monkeypatch.setattr(file_io, "connect", lambda settings: buckets[settings.bucket])
        monkeypatch.setattr(sink_job.s3, "connect", lambda settings: fixture.s3)
        self.describe("lake.{topic}")

    def describe(self, *names: str, **fields: object) -> None:
        """Writes the manifest; `fields` are those of each table."""
        catalog = {"type": "Sql", "uri": f"sqlite:///{self.folder}/catalog.db", "warehouse": "s3://lake/tables"}
        spec = {
            "format": {**FORMAT, "output": self.output.value},
            "tables": [{"catalog": catalog, "name": name, **fields} for name in names],
        }
        text = manifest("archive", "http://127.0.0.1:9", flush_size=10, spec=spec)
        self.path.write_text(text)
        self.fixture.sink = load_sink(text)

    def objects(self) -> list[str]:
        """The keys of all objects of the sink, sorted."""
        return sorted(key for key in self.fixture.s3.objects if "/_s3sink/" not in key)

    def write(self, records: int) -> None:
        self.fixture.run(replace(parquet_log(records), output=self.output))

    def register(self, *arguments: str) -> int:
        return cli.main(["register", str(self.path), *arguments])

    def verify(self, *arguments: str) -> int:
        return cli.main(["verify", str(self.path), "--table", *arguments])
