"""The sinks of a soak: one that runs from the beginning to the end, one that is restarted, killed and edited."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devtools import bucket_listing
from devtools.processes import Process
from devtools.s3 import S3Server
from devtools.sink_process import SinkCommand, local_spec, manifest
from devtools.soak import records
from devtools.soak.growth import Growth, growth
from devtools.soak.resources import jvm_objects, resources

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

EDITS: tuple[Mapping[str, Any], ...] = (
    {"rotation": {"flushSize": 2_000}},
    {"rotation": {"flushSize": 500}},
    {"rotation": {"flushSize": 2_000}, "format": {"converter": "Json", "compression": {"codec": "Gzip"}}},
    {"rotation": {"flushSize": 5_000, "scheduleInterval": "1m"}},
)
"""Settings of the edited sink, one after another."""
_SECONDS = 600.0
_LINES = 20


class Problem(Exception):
    """What a soak has found."""


class SoakSink:
    """A sink that copies `topic` into a bucket of its own, and what its processes have held so far."""

    def __init__(self, folder: Path, name: str, *, bootstrap: str, topic: str, server: S3Server) -> None:
        self.name = name
        self.bucket = f"soak-{name}"
        self.series: dict[str, list[float]] = {}
        self.starts = 0
        self._place: dict[str, Any] = {
            "bootstrap": bootstrap,
            "topics": [topic],
            "endpoint": server.endpoint,
            "bucket": self.bucket,
        }
        self.client: S3Client = server.client()
        self.client.create_bucket(Bucket=self.bucket)
        self.temporary = folder / name / "tmp"
        self.temporary.mkdir(parents=True)
        self._edits = itertools.cycle(EDITS)
        self._command = SinkCommand(folder / name, self._manifest(), env={"TMPDIR": str(self.temporary)})
        self.process: Process | None = None

    def _manifest(self) -> dict[str, Any]:
        return manifest(self.name, local_spec(**self._place, **next(self._edits)))

    def start(self) -> None:
        self.process = self._command.start("run", "--cores", "2", "--progress", "never")
        self.starts += 1

    def edit(self) -> None:
        """Writes the next manifest; the next start reads it."""
        self._command.write(self._manifest())

    def stop(self, *, kill: bool = False) -> None:
        """Ends the driver by SIGTERM, or with all its processes by SIGKILL. Raises Problem for another exit code than
        0."""
        process = self._running()
        if kill:
            process.kill()
        elif (code := process.terminate(120)) != 0:
            raise Problem(f"sink {self.name}: SIGTERM ended it with {code} instead of 0\n{process.last_lines(_LINES)}")
        self.process = None

    def _running(self) -> Process:
        """Raises Problem if the driver has ended without being stopped."""
        process = self.process
        if process is None or (reason := process.failed()):
            raise Problem(f"sink {self.name}: the driver {'does not run' if process is None else reason}")
        return process

    def measure(self, *, with_heap: bool) -> str:
        """Adds what the driver's processes hold to `series`, and returns it as a line. Raises Problem if it has
        ended."""
        session = self._running().pid
        figures: dict[str, float] = resources(session)._asdict()
        if with_heap and (objects := jvm_objects(session)):
            figures |= objects._asdict()
        for figure, value in figures.items():
            self.series.setdefault(figure, []).append(value)
        return f"{self.name}: " + ", ".join(f"{figure} {value:,.0f}" for figure, value in figures.items())

    def growths(self) -> list[Growth]:
        """A verdict for each figure with enough values."""
        made = (growth(figure, values) for figure, values in self.series.items())
        return [each for each in made if each is not None]

    def publish(self) -> str:
        """Stops the driver if one runs, copies and publishes everything, and runs `verify --deep`. Raises
        AssertionError unless both end with 0."""
        if self.process is not None:
            self.stop()
        self._command.catch_up(seconds=_SECONDS)
        return self._command.must("verify", "--deep", seconds=_SECONDS)

    def contents(self) -> records.Contents:
        return records.of_bucket(self.client, self.bucket)

    def left_behind(self) -> list[str]:
        """Uploads and staging objects, which are not needed after `publish`, and temporary files."""
        listing = bucket_listing.objects(self.client, self.bucket, ledger=True)
        staged = [key for key in listing if "/staging/" in key]
        uploads = bucket_listing.uploads(self.client, self.bucket)
        files = sorted(entry.name for entry in self.temporary.iterdir())
        names = {"staging objects": staged, "uploads": sorted(uploads.values()), "temporary files": files}
        return [f"{len(found)} {what} remain: {found[:3]}" for what, found in names.items() if found]

    def close(self) -> None:
        self._command.kill()
