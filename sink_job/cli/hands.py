"""What `reset-offsets` and `discard-open` need before they take a ledger: the store, and who they are."""

from __future__ import annotations

import argparse
import os
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sink_job.api.spec import Sink
    from sink_job.rounds.taken import Hands


def add_output(parser: argparse.ArgumentParser) -> None:
    """The arguments that say how results and logs look."""
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="default: table")
    parser.add_argument("--log", choices=("text", "json"), default="text", help="how log lines look (default: text)")


def hands_of(sink: Sink, secrets: Mapping[str, Path]) -> Hands:
    """Connects to the bucket. Raises what that raises."""
    from sink_job.driver.run import owner_of
    from sink_job.rounds.own import ledger_root
    from sink_job.rounds.taken import Hands
    from sink_job.s3 import S3Settings, connect

    names = sink.spec.s3
    s3 = connect(S3Settings.of(names, secrets))
    s3.look()
    return Hands(
        s3=s3,
        root=ledger_root(names.topics_dir, sink.sink_id),
        owner=owner_of(sink, os.environ),
        attempt=uuid.uuid4().hex,
        clock=lambda: time.time_ns() // 1_000_000,
        store_clock=s3.clock_ms,
    )
