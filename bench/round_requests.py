"""S3 requests and ledger records of one round: `python -m bench.round_requests [--partitions 1 --partitions 64]`.

A driver over a synthetic log writes to a real S3 server (VersityGW) and runs rounds one by one. The S3 client counts
its requests, including those of tasks. Counts do not depend on the machine.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from devtools.s3 import s3_server
from sink_job.coordinator.context import StopCondition
from sink_job.coordinator.round_loop import RoundLoop
from sink_job.s3 import S3Client
from tests.support.sink_fixture import SinkFixture
from tests.support.synthetic_log import CLOCK_MS, SyntheticLog

RECORDS = 10
"""Records of a topic-partition in a round."""

CASES: dict[str, dict[str, Any]] = {
    "every object closes": {"flush_size": RECORDS},
    "every object stays open": {"flush_size": 1_000_000},
}


def rounds(loop: RoundLoop, s3: S3Client) -> Iterator[Counter[str]]:
    """The requests of each round, including the last one, which has no records."""
    while True:
        before = Counter(s3.meter.snapshot().requests)
        did = loop.run_once()
        yield Counter(s3.meter.snapshot().requests) - before
        if not did:
            return


def measure(endpoint: str, partitions: int, given: dict[str, Any]) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """The requests of the third round, of an idle turn, and of an idle hour (120 turns of 30 s)."""
    now = [CLOCK_MS]
    with tempfile.TemporaryDirectory(prefix="s3sink-bench-") as folder:
        place = SinkFixture.new(endpoint, Path(folder))
        log = SyntheticLog(records=3 * RECORDS, partitions=partitions)
        driver = place.driver(
            log, StopCondition(until_caught_up=True), max_records=RECORDS, clock=lambda: now[0], **given
        )
        loop = driver.start()
        loop.recover()
        made = list(rounds(loop, place.s3))
        hour: Counter[str] = Counter()
        for _ in range(120):
            now[0] += driver.context.discovery_interval_ms
            hour += next(rounds(loop, place.s3))
        return made[2], made[-1], hour


def table(endpoint: str, counts: list[int]) -> Iterator[str]:
    yield "| topic-partitions | case | a round | idle turn | idle hour |"
    yield "|---|---|---|---|---|"
    for partitions in counts:
        for name, given in CASES.items():
            cells = (_cell(each) for each in measure(endpoint, partitions, given))
            yield f"| {partitions} | {name} | {' | '.join(cells)} |"


def _cell(requests: Counter[str]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in sorted(requests.items())) or "none"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--partitions", type=int, action="append")
    options = parser.parse_args()
    with s3_server() as server:
        for line in table(server.endpoint, options.partitions or [1, 64]):
            print(line)


if __name__ == "__main__":
    main()
