"""The servers of the bench: a broker whose data outlives a run, and the S3 servers to write to."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bench.data import Cases, fill
from devtools.kafka import KafkaBroker
from devtools.s3 import S3Server, VersityGW
from sink_job.engine.cache import cache_dir

BUCKET = "bench"


class NullS3(S3Server):
    """`bench.null_s3`: acknowledges and discards parts."""

    def command(self) -> list[str | Path]:
        return [sys.executable, Path(__file__).with_name("null_s3.py"), str(self.port)]


class FarS3(NullS3):
    """The same with answers after `DELAY_MS`."""

    DELAY_MS = 50

    def command(self) -> list[str | Path]:
        return [*super().command(), str(self.DELAY_MS)]


TARGETS: dict[str, type[S3Server]] = {"null": NullS3, "far": FarS3, "versitygw": VersityGW}


def data_folder() -> Path:
    """The folder that keeps the topics between runs."""
    return cache_dir() / "bench"


@contextlib.contextmanager
def broker(cases: Cases) -> Iterator[KafkaBroker]:
    """A broker with the topics of `cases`; missing topics are produced."""
    folder = data_folder() / "kafka"
    folder.mkdir(parents=True, exist_ok=True)
    server = KafkaBroker(folder, heap="768m")
    try:
        server.start()
        fill(server.bootstrap, cases)
        yield server
    finally:
        server.stop()


@contextlib.contextmanager
def target(name: str) -> Iterator[S3Server]:
    """An empty S3 server with the bench's bucket."""
    with tempfile.TemporaryDirectory(prefix="s3sink-bench-", ignore_cleanup_errors=True) as folder:
        server = TARGETS[name](Path(folder))
        try:
            server.start()
            server.client().create_bucket(Bucket=BUCKET)
            yield server
        finally:
            server.kill()
