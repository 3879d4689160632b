"""Memory and CPU of an idle sink in Local mode: `python -m bench.idle_sink [--minutes 5]`.

A topic of one partition gets a record a second. After warming up, in which the JVM compiles the code of a round, the
CPU time of the processes is counted; the memory is the peak of the PSS of all of them together.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import yaml

from bench.resource_sampler import Sampler, spent
from devtools.kafka import kafka_broker
from devtools.s3 import credentials_secret, s3_server
from devtools.sink_process import local_spec, manifest
from devtools.topics import Record, Topics


def measure(bootstrap: str, endpoint: str, folder: Path, warm_up: float, seconds: float) -> str:
    """The row of the table: MB by role, MB of all, % of a core by role."""
    topics = Topics(bootstrap)
    topics.create("idle", partitions=1)
    spec = local_spec(
        bootstrap=bootstrap,
        topics=["idle"],
        endpoint=endpoint,
        bucket="idle",
        rotation={"flushSize": 10_000},
        s3={"credentials": {"secret": "s3-keys"}},
    )
    (folder / "sink.yaml").write_text(yaml.safe_dump(manifest("idle", spec)))
    command = [sys.executable, "-m", "sink_job.cli.main", "run", str(folder / "sink.yaml")]
    command += ["--secret", f"s3-keys={folder / 'keys'}"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    sink = subprocess.Popen(command, stderr=subprocess.DEVNULL, env=environment, start_new_session=True)
    try:
        with Sampler(sink.pid, {}) as sampler:
            _produce(topics, warm_up)
            before = sampler.sample()
            _produce(topics, seconds)
            after = sampler.sample()
        peaks = sampler.take_peaks()
    finally:
        sink.send_signal(signal.SIGTERM)
        sink.wait()
    cpu = {role: 100 * used / seconds for role, used in spent(before, after).items()}
    by_role = ", ".join(f"{role} {share:.1f}" for role, share in sorted(cpu.items()))
    return f"| {peaks.tree_pss / 1e6:.0f} | {sum(cpu.values()):.1f} | {by_role} |"


def _produce(topics: Topics, seconds: float) -> None:
    """A record a second."""
    start = time.monotonic()
    for number in range(round(seconds)):
        topics.produce("idle", [Record(value=json.dumps({"number": number}).encode(), partition=0)])
        time.sleep(max(0, start + number + 1 - time.monotonic()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--warm-up", type=float, default=5, metavar="MINUTES")
    options = parser.parse_args()
    with kafka_broker() as broker, s3_server() as s3, tempfile.TemporaryDirectory(prefix="s3sink-bench-") as folder:
        s3.client().create_bucket(Bucket="idle")
        credentials_secret(Path(folder) / "keys")
        print("| PSS MB | % of a core | by role |\n|---|---|---|")
        warm_up, seconds = 60 * options.warm_up, 60 * options.minutes
        print(measure(broker.bootstrap, s3.endpoint, Path(folder), warm_up, seconds))


if __name__ == "__main__":
    main()
